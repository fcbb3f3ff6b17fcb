"""A probe for another machine: a frozen value with nothing specific to this one, from which the probe is made there.

A worker of a cluster gets it whole, a bundle as JSON with the script beside it (`converter`).

The folders that a run imports from, such as a built commit, and those that it is given are packed here and unpacked
once on each machine. A folder is named by a hash of its content, so the other machine needs no path of this one.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cattrs
from attrs import evolve, field, frozen, resolve_types
from filelock import FileLock

from harness.atomic import whole_folder
from harness.environment.trees import Trees
from harness.environment.workspace import claimed_folder
from harness.model import Combination, Lock, Mixture, Repro
from harness.model.repro import Given
from harness.probing.probe import Probe
from harness.run.inside.emulation.card import DEFAULT_CAPABILITY
from harness.run.runner import script_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Workspace
    from harness.probing.prober import Prober

_REPRO_PARTS = ("name", "path", "params", "timeout", "memory", "step")


@frozen
class SentFolder:
    """A folder as a tar archive compressed by gzip; `name` is derived from its content."""

    name: str
    content: bytes = field(repr=False)

    def unpack(self, target: Path) -> None:
        """Write the content to a folder."""
        with tarfile.open(fileobj=io.BytesIO(self.content)) as tar:
            tar.extractall(target, filter="data")


@frozen
class PortableProbe:
    """One probe for another machine: the lock to install, the repro's source, and how to run it.

    `key` is the key of the observation; a worker refuses if its run would get another key. `cache_tag` names the kind
    of interpreter; the lock has its version and platform. `pass_env` names variables of the worker's environment;
    `rights` says what the run may do beyond the sandbox, which the worker sets up. The repro imports from `folders`;
    each entry of its search path starts with the name of one.
    """

    key: str
    repro: Repro
    combination: Combination
    lock: Lock
    cache_tag: str
    attempt: int = 0
    mixture: Mixture | None = None
    trace: frozenset[str] | None = None
    capability: str = DEFAULT_CAPABILITY
    pass_env: tuple[str, ...] = ()
    torch_backend: str = ""
    rights: str = ""
    is_sandbox_required: bool = False
    folders: tuple[SentFolder, ...] = ()

    @classmethod
    def of(cls, probe: Probe, lock: Lock, key: str, prober: Prober) -> PortableProbe:
        """Make it from a probe that `prober` would run here with `lock`."""
        repro, folders = _packed(probe.repro)
        return cls(
            key=key,
            repro=evolve(repro, path=script_name(probe.repro)),
            combination=probe.combination,
            lock=lock,
            cache_tag=prober.builder.interpreter.cache_tag,
            attempt=probe.attempt,
            mixture=probe.mixture,
            trace=probe.trace,
            capability=prober.capability,
            pass_env=prober.pass_env,
            torch_backend=prober.builder.uv.extra_environment.get("UV_TORCH_BACKEND", ""),
            rights=prober.rights,
            is_sandbox_required=prober.sandbox is not None and prober.sandbox.is_required,
            folders=folders,
        )

    def probe(self, workspace: Workspace) -> Probe:
        """Return the probe on this machine; unpacks the folders that it imports from into the cache."""
        return Probe(
            _unpacked(self.repro, self.folders, workspace),
            self.combination,
            attempt=self.attempt,
            mixture=self.mixture,
            trace=self.trace,
            lock=self.lock,
        )


def _packed(repro: Repro) -> tuple[Repro, tuple[SentFolder, ...]]:
    """Return the repro with a relative search path, and the folders that its entries start with."""
    paths = [Path(text) for text in repro.search_path if Path(text).is_dir()]
    roots = [path for path in paths if not any(other in path.parents for other in paths)]
    folders = {root: _archive(root) for root in roots}
    entries = [
        (Path(folder.name) / path.relative_to(root)).as_posix()
        for path in paths
        for root, folder in folders.items()
        if path.is_relative_to(root)
    ]
    sent = {folder.name: folder for folder in folders.values()}
    given = [evolve(_archive(Path(one.folder), whole=True), name=one.digest) for one in repro.given if one.folder]
    bare = tuple(evolve(one, folder="") for one in repro.given)
    return evolve(repro, search_path=tuple(dict.fromkeys(entries)), given=bare), (*sent.values(), *given)


def _unpacked(repro: Repro, folders: Iterable[SentFolder], workspace: Workspace) -> Repro:
    """Return the repro with its search path in this machine's cache. Unpacks the folders that are not there yet."""
    parent, trees = workspace.projects, Trees(workspace)
    digests = {one.digest for one in repro.given}
    for folder in folders:
        if folder.name in digests:
            if trees.folder(folder.name) is None:
                with claimed_folder(workspace.building, "given-") as partial:
                    folder.unpack(partial)
                    trees.keep(partial)
            continue
        with FileLock(workspace.locks / f"sent-{folder.name}.lock"):
            if not (parent / folder.name).is_dir():
                with whole_folder(parent / folder.name) as partial:
                    folder.unpack(partial)
    given = tuple(evolve(one, folder=str(workspace.trees / one.digest)) for one in repro.given)
    return evolve(repro, search_path=tuple(str(parent / entry) for entry in repro.search_path), given=given)


@lru_cache(maxsize=4)  # a bisection of another package sends the same folder with each run
def _archive(folder: Path, *, whole: bool = False) -> SentFolder:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if Path(member.name).name == "__pycache__" and not whole:
            return None
        if not (member.isfile() or member.isdir() or member.issym()):
            return None
        if member.issym() and not (folder / member.name).resolve().is_relative_to(folder.resolve()):
            return None  # it points to files that only this machine has
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder, arcname=".", filter=kept)
    content = archive.getvalue()
    return SentFolder(f"sent-{hashlib.sha256(content).hexdigest()[:20]}", gzip.compress(content, mtime=0))


def _json_converter() -> cattrs.Converter:
    """A converter between portable probes and JSON, which leaves out the script: only its name and limits are kept."""
    resolve_types(Combination)
    converter = cattrs.Converter()
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    converter.register_unstructure_hook(
        Repro,
        lambda repro: (
            {name: getattr(repro, name) for name in _REPRO_PARTS} | {"given": converter.unstructure(repro.given)}
        ),
    )
    converter.register_structure_hook(Repro, _told_repro)
    return converter


def _told_repro(told: Any, _: Any) -> Repro:
    given = tuple(Given(**one) for one in told["given"])
    return Repro(**{name: told[name] for name in _REPRO_PARTS}, digest="", given=given)


converter = _json_converter()
