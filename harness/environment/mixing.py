"""Builds mixtures: a copy of a finished environment with some files exchanged, cheap enough to be made for each run.

Whatever has no exchanged file is linked as a whole; a top-level package that has one is copied by hard links. The
finished environment is never touched.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from attrs import frozen
from filelock import FileLock

from harness.environment.build import Environment, Uninstallable, site_packages
from harness.environment.bytecode import below

if TYPE_CHECKING:
    from harness.environment.workspace import Workspace
    from harness.model import Mixture


@frozen
class Mixer:
    """Builds mixtures and keeps them beside the environments, by the ids of lock and mixture."""

    workspace: Workspace

    def build(self, base: Environment, mixture: Mixture) -> Environment | Uninstallable:
        """The environment of a mixture; `Uninstallable` where it has a known flaw or a file is not even Python."""
        if base.folder is None or base.pycache is None:
            raise ValueError("a mixture needs an environment that the harness has built")
        if problem := mixture.flaw or _not_python(mixture, base.lock.python):
            return Uninstallable(problem)
        name = f"{base.lock.id}-{mixture.id}"
        folder = self.workspace.environments / name
        pycache = self.workspace.pycache / name
        if not folder.is_dir():
            with FileLock(self.workspace.locks / f"{name}.lock"):
                if not folder.is_dir():
                    self._build(base.folder, base.pycache, mixture, folder, pycache)
        os.utime(folder)
        return Environment(
            python=folder / "bin" / "python", lock=base.lock, folder=folder, pycache=pycache, is_mixture=True
        )

    def _build(self, base: Path, base_pycache: Path, mixture: Mixture, folder: Path, pycache: Path) -> None:
        partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=self.workspace.building))
        try:
            (partial / "bin").symlink_to(base / "bin", target_is_directory=True)
            shutil.copy2(base / "pyvenv.cfg", partial / "pyvenv.cfg")
            packages = site_packages(base)
            inside = partial / packages.relative_to(base)
            exchanged = {PurePosixPath(path).parts[0] for path in mixture.files}
            _copy(packages, inside, exchanged)
            shutil.rmtree(pycache, ignore_errors=True)
            compiled = below(pycache, folder / packages.relative_to(base))
            _copy(below(base_pycache, packages), compiled, exchanged)
            _share_the_rest(base_pycache, pycache, base, folder)
            for path, content in mixture.files.items():
                _exchange(inside, path, content)
                source = compiled / path
                for stale in source.parent.glob(f"{source.stem}.*.pyc") if source.parent.is_dir() else ():
                    stale.unlink()
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _copy(source: Path, target: Path, exchanged: set[str]) -> None:
    """Symbolic links for all entries but those that will be altered, which are copied by hard links."""
    target.mkdir(parents=True)
    if not source.is_dir():
        return
    for entry in source.iterdir():
        if entry.name in exchanged and entry.is_dir():
            shutil.copytree(entry, target / entry.name, copy_function=os.link, symlinks=True)
        elif entry.name not in exchanged:
            (target / entry.name).symlink_to(entry, target_is_directory=entry.is_dir())
        else:
            os.link(entry, target / entry.name)


def _share_the_rest(base_pycache: Path, pycache: Path, base: Path, folder: Path) -> None:
    """Bytecode of the standard library and the like: wherever the base's tree has a link, link there too."""
    own = below(base_pycache, base)
    for parent, names, _ in os.walk(base_pycache):
        here = Path(parent)
        if here == own:
            names.clear()
            continue
        for name in names:
            entry = here / name
            if entry.is_symlink():
                link = pycache / entry.relative_to(base_pycache)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(entry.resolve(), target_is_directory=True)
    below(pycache, folder).mkdir(parents=True, exist_ok=True)


def _exchange(inside: Path, path: str, content: bytes | None) -> None:
    """Replace, never write into: the file may be shared with every other environment."""
    place = inside / path
    place.unlink(missing_ok=True)
    if content is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return
    # An empty folder would still be found: as a namespace package, or as the metadata of a distribution.
    folder = place.parent
    while folder != inside and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _not_python(mixture: Mixture, python: str) -> str:
    """The first syntax error in a mixed file, where this interpreter can judge the language of that one, else ""."""
    if tuple(int(part) for part in python.split(".")[:2]) > sys.version_info[:2]:
        return ""
    for path, content in mixture.files.items():
        if content is not None and path.endswith(".py"):
            try:
                compile(content, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                return f"the mixture is not valid Python: {path}: {error}"
    return ""
