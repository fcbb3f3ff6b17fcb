"""A prober over a cluster with a fake connection: what is sent, stored and refused."""

from __future__ import annotations

import gzip

import pytest
from attrs import define, evolve, field
from support import SIGNED, repro_text

from harness.errors import NoWorkers, UserMistake
from harness.model import Combination, Device, Observation, Outcome
from harness.model.repro import command_repro, parse_repro
from harness.probing import Probe
from harness.probing.cluster.prober import ClusterProber, Member, kind_of
from harness.run.devices import Gpu

A100, T4 = (Gpu(0, name, 80, 80, "550") for name in ("NVIDIA A100", "NVIDIA T4"))


@define
class FakeConnection:
    """Has members, and makes a reply from each task."""

    workers: dict[str, Member]
    reply_to: object = None
    address: str = "tcp://somewhere"
    tasks: list[object] = field(factory=list)
    could_run: list[set[str]] = field(factory=list)
    told: set[str] = field(factory=set)

    def members(self, kind):
        """All of them."""
        return self.workers

    def warn_once(self, sentence):
        """Record it."""
        self.told.add(sentence)

    def run(self, task, may_run):
        """Answer."""
        self.tasks.append(task)
        self.could_run.append(set(may_run()))
        return self.reply_to(task)


def ran(task, outcome=Outcome.COMPLETED):
    observation = Observation(task.key, outcome, "r", "d", task.combination.device, lock=task.lock)
    return observation, gzip.compress(b"hello\n")


@pytest.fixture
def over(parts, interpreter):
    """A prober over workers that have these GPUs."""

    def make(reply_to=ran, *gpus):
        kind = kind_of(interpreter)
        workers = {
            f"w{i}": Member(kind, 2, 1 if gpu else 0, (gpu,) if gpu else ()) for i, gpu in enumerate(gpus or [None])
        }
        connection = FakeConnection(workers, reply_to)
        return ClusterProber.over(connection, parts.prober), connection

    return make


@pytest.fixture
def probe(interpreter):
    """A probe of a release of `brittle`."""

    def make(version="1.5", device=Device.CPU, **more):
        repro = parse_repro(repro_text("brittle", tool=SIGNED), name="brittle_step")
        asked = Combination(python=interpreter.version, requirements=(f"brittle=={version}",), device=device)
        return Probe(repro, asked, **more)

    return make


def test_observations_of_workers_are_stored_and_reused(over, probe, parts):
    prober, connection = over()
    observation = prober.execute(prober.prepare(probe()))
    assert prober.store.log(observation) == "hello\n"
    again = prober.prepare(probe())
    assert (again.cached, again.observation) == (True, observation)
    assert parts.prober.prepare(probe()).observation == observation  # the same question asked of this machine
    assert prober.known(probe()) == observation
    assert len(connection.tasks) == 1


def test_remote_probes_build_nothing_locally(over, probe, parts):
    prober, _ = over()
    prober.execute(prober.prepare(probe()))
    assert not list(parts.workspace.environments.iterdir())


def test_unresolvable_probes_are_answered_locally(over, probe):
    prober, connection = over()
    prepared = prober.prepare(probe("99"))
    assert prepared.observation.outcome is Outcome.UNRESOLVABLE
    assert prober.execute(prepared) == prepared.observation
    assert connection.tasks == []


def test_a_failed_install_on_a_worker_is_reported_and_not_stored(over, probe):
    prober, _ = over(lambda task: ran(task, Outcome.UNINSTALLABLE))
    assert prober.execute(prober.prepare(probe())).outcome is Outcome.UNINSTALLABLE
    assert prober.prepare(probe()).observation is None


def test_a_refusal_is_not_an_answer(over, probe):
    def refuse(_):
        raise NoWorkers("it has changed")

    prober, _ = over(refuse)
    prepared = prober.prepare(probe())
    with pytest.raises(NoWorkers, match="it has changed"):
        prober.execute(prepared)
    assert prober.store.get(prepared.key) is None


def test_a_gpu_probe_goes_to_one_model_and_is_stored_under_its_name(over, probe, parts):
    prober, connection = over(ran, T4, A100, A100, None)
    prepared = prober.prepare(probe(device=Device.CUDA))
    prober.execute(prepared)
    assert connection.could_run == [{"w1", "w2"}]
    assert prepared.key == evolve(parts.prober, gpus=(A100,)).key(prepared.probe, prepared.probe.lock)
    assert prepared.key != evolve(parts.prober, gpus=(T4,)).key(prepared.probe, prepared.probe.lock)
    assert any("w0" in told and "NVIDIA T4" in told for told in connection.told)
    assert any("w3" in told and "declares no GPU" in told for told in connection.told)
    assert (prober.slots(Device.CUDA), prober.slots(Device.CPU)) == (2, 8)


def test_without_a_gpu_worker_there_are_no_gpu_lanes(over):
    prober, _ = over()
    with pytest.raises(NoWorkers, match="can run on a GPU"):
        prober.slots(Device.CUDA)


def test_without_workers_there_is_no_prober(parts):
    with pytest.raises(NoWorkers, match="matches this machine"):
        ClusterProber.over(FakeConnection({}), parts.prober)


def test_a_command_is_not_sent(over, interpreter):
    prober, _ = over()
    asked = Combination(python=interpreter.version, requirements=())
    with pytest.raises(UserMistake, match="files of this machine"):
        prober.prepare(Probe(command_repro("pytest tests"), asked))
