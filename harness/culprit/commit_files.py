"""Turns a probe of a release into a probe of a commit: exchanges files, or builds a package with compiled parts.

A commit of a pure Python package needs no build: the files that differ from the installed ones are exchanged. A built
commit is put on the search path, and the release is left out of the lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.model import Mixture
from harness.repository.declared import project_folder
from harness.repository.git import archive_of
from harness.repository.releases import tree_of
from harness.request.commands import with_folders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.culprit.sides import PackageFiles
    from harness.probe import Probe
    from harness.repository.git import Repository
    from harness.repository.releases import Layout
    from harness.request.project import Projects

_COMPILED = (".so", ".pyd", ".dylib")


@frozen
class CommitFiles:
    """Turns probes of a release into probes of commits.

    `release` maps the release's installed files to git's hashes; `layout` maps them to files of the repository.
    `builds` builds commits of `project`, each content once; with None, files are exchanged instead.
    """

    repository: Repository
    layout: Layout
    release: Mapping[str, str]
    builds: Projects | None = None
    project: str = ""

    def put_into(self, probe: Probe, sha: str) -> Probe:
        """Return the probe with the package as in a commit. Raises `BadRepository` and `UserMistake`."""
        if self.builds is not None:
            return self._built(probe, sha, self.builds)
        changes = self.layout.changes(self.release, tree_of(self.repository, sha))
        contents = self.repository.contents(blob for blob in changes.values() if blob is not None)
        files = {path: contents[blob] if blob is not None else None for path, blob in sorted(changes.items())}
        return evolve(probe, mixture=Mixture(files=files, label=_label(sha))) if files else probe

    def _built(self, probe: Probe, sha: str, builds: Projects) -> Probe:
        commit = self.repository.describe(sha)
        files = archive_of(self.repository, commit, builds.workspace.clones / "commits")
        folder = files / project_folder(self.repository, sha, self.project)
        project = builds.read(folder, for_tests=False, as_of=commit.date)
        if project.built is None:
            why = "; ".join(project.told) or "it can't be built"
            return evolve(probe, mixture=Mixture(files={}, label=_label(sha), flaw=why))
        lock = probe.lock
        if lock is not None:  # a run is checked against its lock, and the release is not installed
            lock = evolve(lock, pins=tuple(pin for pin in lock.pins if pin.name != project.name))
        return evolve(probe, repro=with_folders(probe.repro, (project,)), lock=lock)


def is_compiled(files: PackageFiles) -> bool:
    """Whether a package has extension modules or shared libraries."""
    return any(path.endswith(_COMPILED) for path in files.digests)


def _label(sha: str) -> str:
    return f"commit {sha[:10]}"
