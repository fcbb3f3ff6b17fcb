"""The order of the parts that are tried alone."""

from __future__ import annotations

from edited import edits_of, unit

from harness.culprit.clues import parts_of

BEFORE = "import os\n\n\ndef f():\n    a = 1\n    b = 1\n    print()\n    c = 1\n\n\nD = 1\n"
AFTER = "import io\nimport os\n\n\ndef f():\n    a = 2\n    b = 1\n    print()\n    c = 2\n\n\nD = 2\n"


def test_regions_come_before_their_function_and_that_before_its_file(tmp_path):
    edits = edits_of(tmp_path, {"a.py": BEFORE}, {"a.py": AFTER})
    first, last, other, imported = (unit(edits, text) for text in ("a = 1", "c = 1", "D = 1", "import io"))
    weights = {first: 12.0, last: 11.0, other: 2.0, imported: 0.04}
    assert parts_of(edits, weights) == tuple(
        map(frozenset, ({first}, {last}, {first, last}, {other}, {first, last, other, imported}))
    )


def test_a_comment_is_not_tried_alone(tmp_path):
    edits = edits_of(tmp_path, {"a.py": BEFORE}, {"a.py": AFTER})
    weights = dict.fromkeys(edits.all, 0.02) | {unit(edits, "D = 1"): 2.0}
    assert parts_of(edits, weights)[0] == {unit(edits, "D = 1")}
    assert len(parts_of(edits, weights)) == 2


def test_whole_folders_come_early_if_there_are_many_parts(tmp_path):
    text = "A = 1\n\n\n" + "".join(f"def f{n}():\n    return 1\n\n\n" for n in range(30))
    before = dict.fromkeys(("shop/io/a.py", "shop/io/b.py", "shop/core.py"), text)
    edits = edits_of(tmp_path, before, {name: old.replace("return 1", "return 2") for name, old in before.items()})
    parts = parts_of(edits, dict.fromkeys(edits.all, 12.0))
    folders = [{one for one in edits.all if one.startswith(name)} for name in ("shop/io/", "shop/core")]
    assert [parts.index(frozenset(folder)) for folder in folders] == [8, 9]


def test_a_file_with_many_unlikely_parts_and_some_of_them_at_a_time_come_before_each_alone(tmp_path):
    text = "".join(f"def f{n}():\n    return 1\n\n\n" for n in range(50))
    edits = edits_of(
        tmp_path, {"a.py": text, "b.py": text}, dict.fromkeys(("a.py", "b.py"), text.replace("return 1", "return 2"))
    )
    weights = {one: 12.0 if one.startswith("a.py") else 6.0 for one in sorted(edits.all)}
    parts = parts_of(edits, weights)
    file = parts.index(frozenset(one for one in edits.all if one.startswith("b.py")))
    assert all(one.startswith("a.py") for part in parts[:file] if len(part) == 1 for one in part)
    assert [len(part) for part in parts[file : file + 6]] == [50, 16, 16, 16, 2, 1]
