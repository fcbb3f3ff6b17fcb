"""What travels: an order to a worker and its reply. Frozen values, with nothing in them that only one machine knows."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.run.inside.emulation.device_profiles import DEFAULT_CAPABILITY

if TYPE_CHECKING:
    from harness.environment import Interpreter
    from harness.errors import HarnessError
    from harness.model import Combination, Lock, Mixture, Observation, Repro
    from harness.probe import Probe, Prober


@frozen
class Order:
    """One probe for a worker: the lock to install, the repro with its source, and how to run it.

    `key` is the observation's address; a worker that would store its run under another one refuses. `cache_tag` names
    the interpreter's kind, the lock its version and platform. `pass_env` names variables of the worker's environment;
    `rights` says what the run is allowed beyond a sandbox, which the worker makes itself.
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


@frozen
class Trouble:
    """What went wrong around a probe on a worker: an error of the tree, as values."""

    kind: type[HarnessError]
    message: str
    hint: str


@frozen
class Reply:
    """One of four: an observation with its compressed log, why the worker refuses, its trouble, or that it stopped.

    `stopped` says that the run was called off, or that the worker itself is going away.
    """

    observation: Observation | None = None
    log: bytes = b""
    refused: str = ""
    trouble: Trouble | None = None
    stopped: bool = False


def order_for(probe: Probe, lock: Lock, key: str, prober: Prober, interpreter: Interpreter) -> Order:
    """What a worker needs to know of a probe that `prober` would run here with `lock`."""
    return Order(
        key=key,
        repro=evolve(probe.repro, path=PurePath(probe.repro.path).name),
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
        is_sandbox_required=prober.isolation is not None and prober.isolation.is_required,
    )
