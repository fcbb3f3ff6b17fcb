"""Describes workers and decides which match this machine. Only those may run its probes."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen
from packaging import tags

import harness
from harness.model import Device
from harness.scheduling.cluster.worker import worker_setup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Interpreter
    from harness.run.devices import Gpu

GPU = "gpu"  # the Dask resource: dask worker ... --resources "gpu=1"


@frozen
class Kind:
    """What two machines must share for a run on one to count as a run on the other.

    `code` is a digest of the harness's source; `tags` are the platform tags of the wheels that the machine accepts.
    """

    version: str
    code: str
    platform: str
    python: str
    cache_tag: str
    tags: tuple[str, ...]


@frozen
class Member:
    """One worker process: `threads` and `declared` GPUs according to Dask, `gpus` according to nvidia-smi.

    `kind.python` is empty if the worker lacks the wanted Python.
    """

    kind: Kind
    threads: int
    declared: int
    gpus: tuple[Gpu, ...]

    def slots(self, device: Device) -> int:
        """The number of probes that it can run at the same time."""
        return min(self.threads, self.declared) if device is Device.CUDA else self.threads


async def introduce(python: str, cache_tag: str, dask_worker: Any) -> Member:
    """Describe a worker, and whether it has this Python. Runs on the worker."""
    kind, gpus = await asyncio.to_thread(_look_around, python, cache_tag)
    declared = int(dask_worker.state.total_resources.get(GPU, 0))
    return Member(kind, dask_worker.state.nthreads, declared, gpus)


def kind_of(interpreter: Interpreter) -> Kind:
    """The kind of this machine with an interpreter."""
    return Kind(
        version=harness.__version__,
        code=code_digest(),
        platform=interpreter.platform,
        python=interpreter.version,
        cache_tag=interpreter.cache_tag,
        tags=tuple(tags.platform_tags()),
    )


def _look_around(python: str, cache_tag: str) -> tuple[Kind, tuple[Gpu, ...]]:
    own = worker_setup()
    found = own.interpreter(python, cache_tag)
    kind = kind_of(found or own.prober.builder.interpreter)
    return kind, own.prober.gpus


@cache
def code_digest() -> str:
    """A digest of the harness's source, which distinguishes two copies with the same version."""
    root = Path(harness.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "_repros" in path.parts:  # only in an installed package; a task carries its repro
            continue
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def left_out_because(member: Member, kind: Kind) -> str | None:
    """Why a worker does not match this kind, None if it does."""
    its = member.kind
    if its.version != kind.version:
        return f"it has harness {its.version}, this machine has {kind.version}"
    if its.code != kind.code:
        return f"its harness {its.version} has different files"
    if its.platform != kind.platform:
        return f"it is {its.platform}, this machine is {kind.platform}"
    if (its.python, its.cache_tag) != (kind.python, kind.cache_tag):
        return f"it has no Python {kind.python} ('uv python install {kind.python}' installs one)"
    if not set(kind.tags) <= set(its.tags):
        newest = its.tags[0] if its.tags else "none"
        return f"its system libraries accept wheels up to {newest}, this machine's up to {kind.tags[0]}"
    return None


def no_gpu_because(member: Member) -> str | None:
    """Why a worker can't run on a GPU, None if it can."""
    if not member.declared:
        return 'it declares no GPU (dask worker ... --resources "gpu=1")'
    if member.declared > len(member.gpus):
        return f"it declares gpu={member.declared} but sees {len(member.gpus)}"
    if len({gpu.name for gpu in member.gpus}) > 1:
        return f"it has different GPUs: {', '.join(gpu.name for gpu in member.gpus)}"
    return None


def commonest_gpu(members: Iterable[Member]) -> Gpu | None:
    """Return a GPU of the model with the most lanes (ties: first by name), or None if there are no GPUs."""
    lanes: Counter[str] = Counter()
    first: dict[str, Gpu] = {}
    for member in members:
        if no_gpu_because(member) is None:
            lanes[member.gpus[0].name] += member.slots(Device.CUDA)
            first.setdefault(member.gpus[0].name, member.gpus[0])
    name = min(lanes, key=lambda name: (-lanes[name], name), default=None)
    return first[name] if name is not None else None
