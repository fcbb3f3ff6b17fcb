"""A probe for another machine: a frozen value with nothing specific to this one, from which the probe is made there.

A worker of a cluster gets it whole, a bundle as JSON with the script beside it (`converter`).

The folders that a run imports from, such as a built commit, and those that it is given are packed here and unpacked
once on each machine, into its trees. A folder is named by the hash of its content, so the other machine needs no path
of this one.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, field, frozen, resolve_types

from harness.environment import record
from harness.environment.trees import Trees
from harness.environment.workspace import claimed_folder
from harness.model import Combination, Device, Lock, Repro
from harness.model.repro import Given
from harness.probing.probe import Probe
from harness.run.inside.emulation.card import DEFAULT_CAPABILITY
from harness.run.runner import script_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cattrs import Converter

    from harness.environment import Workspace
    from harness.probing.prober import Prober

_REPRO_PARTS = ("name", "path", "params", "timeout", "memory", "step")


@frozen
class SentFolder:
    """A folder as a tar archive compressed by gzip; `name` is the digest of what it contains, as in `Trees`."""

    name: str
    content: bytes = field(repr=False)

    def unpack(self, target: Path) -> None:
        """Write the content to a folder."""
        with tarfile.open(fileobj=io.BytesIO(self.content)) as tar:
            tar.extractall(target, filter="data")


@frozen(kw_only=True)
class PortableProbe(Probe):
    """One probe for another machine: the lock to install, the repro's source, and how to run it.

    `key` is the key of the observation; a worker refuses if its run would get another key. `cache_tag` names the kind
    of interpreter; the lock has its version and platform. `pass_env` names variables of the worker's environment;
    `rights` says what the run may do beyond the sandbox, which the worker sets up. `variables`
    is a hash of the user's variables where the question was asked. The repro imports from `folders`;
    each entry of its search path starts with the name of one.
    """

    key: str
    lock: Lock
    cache_tag: str
    capability: str = DEFAULT_CAPABILITY
    pass_env: tuple[str, ...] = ()
    torch_backend: str = ""
    rights: str = ""
    variables: str = ""
    is_sandbox_required: bool = False
    folders: tuple[SentFolder, ...] = ()

    @classmethod
    def of(cls, probe: Probe, lock: Lock, key: str, prober: Prober) -> PortableProbe:
        """Make it from a probe that `prober` would run here with `lock`."""
        repro, folders = _packed(probe.repro, prober.trees)
        here = evolve(probe, repro=evolve(repro, path=script_name(probe.repro)), near=None, lock=lock)
        return cls(
            **asdict(here, recurse=False),
            key=key,
            cache_tag=prober.builder.interpreter.cache_tag,
            capability=prober.capability,
            pass_env=prober.pass_env,
            torch_backend=prober.builder.uv.extra_environment.get("UV_TORCH_BACKEND", ""),
            rights=prober.rights,
            variables=prober.variables,
            is_sandbox_required=prober.sandbox is not None and prober.sandbox.is_required,
            folders=folders,
        )

    def probe(self, workspace: Workspace) -> Probe:
        """Return the probe on this machine; unpacks the folders that it imports from into the cache."""
        return evolve(self, repro=_unpacked(self.repro, self.folders, workspace), folders=())


def _packed(repro: Repro, trees: Trees) -> tuple[Repro, tuple[SentFolder, ...]]:
    """Return the repro with a relative search path, and the folders that its entries start with."""
    paths = [Path(text) for text in repro.search_path if Path(text).is_dir()]
    roots = [path for path in paths if not any(other in path.parents for other in paths)]
    folders = {root: _archive(root, trees) for root in roots}
    entries = [
        (Path(folder.name) / path.relative_to(root)).as_posix()
        for path in paths
        for root, folder in folders.items()
        if path.is_relative_to(root)
    ]
    given = [_archive(Path(one.folder), trees) for one in repro.given if one.folder]
    sent = {folder.name: folder for folder in (*folders.values(), *given)}
    bare = tuple(evolve(one, folder="") for one in repro.given)
    return evolve(repro, search_path=tuple(dict.fromkeys(entries)), given=bare), tuple(sent.values())


def _unpacked(repro: Repro, folders: Iterable[SentFolder], workspace: Workspace) -> Repro:
    """Return the repro with its search path in this machine's cache. Unpacks the folders that are not there yet."""
    trees = Trees(workspace)
    for folder in folders:
        if trees.folder(folder.name) is None:
            with claimed_folder(workspace.building, "sent-") as partial:
                folder.unpack(partial)
                trees.keep(partial)
    given = tuple(evolve(one, folder=str(workspace.trees / one.digest)) for one in repro.given)
    return evolve(repro, search_path=tuple(str(workspace.trees / entry) for entry in repro.search_path), given=given)


@lru_cache(maxsize=4)  # a bisection of another package sends the same folder with each run
def _archive(folder: Path, trees: Trees) -> SentFolder:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
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
    content = gzip.compress(archive.getvalue(), mtime=0)
    with tempfile.TemporaryDirectory(prefix="harness-sent-") as unpacked:
        SentFolder("", content).unpack(Path(unpacked))
        return SentFolder(trees.digest(Path(unpacked)), content)


def _json_converter() -> Converter:
    """A converter between portable probes and JSON, which leaves out the script: only its name and limits are kept."""
    resolve_types(Combination)
    resolve_types(Probe, localns={"Path": Path})
    resolve_types(PortableProbe, localns={"Path": Path})
    converter = record.converter.copy()
    converter.register_structure_hook(Device, lambda text, _: Device(text))
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
