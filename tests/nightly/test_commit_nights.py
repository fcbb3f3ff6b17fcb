"""Nights of a matrix with an axis value `main`: a break is found before its release, down to the commit."""

from __future__ import annotations

import json

import pytest
from git_project import GitProject, new_project
from simulation import APP, BROKEN, MESSAGE, Nights

# A build backend of the project itself (PEP 517): it needs nothing from an index.
BACKEND = """
import pathlib, tomllib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    needs = "".join(f"Requires-Dist: {one}\\n" for one in project["dependencies"])
    name = "app-2.0.dev0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("app.py")
        inside = "app-2.0.dev0.dist-info"
        head = "Metadata-Version: 2.1\\nName: app\\nVersion: 2.0.dev0\\n"
        link = "Project-URL: Source, https://github.com/example/app\\n"
        wheel.writestr(f"{inside}/METADATA", head + link + needs)
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{inside}/RECORD", "")
    return name
"""
PYPROJECT = """
[project]
name = "app"
version = "2.0.dev0"
dependencies = {needs}
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
CELL = "step-app-main-case=1"


def app(body: str = "pass") -> dict[str, str | None]:
    """The app as a commit has it."""
    return {"app.py": APP.format(body=body)}


def needs(*names: str) -> dict[str, str | None]:
    """What the app says that it needs."""
    return {"pyproject.toml": PYPROJECT.format(needs=json.dumps(names))}


@pytest.fixture
def project(nights: Nights, tmp_path) -> GitProject:
    """The repository of the app, of which the matrix takes `main`."""
    made = new_project(tmp_path / "clone")
    made.commit("Begin", {**app(), **needs("helper", "other"), "backend.py": BACKEND})
    nights.apps, nights.repository = ["main"], str(made.folder)
    return made


def night_json(nights: Nights, day: str) -> dict:
    return nights.run(day, "--json").json


def test_a_commit_breaks_main_and_another_fixes_it(nights, project):
    """Three nights and a fourth: good, broken by one of three commits, still broken, fixed."""
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
    assert f"step-app-main@{tip[:7]}-case=1: running" in told.stderr
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
    project.commit("Talk more", {"README": "talk more\n"})
    fixed = night_json(nights, "2024-02-04")
    assert [cell["standing"] for cell in fixed["cells"]] == ["good"]
    (known,) = fixed["breaks"]
    (by,) = known["fixes"]
    assert f"app commit {fix[:10]} (Fix the step (#13)" in by["by"]
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
    assert known["culprit"] == ["helper 1.0 -> 1.1"]
    assert known["commits"] == []
    (report,) = nights.reports().values()
    assert "helper 1.1" in report


def test_a_commit_that_adds_a_dependency_is_itself_the_cause(nights, project):
    """Its dependencies are those that it says itself, so tonight's environment differs too."""
    nights.house.add("till", "1.0", files={"till.py": "COINS = 3\n"}, uploaded="2023-06-01T12:00:00Z")
    nights.run("2024-02-01")
    nights.other("1.1", "2024-02-01")
    uses_till = app(f"import till; assert till.COINS == 3; {BROKEN}")
    guilty = project.commit("Use a till (#14)", {**uses_till, **needs("helper", "other", "till")})
    project.commit("Talk", {"README": "talk\n"})
    (known,) = night_json(nights, "2024-02-02")["breaks"]
    assert [one["sha"] for one in known["commits"]] == [guilty]


def test_a_past_night_sees_the_branch_as_it_was(nights, project):
    """And the same night again takes the same commit, whatever was pushed in between."""
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
