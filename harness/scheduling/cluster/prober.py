"""Runs probes on a cluster: resolves and looks up observations on this machine, and runs the rest on the workers.

It replaces the local prober, so every search works the same way. A task carries the files of its mixture, and the
worker puts them into its own environment. This machine builds an environment only to inspect its files.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.errors import NoWorkers, UserMistake
from harness.model import Device, Outcome
from harness.probe import Prepared
from harness.scheduling.cluster.members import Kind, Member, commonest_gpu, kind_of, no_gpu_because
from harness.scheduling.cluster.task import Reply, task_for

if TYPE_CHECKING:
    import threading

    from harness.environment import Builder
    from harness.model import Observation
    from harness.probe import Probe, Prober
    from harness.run.devices import Gpu
    from harness.scheduling.cluster.connection import Connection
    from harness.store import Store, StoredResolution


@frozen
class ClusterProber:
    """A prober over the workers of one cluster that match this machine.

    `here` resolves, stores and looks up. Its GPU is `gpu`, the model that the workers have, so stored observations name
    the GPU that they ran on.
    """

    here: Prober
    connection: Connection
    kind: Kind
    gpu: Gpu | None

    @classmethod
    def over(cls, connection: Connection, here: Prober) -> ClusterProber:
        """Make a prober with the settings of a local one. Raises `NoWorkers` if no worker matches this machine."""
        kind = kind_of(here.builder.interpreter)
        members = connection.members(kind)
        if not members:
            raise NoWorkers(
                f"no worker at {connection.address} matches this machine "
                f"({kind.platform}, Python {kind.python}, harness {kind.version})",
                hint="the warnings above say why; 'dask worker' starts one",
            )
        gpu = commonest_gpu(members.values())
        return cls(evolve(here, gpus=(gpu,) if gpu else ()), connection, kind, gpu)

    @property
    def store(self) -> Store:
        """Where observations are kept, on this machine."""
        return self.here.store

    @property
    def builder(self) -> Builder:
        """Builds environments on this machine, to inspect them."""
        return self.here.builder

    def slots(self, device: Device) -> int:
        """The number of probes that can run on a device at a time. Raises `NoWorkers` if no worker can run one."""
        members = self._who(device)
        if not members:
            raise NoWorkers(
                f"no worker at {self.connection.address} can run on a GPU",
                hint='the warnings above say why; dask worker ... --resources "gpu=1" declares a GPU',
            )
        return sum(member.slots(device) for member in members.values())

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """Return the lock of a probe, resolved on this machine."""
        return self.here.resolve(probe, cancel=cancel)

    def known(self, probe: Probe) -> Observation | None:
        """Return an earlier observation of a probe from the store, or None."""
        return self.here.known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """Resolve a probe, or answer it from the store. Builds nothing.

        Raises `UserMistake` for a command, because its files are only on this machine.
        """
        if probe.repro.argv:
            raise UserMistake(
                "--run needs files of this machine, which the workers don't have",
                hint="write it as a repro (README, 'Write a repro'), or leave out --scheduler",
            )
        begun = time.monotonic()
        if probe.lock is not None:
            return self.here.look_up(probe, probe.lock, begun=begun)
        resolution = self.here.resolve(probe, cancel=cancel)
        if resolution.lock is None:
            return self.here.prepare(probe, cancel=cancel)  # builds nothing, as there is no lock
        settled = evolve(probe, lock=resolution.lock)
        return self.here.look_up(settled, resolution.lock, drift=resolution.drift, begun=begun)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Run a probe on a worker and store its observation on this machine.

        Raises `Cancelled` when `cancel` is set, `NoWorkers` if no worker can run it, and any error from the worker.
        """
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        if probe.lock is None:
            raise ValueError("nothing to run")
        task = task_for(probe, probe.lock, prepared.key, self.here, self.here.builder.interpreter)
        reply = self.connection.run(task, lambda: self._who(probe.combination.device), cancel=cancel)
        return self._kept(evolve(self._observed(reply), drift=prepared.drift), reply.log)

    def _observed(self, reply: Reply) -> Observation:
        if reply.trouble is not None:
            raise reply.trouble.kind(f"on a worker: {reply.trouble.message}", hint=reply.trouble.hint)
        if reply.observation is None:
            raise NoWorkers(
                f"a worker refused a task: {reply.refused}",
                hint="it changed after it joined; restart it and run this command again",
            )
        return reply.observation

    def _kept(self, observation: Observation, log: bytes) -> Observation:
        # A failed install may be due to the worker's index settings; mixtures are cheap to repeat.
        if observation.outcome is Outcome.UNINSTALLABLE:
            return observation
        return self.store.put_from_elsewhere(observation, log)

    def _who(self, device: Device) -> dict[str, Member]:
        """The workers that may run a probe on a device, by address."""
        members = self.connection.members(self.kind)
        if device is not Device.CUDA:
            return members
        fit = {}
        for address, member in members.items():
            why = no_gpu_because(member)
            if why is None and self.gpu is not None and member.gpus[0].name != self.gpu.name:
                why = f"its GPU is {member.gpus[0].name}, most workers have {self.gpu.name}"
            if why is None:
                fit[address] = member
            else:
                self.connection.warn_once(f"worker {address} gets no GPU probes: {why}")
        return fit
