"""Folders kept by a hash over their content."""

from __future__ import annotations

import pytest

from harness.environment import Workspace
from harness.environment.trees import NotKept, Trees


@pytest.fixture
def trees(tmp_path):
    return Trees(Workspace(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "a.txt").write_text("a", encoding="utf-8")
    (made / "link").symlink_to("inner/a.txt")
    return made


def test_the_same_content_is_kept_once_and_read_only(trees, folder, tmp_path):
    digest = trees.keep(folder)
    assert trees.keep(folder) == digest
    kept = trees.folder(digest)
    assert (kept / "link").read_text(encoding="utf-8") == "a"
    assert (kept / "link").readlink().as_posix() == "inner/a.txt"
    assert [path.stat().st_mode & 0o222 for path in (kept, kept / "inner", kept / "inner" / "a.txt")] == [0, 0, 0]
    assert [path.name for path in trees.workspace.trees.iterdir()] == [digest]


@pytest.mark.parametrize("change", ["content", "name", "mode", "more"])
def test_any_change_is_another_folder(trees, folder, change):
    before = trees.digest(folder)
    file = folder / "inner" / "a.txt"
    match change:
        case "content":
            file.write_text("b", encoding="utf-8")
        case "name":
            file.rename(file.with_name("b.txt"))
        case "mode":
            file.chmod(0o755)
        case "more":
            (folder / "empty").mkdir()
    if change == "name":
        (folder / "link").unlink()
        (folder / "link").symlink_to("inner/b.txt")
    assert trees.digest(folder) != before


def test_a_changed_copy_is_not_used_and_is_put_right_again(trees, folder):
    digest = trees.keep(folder)
    file = trees.workspace.trees / digest / "inner" / "a.txt"
    file.chmod(0o644)
    file.write_text("changed", encoding="utf-8")
    assert trees.folder(digest) is None
    assert trees.keep(folder) == digest
    assert (trees.folder(digest) / "inner" / "a.txt").read_text(encoding="utf-8") == "a"


def test_what_cannot_be_kept_is_said(trees, folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NotKept, match="nothing was written"):
        trees.keep(empty)
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(NotKept, match="out is a link to a place elsewhere"):
        trees.keep(folder)
