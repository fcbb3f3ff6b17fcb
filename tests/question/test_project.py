"""A project is copied as known to git, built once, and asked for its requirements."""

from __future__ import annotations

import subprocess
import threading

import pytest
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.environment.disk_space import remove_leftovers
from harness.errors import UserMistake
from harness.model.requirements import pinned_prereleases, unpinned
from harness.question.commands import ChosenProject, read_command, read_with_option
from harness.question.project import Projects, find_project
from harness.question.project_requirements import RequestedExtras

BACKEND = """
import pathlib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(pathlib.Path(folder, "mine-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("mine/__init__.py", "MADE = True")
        lines = ["Metadata-Version: 2.1", "Name: mine", "Version: 1.0", "Requires-Dist: six>=1", "Provides-Extra: test",
                 "Requires-Dist: idna==3.4; extra == 'test'", "Requires-Dist: never; sys_platform == 'win32'"]
        wheel.writestr("mine-1.0.dist-info/METADATA", "\\n".join(lines))
        wheel.writestr("mine-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any")
        wheel.writestr("mine-1.0.dist-info/entry_points.txt", "[console_scripts]\\nmine-tool = mine:main")
        wheel.writestr("mine-1.0.dist-info/RECORD", "")
    return "mine-1.0-py3-none-any.whl"
"""
PYPROJECT = """
[project]
name = "mine"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def projects(parts):
    return Projects(parts.workspace, parts.builder.uv, parts.builder.interpreter)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "test_it.py").write_text("A = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def test_requirements_come_from_the_metadata(projects, folder):
    project = projects.read(folder)
    assert project.name == "mine"
    assert project.requirements == ("six>=1", "idna")  # the extra for tests is chosen, without its pin, and told
    assert any("extra test" in told for told in project.notes)
    assert (project.built / "bin" / "mine-tool").exists()


def test_another_harness_that_starts_meanwhile_does_not_remove_what_is_being_built(projects, folder, parts):
    ended = threading.Event()

    def clean() -> None:
        while not ended.wait(0.01):
            remove_leftovers(parts.workspace)

    other = threading.Thread(target=clean)
    other.start()
    try:
        assert projects.read(folder).built is not None
    finally:
        ended.set()
        other.join()


def test_a_folder_in_place_of_a_release_adds_no_extras(projects, folder):
    """`--with ./folder` is used, not tested."""
    beside = read_with_option([str(folder)], projects)
    assert beside.folders[0].requirements == ("six>=1",)
    assert beside.notes == ()


def test_packages_requested_by_name_keep_their_pins(projects, folder):
    assert projects.read(folder, RequestedExtras(("test",))).requirements == ("six>=1", "idna==3.4")


def test_test_requirements_without_a_matching_file_are_left_out(tmp_path, folder, uv_cache, interpreter):
    house = Wheelhouse(tmp_path / "house")
    house.add("driver", "2.9", tag="cp311-cp311-win_amd64")
    house.add_sdist("driver", "2.9")
    house.add("handy", "1.0")
    (folder / "backend.py").write_text(BACKEND.replace("Provides-Extra: test", "Provides-Extra: other"))
    (folder / "tox.ini").write_text("[testenv]\ndeps =\n    handy\n    driver\n    unheard_of\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    parts = make_parts(tmp_path / "parts", PipSettings(index_url=house.url), uv_cache, interpreter)
    projects = Projects(parts.workspace, parts.builder.uv, interpreter, parts.index)
    project = projects.read(folder, RequestedExtras(find=True))
    assert project.requirements == ("six>=1", "handy")
    assert any("driver" in told and "unheard_of" in told for told in project.notes)


def test_a_missing_extra_is_refused(projects, folder):
    with pytest.raises(UserMistake):
        projects.read(folder, RequestedExtras(("docs",)))


def test_a_build_that_needs_git_gets_files_and_version(projects, folder):
    told = 'os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"] + subprocess.check_output(["git", "ls-files"], text=True)'
    backend = BACKEND.replace("import pathlib", "import os, subprocess, pathlib").replace('"MADE = True"', told)
    (folder / "backend.py").write_text(backend)
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    for words in (["add", "."], [*identity, "commit", "-q", "-m", "one"], ["tag", "v2.3.1"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    text = (projects.read(folder).built / "mine" / "__init__.py").read_text()
    assert text.startswith("2.3.1+copy")
    assert "test_it.py" in text


def test_only_files_known_to_git_are_copied(projects, folder):
    (folder / "untracked.py").write_text("B = 1\n")
    (folder / "test_it.py").write_text("A = 2\n")
    (folder / "mine.egg-info").mkdir()
    (folder / "mine.egg-info" / "PKG-INFO").write_text("")
    project = projects.read(folder)
    left_out = "untracked.py: not in the copy, because git does not track it; git add copies it too"
    assert [text for text in project.notes if "git" in text] == [left_out]
    assert not (project.tree / "untracked.py").exists()
    assert (project.tree / "test_it.py").read_text() == "A = 2\n"


def test_all_files_are_copied_where_git_tracks_none_yet(projects, tmp_path):
    (folder := tmp_path / "fresh").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "test_it.py").write_text("A = 1\n")
    project = projects.read(folder)
    assert project.notes == ()
    assert (project.tree / "test_it.py").exists()


def test_a_changed_file_is_another_question(projects, folder):
    before = projects.read(folder).digest
    (folder / "test_it.py").write_text("A = 3\n")
    assert projects.read(folder).digest != before


def test_an_unbuildable_project_is_put_on_the_path(projects, folder):
    (folder / "backend.py").write_text("def build_wheel(*a, **k): raise RuntimeError('no compiler')\n")
    project = projects.read(folder)
    assert project.built is None
    assert project.search_path == (".",)
    assert any("no compiler" in told for told in project.notes)


def test_the_nearest_folder_above_is_the_project(folder):
    inside = folder / "a" / "b"
    inside.mkdir(parents=True)
    assert find_project(inside) == folder


def test_exact_pins_are_dropped_and_ranges_kept():
    assert [unpinned(text) for text in ("a==1.0", "b[x]==2", "c>=1,<2", "d==1.*")] == ["a", "b[x]", "c>=1,<2", "d==1.*"]
    assert [unpinned(text) for text in ("a===1.0", "b[x]===2.0+local", "c===odd-1")] == ["a", "b[x]", "c"]


def test_only_what_is_pinned_to_a_pre_release_is_allowed_one():
    assert pinned_prereleases(("mixed==1.5rc1", "helper==1.0", "early>=2rc1")) == ("mixed",)


def test_folders_and_files_of_a_command_are_found(projects, folder, tmp_path):
    (tmp_path / "more.txt").write_text("idna==3.4\n")
    beside = read_with_option(["six", f"-r {tmp_path / 'more.txt'}", f"mine @ {folder}"], projects)
    assert [project.name for project in beside.folders] == ["mine"]
    assert set(beside.requirements) >= {"six", "idna==3.4"}
    command = read_command("pytest", beside, projects, start=tmp_path)
    assert "pytest" in command.repro.dependencies
    assert command.repro.search_path[0].startswith(str(projects.workspace.projects))


@pytest.mark.parametrize(
    ("beside", "is_found"),
    [
        (["setuptools<81"], True),
        (["pytest-cov"], True),
        (["idna"], True),
        (["six==1.16"], True),
        (["setuptools", "pytest"], True),
        (["idna", "pytest"], False),
        (["-r needs.txt"], False),
    ],
)
def test_what_with_names_is_added_unless_it_names_the_test_tool_too(projects, folder, monkeypatch, beside, is_found):
    monkeypatch.chdir(folder)
    (folder / "needs.txt").write_text("idna\n")
    (folder / "test_it.py").write_text("def test_it(mocker): pass\n")
    command = read_command("pytest", read_with_option(beside, projects), projects, ChosenProject(folder), start=folder)
    assert ("pytest-mock" in command.repro.dependencies) is is_found
    assert any(text in told for text in read_with_option(beside, projects).requirements for told in command.notes)


def test_the_plugins_of_the_options_of_a_command_are_added(projects, folder):
    command = read_command("pytest --cov=mine -n 2 -x", read_with_option([], projects), projects, start=folder)
    assert {"pytest", "pytest-cov", "pytest-xdist"} <= {*command.repro.dependencies}
    command = read_command("python mine.py --cov=mine", read_with_option([], projects), projects, start=folder)
    assert "pytest-cov" not in command.repro.dependencies


@pytest.mark.parametrize("file", ["test_it.py", "tests/test_it.py", "it_test.py", "conftest.py"])
def test_a_folder_with_tests_is_a_project(projects, tmp_path, file):
    """Without pyproject.toml, setup.py or a repository above it."""
    folder = tmp_path / "plain"
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text("def test_it(): pass\n")
    (folder / "mine.py").write_text("")
    assert find_project(folder) == folder
    assert find_project((folder / file).parent) == folder
    command = read_command("pytest", read_with_option([], projects), projects, start=folder)
    assert command.repro.project
    assert (projects.read(folder).tree / "mine.py").exists()


def test_a_repository_with_tests_is_a_project(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert find_project(tmp_path / "tests") == tmp_path


def test_a_folder_without_tests_is_no_project(tmp_path):
    (tmp_path / "mine.py").write_text("")
    assert find_project(tmp_path) is None


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "a/b"])
def test_an_entry_point_that_names_a_place_outside_is_refused(projects, folder, name):
    (folder / "backend.py").write_text(BACKEND.replace("mine-tool = ", f"{name} = "))
    with pytest.raises(UserMistake, match="entry point"):
        projects.read(folder)
    assert not list(projects.workspace.root.rglob("escaped"))


def test_pointers_of_git_lfs_are_told_as_what_they_are(projects, folder):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    (folder / "model.bin").write_text(pointer)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    assert any("model.bin" in told and "git lfs pull" in told for told in projects.read(folder).notes)


def test_a_build_in_a_hook_sees_the_copy(projects, folder, tmp_path, monkeypatch):
    """Git sets GIT_DIR for a hook; a build that asks git, as setuptools_scm does, must not read that repository."""
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    told = 'str("GIT_DIR" in os.environ) + subprocess.check_output(["git", "ls-files"], text=True)'
    backend = BACKEND.replace("import pathlib", "import os, subprocess, pathlib").replace('"MADE = True"', told)
    (folder / "backend.py").write_text(backend)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    text = (projects.read(folder).built / "mine" / "__init__.py").read_text()
    assert text.startswith("False")
    assert "test_it.py" in text


def test_a_copy_that_a_run_has_changed_is_made_again(projects, folder, parts):
    """Without a sandbox a run can find the cache and write there."""
    before = projects.read(folder)
    module, file = before.built / "mine" / "__init__.py", next(path for path in before.tree.iterdir() if path.is_file())
    text, content = module.read_text(), file.read_text()
    module.write_text("changed = 1\n")
    assert projects.read(folder).built == before.built
    assert module.read_text() == text
    file.write_text("changed")
    (before.built / "added.py").write_text("")
    projects.read(folder)
    assert (file.read_text(), (before.built / "added.py").exists()) == (content, False)
