"""Finds the folder of a repository that a project is built from: the root, or a folder of a monorepo."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from harness.model import normalized_name
from harness.repository.declared import FILES, declared_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.repository.git import Entry, Repository


def project_folder(repository: Repository, sha: str, project: str = "") -> str:
    """Return the folder of a project in a commit, "" for the root.

    It is the folder that the user named, if that has a project. Otherwise it is the outermost one whose metadata has
    the name `project`, then the outermost one with that folder name, then the root. A commit with only one project, in
    a folder, needs no name. Raises `BadRepository`.
    """
    tree = repository.tree(sha)
    folders = sorted(
        {str(path.parent) for path in map(PurePosixPath, tree) if path.name in FILES},
        key=lambda folder: (folder.count("/") + (folder != "."), folder),
    )
    wanted = normalized_name(project)
    if (named := repository.inside) in folders:
        return named
    if not wanted or len(folders) < 2:
        return "" if "." in folders or len(folders) != 1 else folders[0]
    names = {folder: declared_name(project_files(repository, tree, folder)) for folder in folders}
    by_name = [folder for folder in folders if normalized_name(names[folder] or "") == wanted]
    by_path = [folder for folder in folders if normalized_name(PurePosixPath(folder).name) == wanted]
    # If the root computes its name, it may be `project`, so a folder's name decides nothing.
    known = by_name or ([] if "." in folders and names["."] is None else by_path)
    return known[0].removeprefix(".") if known else ""


def project_files(repository: Repository, tree: Mapping[str, Entry], folder: str) -> dict[str, str]:
    """Return the texts of a folder's project metadata files, by name."""
    paths = {name: str(PurePosixPath(folder, name)) for name in FILES}
    blobs = {name: tree[path].blob for name, path in paths.items() if path in tree and tree[path].is_regular}
    contents = repository.contents(blobs.values())
    return {name: contents[blob].decode("utf-8", "replace") for name, blob in blobs.items()}
