"""Probes whose runs happen on a cluster: locks and answers are looked up here, what is missing is run there.

It takes the place of a prober, so every search, culprits included, goes the same way. A mixture's files travel with
it, and the worker mixes them into its own environment; an environment is built here only to look into its files.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.errors import NoWorkers, UserMistake
from harness.model import Device, Outcome
from harness.probe import Prepared
from harness.scheduling.cluster.members import Kind, Member, commonest_gpu, kind_of, no_gpu_because
from harness.scheduling.cluster.order import Reply, order_for

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
    """A prober over the workers of one cluster that are like this machine.

    `here` resolves, keeps and looks up; its GPU is `gpu`, the workers' and never this machine's, so that whatever is
    kept says which kind of GPU has answered.
    """

    here: Prober
    connection: Connection
    kind: Kind
    gpu: Gpu | None

    @classmethod
    def over(cls, connection: Connection, here: Prober) -> ClusterProber:
        """A prober with the settings of one of this machine. Raises `NoWorkers` if no worker is like it."""
        kind = kind_of(here.builder.interpreter)
        members = connection.members(kind)
        if not members:
            raise NoWorkers(
                f"no worker of {connection.address} is like this machine "
                f"({kind.platform}, Python {kind.python}, harness {kind.version})",
                hint="what keeps a worker out is told above; 'dask worker' starts one",
            )
        gpu = commonest_gpu(members.values())
        return cls(evolve(here, gpus=(gpu,) if gpu else ()), connection, kind, gpu)

    @property
    def store(self) -> Store:
        """Where observations are kept: here."""
        return self.here.store

    @property
    def builder(self) -> Builder:
        """Builds environments here, to look into them."""
        return self.here.builder

    def slots(self, device: Device) -> int:
        """How many probes run at a time now. Raises `NoWorkers` if none can."""
        members = self._who(device)
        if not members:
            raise NoWorkers(
                f"no worker of {self.connection.address} can run on a GPU",
                hint='what keeps each of them from it is told above; dask worker ... --resources "gpu=1" declares one',
            )
        return sum(member.slots(device) for member in members.values())

    def resolve(self, probe: Probe, *, cancel: threading.Event | None = None) -> StoredResolution:
        """The lock of a probe, by this machine's resolver."""
        return self.here.resolve(probe, cancel=cancel)

    def known(self, probe: Probe) -> Observation | None:
        """What was observed of a probe before, by the store alone."""
        return self.here.known(probe)

    def prepare(self, probe: Probe, *, cancel: threading.Event | None = None) -> Prepared:
        """The lock of a probe, or its answer where the store has it; nothing is built.

        Raises `UserMistake` for a command, whose files are only here.
        """
        if probe.repro.argv:
            raise UserMistake(
                "--run takes a command with files of this machine, which the workers don't have",
                hint="write it as a repro (README, 'Write a repro'), or leave out --scheduler",
            )
        begun = time.monotonic()
        if probe.lock is not None:
            return self.here.look_up(probe, probe.lock, begun=begun)
        resolution = self.here.resolve(probe, cancel=cancel)
        if resolution.lock is None:
            return self.here.prepare(probe, cancel=cancel)  # builds nothing: the answer is that there is no lock
        settled = evolve(probe, lock=resolution.lock)
        return self.here.look_up(settled, resolution.lock, drift=resolution.drift, begun=begun)

    def execute(self, prepared: Prepared, *, cancel: threading.Event | None = None) -> Observation:
        """Have a probe run by a worker and keep here what was observed. Raises `Cancelled`, `NoWorkers` and others."""
        if prepared.observation is not None:
            return prepared.observation
        probe = prepared.probe
        if probe.lock is None:
            raise ValueError("nothing to run")
        order = order_for(probe, probe.lock, prepared.key, self.here, self.here.builder.interpreter)
        reply = self.connection.run(order, lambda: self._who(probe.combination.device), cancel=cancel)
        return self._kept(evolve(self._observed(reply), drift=prepared.drift), reply.log)

    def _observed(self, reply: Reply) -> Observation:
        if reply.trouble is not None:
            raise reply.trouble.kind(f"on a worker: {reply.trouble.message}", hint=reply.trouble.hint)
        if reply.observation is None:
            raise NoWorkers(
                f"a worker took an order and refused it: {reply.refused}",
                hint="it has changed since it joined; start it again, and this command",
            )
        return reply.observation

    def _kept(self, observation: Observation, log: bytes) -> Observation:
        # What a worker can't install may be for its index settings, and mixtures are cheap to say again.
        if observation.outcome is Outcome.UNINSTALLABLE:
            return observation
        return self.store.put_from_elsewhere(observation, log)

    def _who(self, device: Device) -> dict[str, Member]:
        """The workers that may answer a probe on a device, by address."""
        members = self.connection.members(self.kind)
        if device is not Device.CUDA:
            return members
        fit = {}
        for address, member in members.items():
            why = no_gpu_because(member)
            if why is None and self.gpu is not None and member.gpus[0].name != self.gpu.name:
                why = f"its GPU is {member.gpus[0].name}, most are {self.gpu.name}"
            if why is None:
                fit[address] = member
            else:
                self.connection.warn_once(f"worker {address} runs nothing on a GPU: {why}")
        return fit
