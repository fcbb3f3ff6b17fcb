"""A prober over a fake executor: what is sent, stored and refused."""

from __future__ import annotations

import gzip

import pytest
from attrs import define, evolve, field
from support import SIGNED, repro_text
from support import own_cache as cache  # noqa: F401 - a fixture

from harness.errors import NoWorkers
from harness.events import SILENT
from harness.model import Combination, Device, Observation, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.probing.executors import Lost, RemoteProber
from harness.probing.job import Result
from harness.probing.node import Machine, kind_of
from harness.run.devices import Gpu

A100, T4 = (Gpu(0, name, 80, 80, "550") for name in ("NVIDIA A100", "NVIDIA T4"))


@define
class FakeExecutor:
    """Has machines, and makes a result from each job at once."""

    workers: dict[str, Machine]
    reply_to: object = None
    address: str = "tcp://somewhere"
    jobs: list[object] = field(factory=list)
    could_run: list[set[str]] = field(factory=list)
    cancelled: int = 0
    told: list[str] = field(factory=list)

    def report(self, event):
        """Take a warning."""
        self.told.append(event.sentence)

    def machines(self, python, cache_tag):
        """All of them."""
        return self.workers

    def submit(self, job, machines):
        """Take a job."""
        self.jobs.append(job)
        self.could_run.append(set(machines))
        return job

    def poll(self, job):
        """Answer."""
        return self.reply_to(job)

    def cancel(self, job):
        """Count."""
        self.cancelled += 1


KINDS = []


@pytest.fixture(autouse=True)
def _kind(interpreter):
    """The kind of this machine."""
    KINDS[:] = [kind_of(interpreter)]


def ran(job, outcome=Outcome.COMPLETED):
    """The result of a machine like this one."""
    probe, lock = job.probe, job.lock
    device = probe.combination.device
    observation = Observation(job.key, outcome, "r", probe.repro.digest, device, lock=lock)
    return Result(observation, KINDS[0], A100.name if device is Device.CUDA else "", gzip.compress(b"hello\n"))


@pytest.fixture
def over(parts, interpreter):
    """A prober over machines that have these GPUs."""

    def make(reply_to=ran, *gpus):
        kind = kind_of(interpreter)
        workers = {
            f"w{i}": Machine(kind, (gpu,) if gpu else (), 2, 1 if gpu else 0) for i, gpu in enumerate(gpus or [None])
        }
        executor = FakeExecutor(workers, reply_to)
        return RemoteProber.over(executor, parts.prober, executor), executor

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
    prober, executor = over()
    observation = prober.execute(prober.prepare(probe()))
    assert prober.store.log(observation) == "hello\n"
    again = prober.prepare(probe())
    assert (again.cached, again.observation) == (True, observation)
    assert parts.prober.prepare(probe()).observation == observation  # the same question asked of this machine
    assert prober.known(probe()) == observation
    assert len(executor.jobs) == 1


def test_remote_probes_build_nothing_locally(over, probe, parts):
    prober, _ = over()
    prober.execute(prober.prepare(probe()))
    assert not list(parts.workspace.environments.iterdir())


def test_unresolvable_probes_are_answered_locally(over, probe):
    prober, executor = over()
    prepared = prober.prepare(probe("99"))
    assert prepared.observation.outcome is Outcome.UNRESOLVABLE
    assert prober.execute(prepared) == prepared.observation
    assert executor.jobs == []


def test_a_failed_install_on_a_worker_is_reported_and_not_stored(over, probe):
    prober, _ = over(lambda job: ran(job, Outcome.UNINSTALLABLE))
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


def test_a_lost_job_is_sent_again_twice(over, probe):
    tries = []

    def loses(times):
        def reply(job):
            tries.append(job)
            if len(tries) <= times:
                raise Lost("its machine went away")
            return ran(job)

        return reply

    prober, executor = over(loses(2))
    assert prober.execute(prober.prepare(probe())).outcome is Outcome.COMPLETED
    assert (len(executor.jobs), executor.cancelled) == (3, 3)
    tries.clear()
    prober, _ = over(loses(3))
    with pytest.raises(NoWorkers, match="no result after 3 tries: its machine went away"):
        prober.execute(prober.prepare(probe("1.4")))


def test_what_a_machine_failed_runs_on_another_host(over, probe):
    hosts = iter(["sick", "well", "sick", "sick"])

    def reply(job):
        host = next(hosts)
        result = ran(job, Outcome.MACHINE_FAILED if host == "sick" else Outcome.COMPLETED)
        return evolve(result, observation=evolve(result.observation, machine={"host": host}))

    prober, executor = over(reply, A100, A100)
    executor.workers = {name: evolve(executor.workers["w0"], host=name) for name in ("sick", "well")}
    assert prober.execute(prober.prepare(probe())).outcome is Outcome.COMPLETED
    assert executor.could_run == [{"sick", "well"}, {"well"}]
    del executor.workers["well"]
    assert prober.execute(prober.prepare(probe("1.4"))).outcome is Outcome.MACHINE_FAILED
    assert len(executor.jobs) == 3


def test_a_prober_of_one_host_sends_its_jobs_there(over, probe):
    prober, executor = over(ran, A100, A100)
    executor.workers = {name: evolve(worker, host=name) for name, worker in executor.workers.items()}
    evolve(prober, host="w1").execute(prober.prepare(probe()))
    evolve(prober, host="gone").execute(prober.prepare(probe("1.4")))
    assert executor.could_run == [{"w1"}, {"w0", "w1"}]


def test_a_forged_result_is_refused_and_not_stored(over, probe):
    forged = {
        "another GPU": lambda result: evolve(result, gpu="NVIDIA T4"),
        "another script": lambda result: evolve(result, observation=evolve(result.observation, repro_digest="0")),
        "another kind of machine": lambda result: evolve(result, kind=evolve(result.kind, platform="linux-riscv64")),
        "another harness": lambda result: evolve(result, kind=evolve(result.kind, harness="0.0 (abc)")),
    }
    for change in forged.values():
        prober, _ = over(lambda job, change=change: change(ran(job)), A100)
        prepared = prober.prepare(probe(device=Device.CUDA))
        with pytest.raises(NoWorkers, match="no result after 3 tries"):
            prober.execute(prepared)
        assert prober.store.get(prepared.key) is None


def test_a_gpu_probe_goes_to_one_model_and_is_stored_under_its_name(over, probe, parts):
    prober, executor = over(ran, T4, A100, A100, None)
    prepared = prober.prepare(probe(device=Device.CUDA))
    prober.execute(prepared)
    assert executor.could_run == [{"w1", "w2"}]
    assert prepared.key == evolve(parts.prober, gpus=(A100,)).key(prepared.probe, prepared.probe.lock)
    assert prepared.key != evolve(parts.prober, gpus=(T4,)).key(prepared.probe, prepared.probe.lock)
    assert any("w0" in told and "NVIDIA T4" in told for told in executor.told)
    assert any("w3" in told and "it has no GPU" in told for told in executor.told)
    assert (prober.slots(Device.CUDA), prober.slots(Device.CPU)) == (2, 8)


def test_without_a_gpu_worker_there_are_no_gpu_lanes(over):
    prober, _ = over()
    with pytest.raises(NoWorkers, match="can run on a GPU"):
        prober.slots(Device.CUDA)


def test_without_workers_there_is_no_prober(parts):
    with pytest.raises(NoWorkers, match="matches this machine"):
        RemoteProber.over(FakeExecutor({}), parts.prober, SILENT)
