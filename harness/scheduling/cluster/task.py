"""A task for a worker and its reply: frozen values with nothing specific to one machine."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.run.inside.emulation.card import DEFAULT_CAPABILITY
from harness.scheduling.cluster.sent_folders import SentFolder, packed

if TYPE_CHECKING:
    from harness.environment import Interpreter
    from harness.errors import HarnessError
    from harness.model import Combination, Lock, Mixture, Observation, Repro
    from harness.probe import Probe, Prober


@frozen
class Task:
    """One probe for a worker: the lock to install, the repro's source, and how to run it.

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
    from_source: tuple[str, ...] = ()
    torch_backend: str = ""
    rights: str = ""
    is_sandbox_required: bool = False
    folders: tuple[SentFolder, ...] = ()


@frozen
class Trouble:
    """An error that a worker raised: its class, message and hint."""

    kind: type[HarnessError]
    message: str
    hint: str


@frozen
class Reply:
    """One of: an observation with its compressed log, a refusal with its reason, an error, or `stopped`.

    `stopped` means that the run was cancelled or that the worker is shutting down.
    """

    observation: Observation | None = None
    log: bytes = b""
    refused: str = ""
    trouble: Trouble | None = None
    stopped: bool = False


def task_for(probe: Probe, lock: Lock, key: str, prober: Prober, interpreter: Interpreter) -> Task:
    """The task for a probe that `prober` would run here with `lock`."""
    repro, folders = packed(probe.repro)
    return Task(
        key=key,
        repro=evolve(repro, path=PurePath(probe.repro.path).name),
        combination=probe.combination,
        lock=lock,
        cache_tag=interpreter.cache_tag,
        attempt=probe.attempt,
        mixture=probe.mixture,
        trace=probe.trace,
        capability=prober.capability,
        pass_env=prober.pass_env,
        from_source=prober.builder.from_source,
        torch_backend=prober.builder.uv.extra_environment.get("UV_TORCH_BACKEND", ""),
        rights=prober.rights,
        is_sandbox_required=prober.sandbox is not None and prober.sandbox.is_required,
        folders=folders,
    )
