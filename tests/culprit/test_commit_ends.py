"""Ends that are commits: a tag and `main`, hashes, a fix; the environment is that of the previous release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from git_project import GitProject, new_project
from planted import Planted
from support import SIGNED, Ended, repro_text

STEP = 'def run():\n    """Take the step."""\n    return {0}\n'
BROKEN = "def run():\n    raise RuntimeError('the step is broken')\n"
USES_TILL = "import till\n\n\ndef run():\n    return till.COINS\n"
PYPROJECT = '[project]\nname = "shop"\nversion = "{0}"\ndependencies = [{1}]\n'


@pytest.fixture
def project(tmp_path: Path, plant: Planted) -> GitProject:
    """A project with release 1.0 and five commits after it; the fourth breaks it."""
    made = new_project(tmp_path / "clone")
    start = {"pyproject.toml": PYPROJECT.format("1.0", ""), "shop/step.py": STEP.format(0)}
    made.commit("Begin", {**start, "shop/__init__.py": "from shop.step import run\n"})
    made.git("tag", "v1.0")
    plant.add("shop", "1.0", {"shop/__init__.py": "from shop.step import run\n", "shop/step.py": STEP.format(0)})
    for number in range(1, 4):
        made.commit(f"Count to {number}", {"shop/step.py": STEP.format(number)})
    made.commit("Rework the step (#7)", {"shop/step.py": BROKEN})
    made.commit("Add a helper", {"shop/helper.py": "x = 1\n"})
    return made


ONCE = ("--confirm", "1")


def asked(plant: Planted, project: GitProject, *options: str, body: str = "import shop\n\nshop.run()\n") -> Ended:
    """The command, between commits of the project."""
    folder = plant.harness.folder / "repros"
    folder.mkdir(exist_ok=True)
    tool = SIGNED + "\n[tool.harness.subjects.shop]\n"
    (folder / "shop_step.py").write_text(repro_text("shop", tool=tool, body=body), encoding="utf-8")
    return plant.harness("bisect", "shop", "--repro", "shop_step", "--git", str(project.folder), *options, "--json")


def answered(*given: Any, **more: Any) -> Any:
    """The JSON output of the command, with few repetitions."""
    return asked(*given, *ONCE, **more).json


def test_hashes_and_no_good_end(plant: Planted, project: GitProject) -> None:
    """Without --good the good end is the newest release before the bad commit."""
    guilty = project.git("rev-parse", "main~1")
    answer = answered(plant, project, "--bad", guilty[:9])
    assert (answer["status"], answer["first_bad"]) == ("found", guilty[:10])


def test_what_a_newer_commit_needs_is_installed(plant: Planted, project: GitProject) -> None:
    """The bad commit requires a package that no release of the project required."""
    plant.house.add("till", "1.0", files={"till.py": "COINS = 3\n"}, uploaded="2023-06-01T12:00:00Z")
    needs = {
        "pyproject.toml": PYPROJECT.format("1.1.dev0", '"till"'),
        "shop/__init__.py": USES_TILL,
    }
    project.commit("Use a till", {**needs, "shop/step.py": STEP.format(0)})
    good = project.git("rev-parse", "main")
    guilty = project.commit("Drop it", {"shop/__init__.py": f"import till\n{BROKEN}"})
    project.commit("Talk", {"shop/helper.py": "x = 2\n"})
    answer = answered(plant, project, "--good", good, "--bad", "main")
    assert (answer["status"], answer["first_bad"]) == ("found", guilty[:10])


def test_each_commit_runs_with_the_packages_of_its_day(plant: Planted, project: GitProject) -> None:
    """Only another package changes, between the second and the third of these commits."""
    broken = "raise RuntimeError('the step is broken')\n"
    plant.house.add("till", "1.0", files={"till.py": "COINS = 3\n"}, uploaded="2023-06-01T12:00:00Z")
    needs = {"pyproject.toml": PYPROJECT.format("1.1.dev0", '"till"'), "shop/__init__.py": USES_TILL}
    good = project.commit("Use a till", needs)
    shas = [project.commit(f"Talk {number}", {"shop/helper.py": f"x = {number}\n"}) for number in range(2, 7)]
    day = project.git("show", "--no-patch", "--format=%cs", shas[2])
    plant.house.add("till", "2.0", files={"till.py": broken}, uploaded=f"{day}T00:00:00Z")
    answer = answered(plant, project, "--good", good, "--bad", "main", "--as-of", "era")
    assert (answer["status"], answer["first_bad"]) == ("found", shas[2][:10])
    assert answered(plant, project, "--good", good, "--bad", "main")["status"] == "not-a-regression"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (("--good", "main", "--bad", "main"), "nothing between"),
        (("--good", "2024-01-01", "--bad", "main"), "day"),
    ],
)
def test_mistakes_give_one_sentence(plant: Planted, project: GitProject, ends: tuple[str, ...], said: str) -> None:
    ended = asked(plant, project, *ends)
    assert ended.code == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_repository_in_the_metadata_is_used(plant: Planted, project: GitProject) -> None:
    """With `--git auto`; git is configured to find that address in a folder."""
    files = {"shop/__init__.py": "from shop.step import run\n", "shop/step.py": STEP.format(0)}
    plant.house.add("shop", "1.1", files=files, source_url="https://github.com/example/shop")
    settings = plant.harness.folder / "settings" / "git" / "config"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[url "file://{project.folder}"]\n\tinsteadOf = https://github.com/example/shop\n')
    plant.harness = plant.harness.with_environ(XDG_CONFIG_HOME=str(settings.parent.parent))
    guilty = project.git("rev-parse", "main~1")
    asked(plant, project, "--good", "main", "--bad", "main")  # it writes the repro, and refuses
    words = (
        "bisect",
        "shop",
        "--repro",
        "shop_step",
        "--git",
        "auto",
        "--good",
        "v1.0",
        "--bad",
        "main",
        *ONCE,
        "--json",
    )
    answer = plant.harness(*words).json
    assert (answer["status"], answer["first_bad"]) == ("found", guilty[:10])


def test_a_bisection_between_two_days_finds_the_commit(plant: Planted, project: GitProject, tmp_path: Path) -> None:
    """The commit is in the JSON, and `--git` alone requests that depth."""
    guilty = project.git("rev-parse", "main~1")
    project.git("tag", "v1.1")
    plant.add("shop", "1.1", {"shop/__init__.py": "from shop.step import run\n", "shop/step.py": BROKEN})
    lock = plant.harness.folder / "old.txt"
    lock.write_text("shop==1.0\n")
    new = plant.harness.folder / "new.txt"
    new.write_text("shop==1.1\n")
    ends = ("--good", str(lock), "--bad", str(new), "--git", str(project.folder))
    words = ("bisect", "--run", "python -c 'import shop; shop.run()'", "--with", "shop", *ends, *ONCE, "--json")
    answer = plant.harness(*words).json
    (culprit,), (commit,) = answer["failures"][0]["culprits"], answer["culprit"][-1]["commits"]
    assert (culprit["package"], commit["sha"], commit["pull_request"]) == ("shop", guilty, 7)
