"""`harness issues` keeps one issue per break with `gh`; `harness upstream` prints one and sends nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attrs import define, evolve
from fake_gh import write_fake_gh

from harness.model import Change
from harness.nightly.record import Break, Fix, Night, NightArchive
from harness.store import Store

FIRST, SECOND = "2024-02-01T00:00:00+00:00", "2024-02-02T00:00:00+00:00"
BREAK = Break(
    id="ab12",
    pattern="p",
    title="helper 1.2 breaks step",
    sentence="helper 1.2 broke it.",
    repro="step",
    cells=("nightly: a",),
    first_seen=FIRST,
    last_seen=FIRST,
    culprit=(Change("helper", "1.1", "1.2"),),
)


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

    def night(self, *breaks: Break, start: str = FIRST) -> None:
        """Write a night with these breaks."""
        NightArchive(Store(Path.cwd() / "results")).put(Night("nightly", start, ended=True, breaks=breaks))


@pytest.fixture
def tracker(harness, tmp_path) -> Tracker:
    """A fake gh on the PATH, in a workflow of some-one/project."""
    folder = write_fake_gh(tmp_path / "gh")
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return Tracker(folder, harness.with_environ(PATH=path, GITHUB_REPOSITORY="some-one/project"))


def test_an_issue_is_opened_updated_closed_and_reopened(tracker):
    """There is one issue throughout, and repeating the command changes nothing."""
    tracker.night(BREAK)
    assert tracker.run("issues").stdout == "open: helper 1.2 breaks step\n"
    assert tracker.run("issues").stdout == "nothing to change in the issues of some-one/project\n"
    wider = evolve(BREAK, cells=("nightly: a", "nightly: b"))
    tracker.night(wider, start=SECOND)
    assert tracker.run("issues").stdout == "update: helper 1.2 breaks step\n"
    tracker.night(evolve(wider, fixes=(Fix("nightly: a", "helper 1.3", SECOND),), closed=SECOND), start=SECOND)
    assert tracker.run("issues").stdout == "update: helper 1.2 breaks step\nclose: helper 1.2 breaks step\n"
    (issue,) = tracker.issues
    assert issue["state"] == "CLOSED"
    assert "by helper 1.3" in issue["body"]
    tracker.night(wider, start=SECOND)
    assert tracker.run("issues").stdout == "reopen: helper 1.2 breaks step\nupdate: helper 1.2 breaks step\n"
    assert [issue["state"] for issue in tracker.issues] == ["OPEN"]


def test_a_dry_run_prints_the_commands_and_changes_nothing(tracker):
    tracker.night(BREAK)
    said = tracker.run("issues", "--dry-run").stdout
    assert said == (
        "gh issue create --title 'helper 1.2 breaks step' --label harness-nightly --body-file - "
        "--repo some-one/project\n"
    )
    assert tracker.issues == []
    assert [call.split()[:2] for call in tracker.calls] == [["issue", "list"]]


def test_another_repository_is_refused_before_anything_is_called(tracker):
    tracker.night(BREAK)
    ended = tracker.run("issues", "--repository", "huggingface/transformers")
    assert ended.code == 2
    assert "is not this repository" in ended.stderr
    assert "harness upstream" in ended.stderr
    assert tracker.calls == []


def test_errors_of_gh_are_shown(tracker):
    (tracker.folder / "offline").touch()
    ended = tracker.run("issues")
    assert ended.code == 5
    assert "gh issue list failed: error connecting to api.github.com" in ended.stderr


def test_without_gh_it_says_so(tracker):
    ended = tracker.run("issues", PATH=str(tracker.folder / "nowhere"))
    assert ended.code == 2
    assert "gh is not installed" in ended.stderr


def test_upstream_prints_an_issue_also_as_json_and_does_not_call_gh(tracker, write_repro):
    """The target is the repository in the culprit's metadata; here there is none."""
    write_repro("brittle")
    tracker.run("bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--confirm", "1")
    ended = tracker.run("upstream")
    assert ended.code == 1
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("repository: unknown: the metadata of brittle names no repository on GitHub")
    assert lines[1] == "title: brittle 1.6 breaks brittle_step"
    assert lines[3].startswith("**brittle_step fails since brittle 1.6")
    assert tracker.calls == []
    told = tracker.run("upstream", "--format", "json").json
    assert (told["package"], told["repository"], told["command"]) == ("brittle", None, None)
    assert told["body"].startswith("**brittle_step fails since brittle 1.6")
