"""Of many files that a run imports, only those with functions that ran are read before the search."""

from __future__ import annotations

import pytest
from planted import BROKEN, Planted, levels, proved

COUNT = 120


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("shop/core.py", "def work():\n    return 1\n", f"def work():\n    {BROKEN}\n"),
        ("shop/h7.py", "LIMIT = 1\n\n\nOTHER = 1\n", "LIMIT = 3\n\n\nOTHER = 2\n"),
    ],
    ids=["in a function that ran", "in a file of constants"],
)
def test_the_lines_are_found_among_many_files(
    plant: Planted, monkeypatch: pytest.MonkeyPatch, path: str, before: str, after: str
) -> None:
    monkeypatch.setattr("harness.culprit.code_search._MOST_READ", COUNT - 10)
    imports = "".join(f"import shop.h{number}\n" for number in range(COUNT))
    run = f"\n\ndef run():\n    core.work()\n    if shop.h7.LIMIT > 2:\n        {BROKEN}\n"
    for version, text in (("1.0", before), ("1.1", after)):
        files = {f"shop/h{number}.py": f"LIMIT = 1\nX = {version}\n" for number in range(COUNT)}
        files |= {"shop/__init__.py": f"import shop\nfrom shop import core\n{imports}{run}"}
        files |= {"shop/core.py": f"VERSION = {version}\n\n\ndef work():\n    return 1\n"}
        plant.add("shop", version, files | {path: text})
    found = levels(plant.answer())
    assert found["file"]["files"] == [path]
    assert proved(found["region"])
    assert len(found["region"]["regions"]) == 1
