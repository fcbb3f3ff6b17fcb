"""Repositories of several projects, incomplete clones, and tags that point to the wrong commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from git_project import GitProject, new_project
from planted import Planted, levels
from support import SIGNED, Ended, repro_text

STEP = 'def run():\n    """Take the step."""\n    return {0}\n'
BROKEN = "def run():\n    raise RuntimeError('the step is broken')\n"
PYPROJECT = '[project]\nname = "{0}"\nversion = "{1}"\ndependencies = [{2}]\n'


def release(plant: Planted, project: GitProject, version: str, root: str) -> None:
    """Make the wheel of what is checked out, and tag it with the project's name."""
    folder = project.folder / root
    files = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("shop/*.py")}
    plant.add("shop", version, files)


def many(plant: Planted, tmp_path: Path) -> tuple[GitProject, str]:
    """A repository of two projects, with tags of both; one of the commits between shop 1.0 and 1.1 breaks the step."""
    project = new_project(tmp_path / "many")
    project.commit(
        "Begin",
        {
            "pyproject.toml": "[tool.black]\nline-length = 100\n",
            "packages/shop/pyproject.toml": PYPROJECT.format("shop", "1.0", ""),
            "packages/shop/src/shop/__init__.py": "from shop.step import run\n",
            "packages/shop/src/shop/step.py": STEP.format(0),
            "packages/till/pyproject.toml": PYPROJECT.format("till", "7.0", ""),
            "packages/till/src/till/__init__.py": "COINS = 1\n",
        },
    )
    project.git("tag", "shop-1.0")
    release(plant, project, "1.0", "packages/shop/src")
    project.commit("Count coins", {"packages/till/src/till/__init__.py": "COINS = 2\n"})
    project.git("tag", "v1.1")  # of the other project
    project.commit("Count steps", {"packages/shop/src/shop/step.py": STEP.format(1)})
    guilty = project.commit("Rework the step (#7)", {"packages/shop/src/shop/step.py": BROKEN})
    project.commit("Count more coins", {"packages/till/src/till/__init__.py": "COINS = 3\n"})
    project.git("tag", "shop-1.1")
    release(plant, project, "1.1", "packages/shop/src")
    return project, guilty


def asked(plant: Planted, *words: str) -> Ended:
    folder = plant.harness.folder / "repros"
    folder.mkdir(exist_ok=True)
    tool = SIGNED + "\n[tool.harness.subjects.shop]\n"
    (folder / "shop_step.py").write_text(repro_text("shop", tool=tool, body="import shop\n\nshop.run()\n"))
    return plant.harness(*words, *(("--confirm", "1") if words[0] == "bisect" else ()))


@pytest.mark.parametrize("inside", ["", "packages/shop"])
def test_a_project_in_a_folder_of_its_repository(plant: Planted, tmp_path: Path, inside: str) -> None:
    """Found from its repository or from its own folder; of the commits, those that changed the file are run."""
    project, guilty = many(plant, tmp_path)
    git = ("--git", str(project.folder / inside), "--json")
    words = ("bisect", "shop", "--repro", "shop_step")
    finding = levels(asked(plant, *words, "--good", "1.0", "--bad", "1.1", "--depth", "commit", *git).json)["commit"]
    assert ([commit["sha"] for commit in finding["commits"]], finding["runs"]) == ([guilty], 3)
    between = asked(plant, *words, "--good", "1.0", "--bad", "main", *git).json
    assert between["first_bad"] == guilty[:10]


def test_what_a_project_in_a_folder_needs_is_its_own(plant: Planted, tmp_path: Path) -> None:
    """The commit asks for another package in the file of its own folder."""
    project, _ = many(plant, tmp_path)
    plant.house.add("coins", "1.0", files={"coins.py": "ONE = 1\n"}, uploaded="2023-06-01T12:00:00Z")
    uses = {
        "packages/shop/pyproject.toml": PYPROJECT.format("shop", "1.2", '"coins"'),
        "packages/shop/src/shop/__init__.py": "import coins\nfrom shop.step import run\n",
        "packages/shop/src/shop/step.py": STEP.format(2),
    }
    good = project.commit("Use coins", uses)
    guilty = project.commit("Break it again", {"packages/shop/src/shop/step.py": BROKEN})
    words = ("bisect", "shop", "--repro", "shop_step", "--git", str(project.folder), "--json")
    assert asked(plant, *words, "--good", good, "--bad", "main").json["first_bad"] == guilty[:10]


@pytest.mark.parametrize("named", ["shop @ {0}@main", "shop @ {0}/packages/shop@main", "{0}/packages/shop@main"])
def test_a_commit_of_a_project_in_a_folder_takes_the_place_of_a_release(
    plant: Planted, tmp_path: Path, named: str
) -> None:
    project, _ = many(plant, tmp_path)
    fixed = project.commit("Fix the step", {"packages/shop/src/shop/step.py": STEP.format(3)})
    ended = asked(plant, "probe", "shop_step", "--with", named.format(project.folder))
    assert ended.code == 0, ended.stdout
    assert fixed[:10] in ended.stderr


@pytest.mark.parametrize("at", ["", "@main"])
def test_a_folder_of_another_project_than_the_named_one_is_refused(plant: Planted, tmp_path: Path, at: str) -> None:
    project, _ = many(plant, tmp_path)
    ended = asked(plant, "probe", "shop_step", "--with", f"shop @ {project.folder}/packages/till{at}")
    assert (ended.code, ended.stderr.count("\n")) == (2, 2)
    assert "till" in ended.stderr


def cloned(project: GitProject, target: Path, *options: str) -> Path:
    """A clone of a project, as a host would serve it."""
    project.git("config", "uploadpack.allowFilter", "true")
    subprocess.run(
        ["git", "clone", "--quiet", "--no-checkout", *options, project.folder.as_uri(), str(target)],
        check=True,
        capture_output=True,
    )
    return target


def incomplete(project: GitProject, target: Path, kind: str) -> Path:
    """A clone that lacks something."""
    if kind in ("shallow", "worktree of a shallow clone"):
        clone = cloned(project, target / "clone", "--depth=2")
        if kind == "shallow":
            return clone
        add = ["git", "-C", str(clone), "worktree", "add", "--quiet", str(target / "beside"), "HEAD"]
        subprocess.run(add, check=True, capture_output=True)
        return target / "beside"
    if kind == "empty":
        return new_project(target / "clone").folder
    return cloned(project, target / "clone", {"partial": "--filter=blob:none", "treeless": "--filter=tree:0"}[kind])


def bisected(plant: Planted, git: Path, good: str, bad: str) -> Ended:
    ends = ("--good", good, "--bad", bad, "--depth", "commit", "--git", str(git))
    return asked(plant, "bisect", "shop", "--repro", "shop_step", *ends, "--json")


LACKS = {
    "shallow": "--unshallow",
    "worktree of a shallow clone": "--unshallow",
    "partial": "--refetch",
    "treeless": "--refetch",
    "empty": "no tag",
}


@pytest.mark.parametrize("kind", LACKS)
def test_what_an_incomplete_clone_lacks_costs_only_the_commit(plant: Planted, tmp_path: Path, kind: str) -> None:
    """The release and its lines stay, and a note says how to complete the clone, which is never changed."""
    clone = incomplete(many(plant, tmp_path)[0], tmp_path / "c", kind)
    before = sorted(map(str, clone.rglob("*")))
    answer = bisected(plant, clone, "1.0", "1.1").json
    found = levels(answer)
    assert (answer["first_bad"], "region" in found, "commit" in found) == ("1.1", True, False)
    assert LACKS[kind] in " ".join(note for finding in answer["culprit"] for note in finding["notes"])
    assert sorted(map(str, clone.rglob("*"))) == before


@pytest.mark.parametrize("kind", ["shallow", "partial", "treeless", "empty"])
def test_between_commits_an_incomplete_clone_is_one_sentence(plant: Planted, tmp_path: Path, kind: str) -> None:
    clone = incomplete(many(plant, tmp_path)[0], tmp_path / "c", kind)
    ended = bisected(plant, clone, "1.0", "main")
    assert (ended.code, json.loads(ended.stdout)["exit_code"], ended.stderr.count("\n")) == (2, 2, 2)
    assert (LACKS[kind] if kind != "empty" else "no branches") in ended.stderr


def test_a_bare_clone_without_a_file_that_no_run_needs(plant: Planted, tmp_path: Path) -> None:
    """Only the history of the lines may read it; no run does."""
    project, guilty = many(plant, tmp_path)
    clone = cloned(project, tmp_path / "bare.git", "--bare", "--no-local")
    unpack = (
        "mv objects/pack/*.pack . && for pack in *.pack; do git unpack-objects -q < $pack; done && rm objects/pack/*"
    )
    subprocess.run(unpack, shell=True, cwd=clone, check=True)
    blob = project.git("rev-parse", "v1.1:packages/till/src/till/__init__.py")
    (clone / "objects" / blob[:2] / blob[2:]).unlink()
    answer = bisected(plant, clone, "1.0", "1.1").json
    assert [commit["sha"] for commit in levels(answer)["commit"]["commits"]] == [guilty]


def orphan(project: GitProject) -> str:
    """A commit that has no history in common with main."""
    project.git("checkout", "--quiet", "--orphan", "lone")
    project.git("rm", "-rfq", ".")
    sha = project.commit("Write something else", {"index.html": "x\n"})
    project.git("checkout", "--quiet", "main")
    return sha


@pytest.mark.parametrize("place", ["shop-1.0", "main~2", "orphan", "main:pyproject.toml"])
def test_a_tag_on_the_wrong_commit_never_names_another_one(plant: Planted, tmp_path: Path, place: str) -> None:
    """It is on the commit of the older release, on one before the break, on another history, or on a file."""
    project, guilty = many(plant, tmp_path)
    project.git("tag", "--force", "shop-1.1", orphan(project) if place == "orphan" else place)
    answer = bisected(plant, project.folder, "1.0", "1.1").json
    assert answer["first_bad"] == "1.1"
    assert "commit" not in levels(answer)
    assert any("no commit is named" in note for finding in answer["culprit"] for note in finding["notes"])
    between = bisected(plant, project.folder, "1.0", "main").json
    assert between["first_bad"] == guilty[:10]


def test_tags_in_the_wrong_order_name_no_commit(plant: Planted, tmp_path: Path) -> None:
    project, _ = many(plant, tmp_path)
    first, last = project.git("rev-parse", "shop-1.0"), project.git("rev-parse", "shop-1.1")
    project.git("tag", "--force", "shop-1.0", last)
    project.git("tag", "--force", "shop-1.1", first)
    found = levels(bisected(plant, project.folder, "1.0", "1.1").json)
    assert "region" in found
    assert "commit" not in found
