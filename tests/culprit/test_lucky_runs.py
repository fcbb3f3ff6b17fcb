"""No lucky run names a release of a dependency: two passes of a broken one, when it is searched and to prove it."""

from __future__ import annotations

from pathlib import Path

from planted import Planted

# Each kind of release has the verdicts of its runs, in order (F fails, p passes); the last four repeat.
STEP = """
import itertools, pathlib

def run():
    for number in itertools.count():
        try:
            pathlib.Path({folder!r}, "{kind} " + str(number)).touch(exist_ok=False)
            break
        except FileExistsError:
            continue
    verdicts = {verdicts!r}
    fails = verdicts[number] if number < len(verdicts) else verdicts[-4:][number % 4]
    if fails == "F":
        raise RuntimeError('the step is broken')
    return {kind!r}
"""
LUCKY = "ppFFFFFF"
UNLUCKY = "FFFFFFFF"


def step(folder: Path, kind: str, verdicts: str) -> str:
    """The source of a module of which each run has its own verdict, whichever process it is in."""
    return STEP.format(folder=str(folder), kind=kind, verdicts=verdicts)


def test_a_release_of_a_dependency_is_not_named_for_two_lucky_passes(plant: Planted, tmp_path: Path) -> None:
    """Of releases 1.1 to 1.4, which all have the bug, 1.3 passes when it is searched and when it should prove."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for number, verdicts in enumerate(("p", LUCKY, LUCKY, LUCKY, UNLUCKY)):
        plant.add("tool", f"1.{number}", {"tool.py": step(folder, f"1.{number}", verdicts)})
    code = {"shop.py": "import tool\n\ndef run():\n    return tool.run()\n"}
    plant.add("shop", "1.0", code, ("tool==1.0",))
    plant.add("shop", "1.1", code, ("tool==1.4",))
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "package", "--confidence", "0.99")
    named = [change for finding in answer["culprit"] or () for change in finding["packages"]]
    assert named in ([], ["tool 1.0 -> 1.1"], ["tool 1.0 -> 1.4"]), answer["sentence"]
