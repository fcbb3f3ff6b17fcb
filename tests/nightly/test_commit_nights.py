"""Nights of a matrix with the value `main` on an axis: a break is found before its release, down to the commit."""

from __future__ import annotations

import pytest
from commit_project import BACKEND, app, needs
from git_project import GitProject, new_project
from simulation import BROKEN, MESSAGE, Nights

CELL = "step-app-main-case=1"


@pytest.fixture
def project(nights: Nights, tmp_path) -> GitProject:
    """The repository of the app, whose `main` is in the matrix."""
    made = new_project(tmp_path / "clone")
    made.commit("Begin", {**app(), **needs("helper", "other"), "backend.py": BACKEND})
    nights.apps, nights.repository = ["main"], str(made.folder)
    return made


def night_json(nights: Nights, day: str) -> dict:
    return nights.run(day, "--json").json


def test_a_commit_breaks_main_and_another_fixes_it(nights, project):
    """Four nights: good, broken by one of three commits, still broken, fixed."""
    first = night_json(nights, "2024-02-01")
    assert [(cell["name"], cell["standing"]) for cell in first["cells"]] == [(CELL, "good")]
    begun = project.git("rev-parse", "main")
    assert first["cells"][0]["commits"] == {"app": begun}
    assert first["cells"][0]["choice"]["packages.app"] == f"main@{begun[:7]}"

    project.commit("Say more", {"README": "more\n"})
    guilty = project.commit("Rework the step (#12)", app(BROKEN))
    tip = project.commit("Say even more", {"README": "even more\n"})
    told = nights.run("2024-02-02")
    assert told.code == 1
    assert f"step-app-main@{tip[:7]}-case=1" in told.stderr
    broke = night_json(nights, "2024-02-02")
    (known,) = broke["breaks"]
    assert [(one["sha"], one["pull_request"]) for one in known["commits"]] == [(guilty, 12)]
    assert known["commits"][0]["pull_request_link"] == "https://github.com/example/app/pull/12"
    assert known["title"] == f"app {guilty[:10]} breaks step"
    assert guilty[:10] in known["sentence"]
    (report,) = nights.reports().values()
    assert guilty[:10] in report
    assert str(project.folder) not in report

    project.commit("Talk", {"README": "talk\n"})
    quiet = nights.run("2024-02-03")
    assert quiet.code == 0
    assert quiet.stdout.count("\n") == 1
    assert "1 broken" in quiet.stdout

    fix = project.commit("Fix the step (#13)", app())
    fixed = night_json(nights, "2024-02-04")
    assert [cell["standing"] for cell in fixed["cells"]] == ["good"]
    (known,) = fixed["breaks"]
    (good_again,) = known["fixes"]
    assert good_again["changed"].endswith(f" -> {fix[:10]}")
    assert known["closed"]


def test_cells_broken_by_one_commit_share_a_report(nights, project):
    nights.cases = [1, 2]
    nights.run("2024-02-01")
    guilty = project.commit("Rework the step", app(BROKEN))
    project.commit("Talk", {"README": "talk\n"})
    broke = nights.run("2024-02-02")
    assert broke.stderr.count("which one?") == 1
    (report,) = nights.reports().values()
    assert guilty[:10] in report
    assert "case=1" in report
    assert "case=2" in report


def test_a_release_is_distinguished_from_a_commit_of_the_same_day(nights, project):
    """The commits are harmless; the helper's release is not."""
    nights.run("2024-02-01")
    project.commit("Say more", {"README": "more\n"})
    nights.helper("1.1", "2024-02-01", BROKEN)
    (known,) = night_json(nights, "2024-02-02")["breaks"]
    assert known["culprit"] == [{"name": "helper", "before": "1.0", "after": "1.1"}]
    assert "commits" not in known
    (report,) = nights.reports().values()
    assert "helper 1.1" in report


def test_a_commit_that_adds_a_dependency_is_itself_the_cause(nights, project):
    """Its own metadata declares its dependencies, so tonight's environment differs as well."""
    nights.house.add("till", "1.0", files={"till.py": "COINS = 3\n"}, uploaded="2023-06-01T12:00:00Z")
    nights.run("2024-02-01")
    nights.other("1.1", "2024-02-01")
    uses_till = app(f"import till; assert till.COINS == 3; {BROKEN}")
    guilty = project.commit("Use a till (#14)", {**uses_till, **needs("helper", "other", "till")})
    project.commit("Talk", {"README": "talk\n"})
    (known,) = night_json(nights, "2024-02-02")["breaks"]
    assert [one["sha"] for one in known["commits"]] == [guilty]


def test_a_past_night_sees_the_branch_as_it_was(nights, project):
    """Repeating the night takes the same commit, whatever was pushed in between."""
    begun = project.git("rev-parse", "main")
    project.commits = 90  # 90 days later: 2024-02-12
    project.commit("Break the step", app(BROKEN))
    assert night_json(nights, "2024-02-01")["cells"][0]["commits"] == {"app": begun}
    project.git("reset", "--quiet", "--hard", begun)
    project.commits = 2
    project.commit("Break it with an old date", app(BROKEN))
    assert night_json(nights, "2024-02-01")["cells"][0]["commits"] == {"app": begun}


def test_an_unreadable_commit_is_not_a_break(nights, project):
    nights.run("2024-02-01")
    project.commit("Spoil the metadata", {"pyproject.toml": "[project\n"})
    told = nights.run("2024-02-02")
    assert told.code == 3
    assert "could not be judged" in told.stdout
    assert nights.reports() == {}


def test_a_release_and_main_side_by_side(nights, project):
    """The release stays good while main is broken: the break is known before it is released."""
    nights.apps = ["latest", "main"]
    nights.run("2024-02-01")
    guilty = project.commit("Rework the step", app(BROKEN))
    broke = night_json(nights, "2024-02-02")
    assert {cell["name"]: cell["standing"] for cell in broke["cells"]} == {
        "step-app-1.0-case=1": "good",
        CELL: "broken",
    }
    assert broke["breaks"][0]["commits"][0]["sha"] == guilty
    assert MESSAGE in next(cell["reason"] for cell in broke["cells"] if cell["name"] == CELL)


def test_a_commit_that_fails_in_its_first_night_is_broken_before(nights, project):
    project.git("tag", "v1.0")
    project.commit("Break the step", app(BROKEN))
    ended = nights.run("2024-02-01", "--json")
    assert ended.code == 0
    assert [cell["standing"] for cell in ended.json["cells"]] == ["broken before"]
    assert nights.reports() == {}


def test_a_repository_given_by_its_url_is_fetched_every_night(nights, project, tmp_path):
    """A bare repository, as a host has it: what was pushed since the last night is searched."""
    bare = tmp_path / "host" / "app.git"
    project.git("clone", "--quiet", "--bare", ".", str(bare))
    nights.repository = bare.as_uri()
    assert [cell["standing"] for cell in night_json(nights, "2024-02-01")["cells"]] == ["good"]
    guilty = project.commit("Rework the step (#12)", app(BROKEN))
    project.commit("Talk", {"README": "talk\n"})
    project.git("push", "--quiet", str(bare), "main")
    (known,) = night_json(nights, "2024-02-02")["breaks"]
    assert [one["sha"] for one in known["commits"]] == [guilty]
    (report,) = nights.reports().values()
    assert str(tmp_path) not in report
