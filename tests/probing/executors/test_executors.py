"""Every executor keeps one protocol: it describes its machines, answers jobs, and ends those that nobody wants."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys

import pytest
from attrs import evolve
from machines import wait_for
from support import ROOT, SIGNED, processes_below, repro_text

from harness.errors import NoWorkers, UserMistake
from harness.events import SILENT
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.probing.executors import Lost, connect, left_out_because
from harness.probing.job import ProbeJob
from harness.probing.node import Machine, kind_of

# A queue: it takes the script away, as sbatch does, and runs it a moment later.
QUEUE = """
import subprocess, sys, time
from pathlib import Path
copy = Path(sys.argv[1] + ".taken")
spool = Path(sys.argv[2]); spool.mkdir(exist_ok=True)
taken = spool / f"job-{time.monotonic_ns()}"
taken.write_bytes(Path(sys.argv[1]).read_bytes())
time.sleep(0.2)
sys.exit(subprocess.call(["sh", str(taken)]))
"""


@pytest.fixture(params=["dask", "sh", "queue"])
def executor(request, tmp_path, house, uv_cache, monkeypatch):
    """An executor, and the folder below which its jobs run."""
    if request.param == "dask":
        cluster = request.getfixturevalue("cluster")
        with contextlib.closing(connect(cluster.address, SILENT)) as opened:
            yield opened, cluster.folder
        return
    own = {**house.environ, "UV_CACHE_DIR": str(uv_cache), "PIP_CONFIG_FILE": os.devnull, "HARNESS_SANDBOX": "off"}
    own |= {"HARNESS_CACHE_DIR": str(tmp_path / "there"), "PYTHONPATH": str(ROOT)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "queue.py").write_text(QUEUE, encoding="utf-8")
    queue = f"{sys.executable} {tmp_path / 'queue.py'} {{script}} {tmp_path / 'spool'}"
    command = {"sh": "sh {script}", "queue": queue}[request.param]
    with contextlib.closing(connect(command, SILENT, lanes=2, folder=tmp_path / "jobs")) as opened:
        yield opened, tmp_path


@pytest.fixture
def job(parts, interpreter):
    """A job of a release of `brittle`."""

    def make(version="1.5", body=None, **more):
        repro = parse_repro(repro_text("brittle", tool=SIGNED, body=body), name="brittle_step")
        probe = Probe(repro, Combination(python=interpreter.version, requirements=(f"brittle=={version}",)), **more)
        lock = parts.prober.resolve(probe).lock
        return ProbeJob.of(probe, lock, parts.prober.key(probe, lock), parts.prober)

    return make


def machines_of(executor, interpreter):
    """The machines that match this one."""
    kind = kind_of(interpreter)
    described = executor.machines(interpreter.version, interpreter.cache_tag)
    assert described == executor.machines(interpreter.version, interpreter.cache_tag)
    return [
        name
        for name, machine in described.items()
        if isinstance(machine, Machine) and left_out_because(machine.kind, kind) is None
    ]


def polled(executor, handle):
    """The result of a job."""
    return wait_for(lambda: executor.poll(handle), "the result")


def test_an_executor_answers_a_job(executor, job, interpreter):
    opened, _ = executor
    machines = machines_of(opened, interpreter)
    assert machines
    sent = job("1.6", body="import brittle\nprint('so far')\nbrittle.step()\n")
    handle = opened.submit(sent, machines)
    try:
        result = polled(opened, handle)
    finally:
        opened.cancel(handle)
    assert (result.of(sent).outcome, gzip.decompress(result.log)[:7]) == (Outcome.RAISED, b"so far\n")


def test_an_executor_raises_the_error_of_the_machine(executor, job, interpreter):
    opened, _ = executor
    sent = job()
    foreign = evolve(sent, probe=evolve(sent.probe, lock=evolve(sent.lock, platform="linux-riscv64")))
    handle = opened.submit(foreign, machines_of(opened, interpreter))
    with pytest.raises(NoWorkers, match="the lock is for linux-riscv64"):
        polled(opened, handle)
    opened.cancel(handle)


def test_a_cancelled_job_leaves_nothing_running(executor, job, interpreter, tmp_path):
    opened, folder = executor
    body = f"import time\nopen({str(tmp_path / 'reached')!r}, 'w')\ntime.sleep(600)\n"
    handle = opened.submit(job(body=body), machines_of(opened, interpreter))
    wait_for(lambda: opened.poll(handle) or (tmp_path / "reached").exists(), "its run")
    assert opened.poll(handle) is None
    opened.cancel(handle)
    wait_for(lambda: not processes_below(folder, "child.py"), "its end")


def test_a_removed_job_ends_wherever_it_runs(job, tmp_path, house, uv_cache, monkeypatch, interpreter):
    """The queue has taken it, and the command that waits for it is gone."""
    own = {**house.environ, "UV_CACHE_DIR": str(uv_cache), "HARNESS_CACHE_DIR": str(tmp_path / "there")}
    for name, value in {**own, "PYTHONPATH": str(ROOT), "HARNESS_SANDBOX": "off"}.items():
        monkeypatch.setenv(name, value)
    command = "sh -c 'setsid sh {script} & wait'"
    with contextlib.closing(connect(command, SILENT, folder=tmp_path / "jobs")) as opened:
        body = f"import time\nopen({str(tmp_path / 'reached')!r}, 'w')\ntime.sleep(600)\n"
        handle = opened.submit(job(body=body), ())
        wait_for(lambda: opened.poll(handle) or (tmp_path / "reached").exists(), "its run")
        opened.cancel(handle)
        wait_for(lambda: not processes_below(tmp_path / "there"), "its end")


def test_a_command_that_loses_its_job_says_what_it_printed(job, tmp_path):
    with contextlib.closing(connect("sh -c 'echo queue full; exit 3; {script}'", SILENT, folder=tmp_path)) as opened:
        handle = opened.submit(job(), ())
        with pytest.raises(Lost, match="exit code 3 and no result: queue full"):
            polled(opened, handle)
        assert "queue full" in opened.machines("3.11.7", "cpython-311")["sh"]
    assert not list(tmp_path.glob("jobs-*"))


@pytest.mark.parametrize("command", ["nosuchprogram {script}", "sh '{script}"])
def test_a_command_that_cannot_be_started_is_refused(command, tmp_path):
    with pytest.raises(UserMistake):
        connect(command, SILENT, folder=tmp_path)
