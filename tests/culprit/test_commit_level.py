"""The commit level on small repositories: linear, with merges, renames, a src layout, a version file."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_project import GitProject, new_project
from planted import Planted, levels, proved, told

NOISE = 'def helper_{0}(value):\n    """Helper {0}."""\n    return value + {0}\n'
STEP = 'def run():\n    """Take the step."""\n    return 1\n'
BROKEN_STEP = 'def run():\n    """Take the step."""\n    raise RuntimeError(\'the step is broken\')\n'


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    """A project whose release 1.0 works."""
    made = new_project(tmp_path / "shop-clone")
    made.commit("Begin", {"shop/__init__.py": "from shop.step import run\n", "shop/step.py": STEP, "setup.py": ""})
    made.git("tag", "v1.0")
    return made


def release(plant: Planted, project: GitProject, version: str, prefix: str = "", **generated: str) -> None:
    """Build the wheel of the current checkout."""
    root = project.folder / f"{prefix}shop"
    files = {f"shop/{path.relative_to(root)}": path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    plant.add("shop", version, {**files, **generated})


def noise(project: GitProject, number: int, prefix: str = "") -> str:
    """A commit without any effect on a run."""
    return project.commit(f"Add helper {number} (#{number})", {f"{prefix}shop/h{number}.py": NOISE.format(number)})


def found(plant: Planted, project: GitProject, *options: str):
    """The finding of the commit level."""
    ends = ("--good", "1.0", "--bad", "1.1", "--depth", "commit", "--git", str(project.folder))
    return levels(plant.answer(*ends, *options))["commit"]


def test_of_the_commits_only_those_that_changed_the_culprits_file_are_run(plant: Planted, project: GitProject) -> None:
    release(plant, project, "1.0")
    for number in range(1, 6):
        noise(project, number)
    guilty = project.commit("Rework the step (#42)", {"shop/step.py": BROKEN_STEP})
    for number in range(6, 10):
        noise(project, number)
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    answer = plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "commit", "--git", str(project.folder))
    finding = levels(answer)["commit"]
    assert [commit["sha"] for commit in finding["commits"]] == [guilty]
    assert guilty[:10] in told(answer, "Culprit")
    assert finding["commits"][0]["pull_request"] == 42
    assert finding["runs"] == 2
    assert proved(finding)


def test_lines_moved_by_a_rename_lead_to_the_commit_that_changed_them(plant: Planted, project: GitProject) -> None:
    """No commit that changed the renamed file is the first bad one, so all commits are searched."""
    release(plant, project, "1.0")
    noise(project, 1)
    guilty = project.commit("Rework the step", {"shop/step.py": BROKEN_STEP})
    noise(project, 2)
    project.commit(
        "Rename",
        {"shop/step.py": None, "shop/stride.py": BROKEN_STEP, "shop/__init__.py": "from shop.stride import run\n"},
    )
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    assert [commit["sha"] for commit in found(plant, project)["commits"]] == [guilty]


def test_without_lines_the_commits_are_bisected(plant: Planted, project: GitProject) -> None:
    """The break is in data, and many commits touch the line that fails."""
    release(plant, project, "1.0")
    limit = "def run():\n    limit = {0}\n    if limit > 7:\n        raise RuntimeError('the step is broken')\n"
    shas = [project.commit(f"Set the limit to {n}", {"shop/step.py": limit.format(n)}) for n in range(1, 14)]
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    finding = found(plant, project, "--lanes", "1")  # a second lane runs some more, ahead
    assert [commit["sha"] for commit in finding["commits"]] == [shas[7]]
    assert finding["runs"] <= 2 + 4  # the ends, log2 of thirteen


def test_a_merge_is_bisected_inside(plant: Planted, project: GitProject) -> None:
    release(plant, project, "1.0")
    noise(project, 1)
    project.git("checkout", "--quiet", "-b", "side")
    noise(project, 20)
    guilty = project.commit("Rework the step", {"shop/step.py": BROKEN_STEP})
    noise(project, 21)
    project.git("checkout", "--quiet", "main")
    noise(project, 2)
    project.merge("side", "Merge pull request #9 from someone/side")
    noise(project, 3)
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    assert [commit["sha"] for commit in found(plant, project)["commits"]] == [guilty]


def test_a_src_layout_with_a_generated_version_file_works(plant: Planted, tmp_path: Path) -> None:
    project = new_project(tmp_path / "src-clone")
    start = "from shop.step import run\nfrom shop._version import version\n"
    project.commit("Begin", {"src/shop/__init__.py": start, "src/shop/step.py": STEP, "pyproject.toml": ""})
    project.git("tag", "shop-1.0")
    release(plant, project, "1.0", "src/", **{"shop/_version.py": "version = '1.0'\n"})
    noise(project, 1, "src/")
    guilty = project.commit("Rework the step", {"src/shop/step.py": BROKEN_STEP})
    project.git("tag", "shop-1.1")
    release(plant, project, "1.1", "src/", **{"shop/_version.py": "version = '1.1'\n"})
    finding = found(plant, project)
    assert [commit["sha"] for commit in finding["commits"]] == [guilty]
    assert any("_version.py" in note for note in finding["notes"])


def test_untestable_commits_in_a_row_leave_several_suspects(plant: Planted, project: GitProject) -> None:
    release(plant, project, "1.0")
    odd = "def run():\n    raise ValueError('something else')\n"
    noise(project, 1)
    first = project.commit("Break it otherwise", {"shop/step.py": odd})
    second = project.commit("Rework the step", {"shop/step.py": odd + "# reworked\n"})
    third = project.commit("Break it as today", {"shop/step.py": BROKEN_STEP})
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    answer = levels(plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "commit", "--git", str(project.folder)))
    assert "commit" not in answer
    notes = " ".join(note for finding in answer.values() for note in finding["notes"])
    assert all(sha[:10] in notes for sha in (first, second, third))


def test_a_patch_release_is_searched_from_its_branch_point(plant: Planted, project: GitProject) -> None:
    noise(project, 1)
    project.git("checkout", "--quiet", "-b", "patches")
    project.commit("Backport", {"shop/patch.py": "x = 1\n"})
    project.git("tag", "--force", "v1.0")
    release(plant, project, "1.0")
    project.git("checkout", "--quiet", "main")
    noise(project, 2)
    guilty = project.commit("Rework the step", {"shop/step.py": BROKEN_STEP})
    project.git("tag", "v1.1")
    release(plant, project, "1.1")
    assert [commit["sha"] for commit in found(plant, project)["commits"]] == [guilty]


def test_a_missing_repository_is_reported(plant: Planted, project: GitProject) -> None:
    release(plant, project, "1.0")
    project.commit("Rework the step", {"shop/step.py": BROKEN_STEP})
    release(plant, project, "1.1")
    answer = levels(plant.answer("--good", "1.0", "--bad", "1.1", "--depth", "commit", "--git", "auto"))
    assert "commit" not in answer
    assert any("no commit is named" in note for finding in answer.values() for note in finding["notes"])
