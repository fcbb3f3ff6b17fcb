"""`harness issues` keeps one issue per cause that the nights or a watch found, with `gh`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attrs import define, evolve
from fake_gh import write_fake_gh
from support import make_answer

from harness.records import as_record
from harness.report.archive import Archive, stored_answer
from harness.store import Store
from harness.watch.project import SCHEMA, NightStatus, ProjectCause, ProjectNight
from harness.watch.state import CellState, CellStatus, Night, NightArchive

FIRST, SECOND, THIRD = (f"2024-02-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def cell(name: str, standing: CellStatus = CellStatus.BROKEN, **more) -> CellState:
    """A cell, broken by one cause if its answer is not another one."""
    by = "ab12" if standing is CellStatus.BROKEN else ""
    return CellState(name, {"parameters.case": name}, standing, broken_by=by, **more)


@define
class Tracker:
    """The fake gh and its stored state."""

    folder: Path
    run: object

    @property
    def issues(self) -> list[dict]:
        """Every issue."""
        return json.loads((self.folder / "issues.json").read_text(encoding="utf-8"))

    @property
    def calls(self) -> list[str]:
        """The arguments of every call."""
        path = self.folder / "calls.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def night(self, *cells: CellState, start: str = FIRST) -> None:
        """Write a night with these cells, and the answer."""
        store = Store(Path.cwd() / "results")
        answer = make_answer("helper", before="1.1", after="1.2", suspects=("1.2",))
        Archive(store).put(evolve(stored_answer(answer, FIRST), id="ab12"))
        NightArchive(store).put(Night("nightly", start, ended=True, cells=cells))


@pytest.fixture
def tracker(harness, tmp_path) -> Tracker:
    """A fake gh on the PATH, in a workflow of some-one/project."""
    folder = write_fake_gh(tmp_path / "gh")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return Tracker(folder, harness.with_environ(PATH=path, GITHUB_REPOSITORY="some-one/project"))


def test_an_issue_is_opened_updated_closed_and_reopened(tracker):
    """There is one issue throughout, and repeating the command changes nothing."""
    tracker.night(cell("a"))
    assert tracker.run("issues").stdout == "open: helper 1.2 breaks step\n"
    assert tracker.run("issues").stdout == "nothing to change in the issues of some-one/project\n"
    tracker.night(cell("a"), cell("b"), start=SECOND)
    assert tracker.run("issues").stdout == "update: helper 1.2 breaks step\n"
    good = (cell(name, CellStatus.GOOD, changed="helper 1.2 -> 1.3") for name in "ab")
    tracker.night(*good, start=THIRD)
    assert tracker.run("issues").stdout == "update: helper 1.2 breaks step\nclose: helper 1.2 breaks step\n"
    (issue,) = tracker.issues
    assert issue["state"] == "CLOSED"
    assert "with helper 1.2 -> 1.3" in issue["body"]
    tracker.night(cell("a"), cell("b"), start=THIRD)
    assert tracker.run("issues").stdout == "reopen: helper 1.2 breaks step\nupdate: helper 1.2 breaks step\n"
    assert [issue["state"] for issue in tracker.issues] == ["OPEN"]


def test_a_dry_run_prints_the_commands_and_changes_nothing(tracker):
    tracker.night(cell("a"))
    said = tracker.run("issues", "--dry-run").stdout
    assert said == (
        "gh issue create --title 'helper 1.2 breaks step' --label harness-nightly --body-file - "
        "--repo some-one/project\n"
    )
    assert tracker.issues == []
    assert [call.split()[:2] for call in tracker.calls] == [["issue", "list"]]


def test_nights_that_judge_nothing_have_an_issue_until_one_judges(tracker):
    silent = cell("a", CellStatus.UNJUDGED, reason="no GPU found")
    tracker.night(silent)
    tracker.night(start=SECOND)  # it could not begin
    assert "open: nightly: nothing was judged since 2024-02-01" in tracker.run("issues", "--unjudged", "2").stdout
    assert tracker.run("issues").stdout == "close: nightly: nothing was judged since 2024-02-01\n"
    tracker.night(silent, start=THIRD)
    assert tracker.run("issues").stdout.startswith("reopen: nightly: nothing was judged since 2024-02-01\n")
    assert "- no GPU found" in tracker.issues[0]["body"]
    tracker.night(cell("a", CellStatus.GOOD), start="2024-02-04T00:00:00+00:00")
    assert tracker.run("issues").stdout == "close: nightly: nothing was judged since 2024-02-01\n"


def test_a_watch_that_judges_nothing_has_an_issue_and_keeps_the_others(tracker):
    unknown = ProjectNight("Newest", NightStatus.UNKNOWN, "The tests could not be run: no space left.")
    for day in ("2024-02-01", "2024-02-02", "2024-02-03"):
        unknown = unknown.after(unknown, day)
    (folder := Path.cwd() / "state").mkdir()
    (folder / "night.json").write_text(json.dumps(as_record(unknown, SCHEMA)), encoding="utf-8")
    assert tracker.run("issues", "--state", "state", "--unjudged", "4").stdout.startswith("nothing to change")
    assert tracker.run("issues", "--state", "state").stdout == "open: Newest: nothing was judged since 2024-02-01\n"
    passes = evolve(unknown, status=NightStatus.PASSES).after(unknown, "2024-02-04")
    (folder / "night.json").write_text(json.dumps(as_record(passes, SCHEMA)), encoding="utf-8")
    assert tracker.run("issues", "--state", "state").stdout == "close: Newest: nothing was judged since 2024-02-01\n"


def test_a_watch_that_an_error_ends_judged_nothing(harness):
    passes = ProjectNight("Newest", NightStatus.PASSES, "The tests pass.")
    command = ("watch", "--run", "pytest", "--with", "app", "--state", "state", "--name", "Newest")
    offline = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"}
    assert harness(*command, **offline).code == 5
    state = Path.cwd() / "state"
    assert not state.exists()  # there is no night yet
    state.mkdir()
    (state / "night.json").write_text(json.dumps(as_record(passes, SCHEMA)), encoding="utf-8")
    assert harness(*command, **offline).code == 5
    night = json.loads((state / "night.json").read_text(encoding="utf-8"))
    assert (night["status"], len(night["unjudged"])) == ("unknown", 1)
    assert night["sentence"].startswith("The night ended early: ")


def test_errors_of_gh_are_shown(tracker):
    (tracker.folder / "offline").touch()
    ended = tracker.run("issues")
    assert ended.code == 5
    assert "gh issue list failed: error connecting to api.github.com" in ended.stderr


def test_without_gh_it_says_so(tracker):
    ended = tracker.run("issues", PATH=str(tracker.folder / "nowhere"))
    assert ended.code == 2
    assert "gh is not installed" in ended.stderr


def test_the_state_of_a_watch_has_issues_of_its_own(tracker):
    sentence = "2 tests fail since numpy 2.0.0"
    night = ProjectNight("Newest", NightStatus.BROKEN, sentence)
    night = evolve(night, causes=(ProjectCause("ab", sentence, "**It broke.**"),))
    folder = Path.cwd() / "state"
    folder.mkdir()
    (folder / "night.json").write_text(json.dumps(as_record(night, SCHEMA)), encoding="utf-8")
    assert tracker.run("issues", "--state", "state").stdout == "open: Newest: 2 tests fail since numpy 2.0.0\n"
    assert any("harness-watch" in call for call in tracker.calls)
    passes = evolve(night, status=NightStatus.PASSES, sentence="The tests pass.", causes=())
    (folder / "night.json").write_text(json.dumps(as_record(passes, SCHEMA)), encoding="utf-8")
    assert tracker.run("issues", "--state", "state").stdout == "close: Newest: 2 tests fail since numpy 2.0.0\n"
    missing = tracker.run("issues", "--state", "nowhere")
    assert (missing.code, "there is no night of harness watch" in missing.stderr) == (2, True)
