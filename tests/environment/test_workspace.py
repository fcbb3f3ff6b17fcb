"""A folder of the user holds one complete environment at a time; nothing else is ever replaced."""

from __future__ import annotations

import subprocess
import sys
import venv

import pytest

from harness.environment import CannotBuild, Environment
from harness.environment.workspace import check_ours, held_lock, site_packages
from harness.errors import UserMistake
from harness.model import Combination, Lock, Pin


def lock_of(parts, *requirements):
    return parts.resolver.resolve(Combination(parts.resolver.interpreter.version, requirements)).lock


def test_a_folder_is_reused_for_one_lock_after_another(parts, tmp_path):
    first, second = lock_of(parts, "brittle==1.2", "helper==1.0"), lock_of(parts, "brittle==1.3")
    parts.builder.give(first, tmp_path / "at")
    assert held_lock(tmp_path / "at") == first.id
    parts.builder.give(second, tmp_path / "at")
    assert held_lock(tmp_path / "at") == second.id
    assert not (site_packages(tmp_path / "at") / "helper.py").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".at.")] == []
    assert list(parts.workspace.environments.iterdir()) == []


def test_a_failed_install_keeps_the_previous_environment(parts, interpreter, tmp_path):
    lock = lock_of(parts, "brittle==1.2")
    parts.builder.give(lock, tmp_path / "at")
    gone = Lock(interpreter.version, interpreter.platform, [Pin("brittle", "7.7", "x.whl", "0" * 64)])
    with pytest.raises(CannotBuild):
        parts.builder.give(gone, tmp_path / "at")
    assert held_lock(tmp_path / "at") == lock.id
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".at.")] == []


def test_leftovers_of_a_killed_build_are_removed(parts, tmp_path):
    left = tmp_path / ".at.harness-part-x1y2"
    left.mkdir()
    (tmp_path / ".at-harness-part").mkdir()
    parts.builder.give(lock_of(parts, "brittle==1.2"), tmp_path / "at")
    assert not left.exists()
    assert (tmp_path / ".at-harness-part").exists()


def test_an_environment_without_its_interpreter_is_rebuilt(parts, tmp_path):
    lock = lock_of(parts, "brittle==1.2")
    parts.builder.give(lock, tmp_path / "at")
    for python in (parts.builder.build(lock).python, tmp_path / "at" / "bin" / "python"):
        python.unlink()
        python.symlink_to(tmp_path / "nowhere")
        assert isinstance(parts.builder.build(lock), Environment)
        parts.builder.give(lock, tmp_path / "at")
        assert subprocess.run([python, "-c", "import brittle"], check=False).returncode == 0


def bare(folder):
    venv.create(folder, with_pip=False, symlinks=True)


def with_package(folder):
    bare(folder)
    (next(folder.glob("lib/python*/site-packages")) / "mine.py").write_text("")


def with_project(folder):
    bare(folder)
    (folder / "setup.py").write_text("")


def a_file(folder):
    folder.write_text("")


def with_a_file_of_our_name(folder):
    folder.mkdir()
    (folder / "harness.json").write_text('{"lock": "x", "python": "3.12", "entries": ["harness.json", "pyvenv.cfg"]}')
    (folder / "pyvenv.cfg").write_text("")
    (folder / "thesis.txt").write_text("")


def a_link(folder):
    (folder.parent / "mine").mkdir()
    folder.symlink_to(folder.parent / "mine")


@pytest.mark.parametrize("make", [lambda folder: None, lambda folder: folder.mkdir(), bare])
def test_only_missing_empty_or_bare_folders_are_replaced(tmp_path, make):
    make(tmp_path / "at")
    check_ours(tmp_path / "at")


@pytest.mark.parametrize("make", [with_package, with_project, a_file, with_a_file_of_our_name, a_link])
def test_files_of_the_user_are_never_replaced(tmp_path, make):
    make(tmp_path / "at")
    with pytest.raises(UserMistake, match="was not created by the harness"):
        check_ours(tmp_path / "at")


def test_an_environment_to_which_the_user_added_a_file_is_not_replaced(parts, tmp_path):
    parts.builder.give(lock_of(parts, "brittle==1.2"), tmp_path / "at")
    (tmp_path / "at" / "notes.txt").write_text("")
    with pytest.raises(UserMistake, match="would be overwritten"):
        parts.builder.give(lock_of(parts, "brittle==1.3"), tmp_path / "at")


def test_the_builder_refuses_such_a_folder(parts, tmp_path):
    with_project(tmp_path / "at")
    with pytest.raises(UserMistake, match="was not created by the harness"):
        parts.builder.give(lock_of(parts, "brittle==1.2"), tmp_path / "at")
    assert (tmp_path / "at" / "setup.py").exists()


def test_a_folder_that_cannot_be_created_is_reported(parts, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserMistake, match="can't create"):
        parts.builder.give(lock_of(parts, "brittle==1.2"), tmp_path / "file" / "below" / "at")


def test_an_environment_made_by_nox_or_virtualenv_counts_as_bare(tmp_path):
    """With the installers that it comes with."""
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", tmp_path / "at"], check=True)
    check_ours(tmp_path / "at")
