"""Commits of a package with compiled parts are built once each, and only with permission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from git_project import GitProject, new_project
from planted import Planted, levels
from support import SIGNED, Ended, repro_text
from support import own_cache as cache  # noqa: F401 - a fixture

# A build backend of the project itself (PEP 517), which "compiles" fast.c to fast.so.
BACKEND = """
import pathlib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    source = pathlib.Path("fast.c").read_text()
    if "#error" in source:
        raise SystemExit("the compiler says: #error")
    with zipfile.ZipFile(pathlib.Path(folder, "shop-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.write("shop/__init__.py")
        wheel.writestr("shop/fast.so", source.upper())
        inside = "shop-1.0.dist-info"
        wheel.writestr(f"{inside}/METADATA", "Metadata-Version: 2.1\\nName: shop\\nVersion: 1.0\\n")
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n")
        wheel.writestr(f"{inside}/RECORD", "")
    return "shop-1.0-py3-none-any.whl"
"""
PYPROJECT = """
[project]
name = "shop"
version = "1.0"
dependencies = []
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
START = """from pathlib import Path


def run():
    if "BROKEN" in Path(__file__).with_name("fast.so").read_text():
        raise RuntimeError("the step is broken")
"""


@pytest.fixture
def project(tmp_path: Path, plant: Planted) -> GitProject:
    """Two releases with commits between them; the third commit after 1.0 breaks the compiled part, the second does not
    compile."""
    made = new_project(tmp_path / "clone")
    files = {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "shop/__init__.py": START, "fast.c": "works"}
    made.commit("Begin", files)
    made.git("tag", "v1.0")
    plant.add("shop", "1.0", {"shop/__init__.py": START, "shop/fast.so": "WORKS"})
    made.commit("Say more", {"fast.c": "works well"})
    made.commit("Try something", {"fast.c": "#error"})
    made.commit("Take it back", {"fast.c": "works again"})
    made.commit("Rework the fast part (#3)", {"fast.c": "broken"})
    made.commit("Say less", {"fast.c": "broken."})
    made.git("tag", "v1.1")
    plant.add("shop", "1.1", {"shop/__init__.py": START, "shop/fast.so": "BROKEN."})
    return made


def asked(plant: Planted, project: GitProject, *options: str) -> Ended:
    """Run the command with the repro that uses the compiled part."""
    folder = plant.harness.folder / "repros"
    folder.mkdir(exist_ok=True)
    text = repro_text("shop", tool=SIGNED + "\n[tool.harness.subjects.shop]\n", body="import shop\n\nshop.run()\n")
    (folder / "shop_step.py").write_text(text, encoding="utf-8")
    return plant.harness(
        "bisect", "shop", "--repro", "shop_step", "--git", str(project.folder), "--confirm", "1", *options, "--json"
    )


def steps_of(answer: Any) -> dict[str, str]:
    """The verdict of each commit."""
    return {step["release"]: step["verdict"] for step in answer["steps"]}


def test_nothing_is_built_without_permission(plant: Planted, project: GitProject) -> None:
    ended = asked(plant, project, "--good", "v1.0", "--bad", "main")
    assert ended.code == 2
    assert "--build shop" in ended.stderr
    assert not list((plant.environments.parent / "projects").glob("*/built*"))


def test_between_two_commits_each_is_built(plant: Planted, project: GitProject) -> None:
    guilty = project.git("rev-parse", "main~1")
    answer = asked(plant, project, "--good", "v1.0", "--bad", "main", "--build", "shop").json
    assert (answer["status"], answer["first_bad"]) == ("found", guilty[:10]), answer["sentence"]
    assert steps_of(answer).get(project.git("rev-parse", "main~3")[:10]) in ("skip", None)


def test_a_commit_that_does_not_compile_is_skipped(plant: Planted, project: GitProject) -> None:
    damaged = project.git("rev-parse", "main~3")
    ended = asked(plant, project, "--good", "v1.0", "--bad", damaged, "--build", "shop")
    assert steps_of(ended.json)[damaged[:10]] == "skip"
    assert "could not be built" in ended.json["steps"][0]["reason"]


def test_the_commit_level_also_builds(plant: Planted, project: GitProject) -> None:
    ends = ("--good", "1.0", "--bad", "1.1", "--depth", "commit")
    without = levels(asked(plant, project, *ends).json)
    assert "commit" not in without
    assert any("--build shop" in note for finding in without.values() for note in finding["notes"])
    # The releases have wheels, and no source to build: only the commits are built.
    finding = levels(asked(plant, project, *ends, "--build", "shop").json)["commit"]
    assert [commit["sha"] for commit in finding["commits"]] == [project.git("rev-parse", "main~1")]
