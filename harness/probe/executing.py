"""One run of a prepared probe: in a watched environment, and on a GPU if it needs one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from harness.environment import watched_environment
from harness.model import Device, Outcome
from harness.run.devices import kind_of
from harness.run.lease import DEFAULT_NEED, GpuPool, NoGpu
from harness.run.runner import Job, run_repro

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from harness.environment import Altered, Environment
    from harness.probe.asked import Prepared, Probe
    from harness.probe.prober import Prober
    from harness.run.devices import Gpu
    from harness.run.result import Ran


@contextlib.contextmanager
def leased_gpu(prober: Prober, probe: Probe, cancel: threading.Event | None) -> Iterator[Gpu | NoGpu | None]:
    """Lease a GPU for one run. Yields None if the run needs no GPU or the prober has none, `NoGpu` if none was free."""
    if probe.combination.device is not Device.CUDA or not prober.gpus:
        yield None
        return
    pool = GpuPool(prober.gpus, prober.workspace.locks, prober.gpu_wait, prober.reporter)
    with pool.lease(probe.repro.gpu_memory or DEFAULT_NEED, cancel) as device:
        yield device


def run_once(
    prober: Prober,
    prepared: Prepared,
    environment: Environment,
    gpu: Gpu | None,
    cancel: threading.Event | None,
    *,
    apart: bool,
) -> tuple[Ran, Altered]:
    """Run a probe once; returns the result and what the run changed in its environment.

    With `apart` the run has an unshared environment that it may write to. Raises `CannotBuild` if the environment no
    longer exists and can't be rebuilt.
    """
    probe = prepared.probe
    with contextlib.ExitStack() as check, contextlib.ExitStack() as watched:
        check.enter_context(prober.checks.entered())
        place = watched.enter_context(
            watched_environment(prober.builder, environment, mixture=probe.mixture, apart=apart, cancel=cancel)
        )
        job = Job(
            python=place.environment.python,
            repro=probe.repro,
            device=probe.combination.device,
            log_path=prober.store.log_path(prepared.key),
            scratch_root=place.scratch,
            pycache_prefix=place.pycache,
            pass_env=prober.pass_env,
            extra_env=kind_of(gpu).show(gpu) if gpu is not None else {},
            capability=prober.capability,
            invoked_from=prober.invoked_from,
            trace=probe.trace,
            imports=prober.imports_file(probe, place.environment.lock) if probe.trace is not None else None,
            sandbox=prober.sandbox,
            readable=(prober.workspace.root,),
            writable=(place.scratch,) if apart else (),
            hash_seed=probe.attempt if probe.hash_seed is None else probe.hash_seed,
        )
        with prober.memory.entered(cancel):
            ran = run_repro(job, cancel=cancel, begins=check.close)
            prober.memory.note(ran.peak_memory or 0)
        return ran, place.altered()


def was_refused_a_write(ran: Ran, environment: Environment) -> bool:
    """Whether a run failed because it could not write to its environment, which is read-only in the sandbox."""
    if environment.folder is None or ran.outcome is Outcome.COMPLETED or "Read-only file system" not in ran.tail:
        return False
    return any("site-packages" in line for line in ran.tail.splitlines() if "Read-only file system" in line)
