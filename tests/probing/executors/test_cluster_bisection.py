"""A bisection over workers: the local answer, whatever happens to a worker, and only from matching workers."""

from __future__ import annotations

import json
import signal

from machines import machines, wait_for
from support import ROOT, SIGNED, processes_below

GATED = """
import os, time, brittle
from pathlib import Path
gate = Path(os.environ["GATE"])
if brittle.NUMBER == 5:
    (gate / f"reached-{os.getpid()}").touch()
    while not (gate / "open").exists():
        time.sleep(0.02)
brittle.step()
"""
RANGE = ["bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release", "--confirm", "1", "--json"]
END_S = 300  # only a command that hangs takes so long, also on a busy machine


def ended(process):
    """The exit code, the answer and the errors of a command."""
    stdout, stderr = process.communicate(timeout=END_S)
    assert "Traceback" not in stderr, stderr
    return process.returncode, json.loads(stdout) if stdout else None, stderr


def test_the_answer_equals_the_local_one(harness, write_repro, cluster):
    """Down to the region: mixtures and traces are transferred too, and local environments are only read."""
    write_repro("brittle")
    # Repetitions on workers are in the tests below.
    command = ["bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--lanes", "1", "--confirm", "0", "--json"]
    code, answer, stderr = ended(harness.start(*command, "--scheduler", cluster.address, "--results", "there"))
    here = harness(*command, "--results", "here").json
    assert code == 0
    for part in ("sentence", "last_good", "first_bad", "lock_changes"):
        assert answer[part] == here[part]
    levels = [(level["level"], level["files"], level["proved"]) for level in answer["culprit"]]
    assert levels == [(level["level"], level["files"], level["proved"]) for level in here["culprit"]]
    assert levels[-1][0] in ("file", "region")
    kept = {path.name: path for path in (harness.folder / "there" / "observations").glob("*/*")}
    assert set(kept) == {path.name for path in (harness.folder / "here" / "observations").glob("*/*")}
    assert any(name.endswith(".log.gz") for name in kept)
    assert stderr.count("is left out: it is linux-riscv64") == 1
    assert not cluster.cache("stranger").joinpath("environments").is_dir()
    for worker in ("one", "two"):
        assert not processes_below(cluster.cache(worker))
        assert list(cluster.cache(worker).glob("scratch/*")) == []
    again = harness(*command, "--results", "there").json
    assert (again["probes"], again["culprit_probes"], again["first_bad"]) == (0, 0, "1.6")


MATRIX = """
[axes]
repro = "brittle_step"
[axes.packages]
brittle = ["1.4", "1.5", "1.6"]
"""


def test_a_matrix_and_a_history_run_on_workers(harness, write_repro, cluster):
    write_repro("brittle")
    (harness.folder / "small.toml").write_text(MATRIX, encoding="utf-8")
    words = ("matrix", "small.toml", "--scheduler", cluster.address, "--json")
    code, first, complaints = ended(harness.start(*words))
    assert (code, [cell["verdict"] for cell in first["cells"]]) == (0, ["good", "good", "bad"])
    assert complaints.count("linux-riscv64") == 1
    assert not any(cell["cached"] for cell in first["cells"])
    _, again, _ = ended(harness.start(*words))
    assert all(cell["cached"] for cell in again["cells"])
    history = ("history", "brittle", "--from", "1.4", "--to", "1.7", "--json", "--scheduler", cluster.address)
    _, answer, _ = ended(harness.start(*history))
    assert [window["first_bad"] for window in answer["windows"]] == ["1.6"]


LOSES_EVERY_THIRD = (
    "sh -c 'n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; test $((n % 3)) -gt 0 && exec {script}'"
)


def test_a_command_that_loses_every_third_job_answers_as_this_machine_does(harness, write_repro):
    write_repro("brittle")
    there = harness.with_environ(HARNESS_SANDBOX="off", PYTHONPATH=str(ROOT))
    code, answer, stderr = ended(there.start(*RANGE, "--on", LOSES_EVERY_THIRD, "--lanes", "1", "--results", "there"))
    assert code == 0, stderr
    here = harness(*RANGE, "--no-fork", "--results", "here").json
    assert [answer[part] for part in ("sentence", "first_bad")] == [here[part] for part in ("sentence", "first_bad")]
    kept = {path.name for path in (harness.folder / "there" / "observations").glob("*/*")}
    assert kept == {path.name for path in (harness.folder / "here" / "observations").glob("*/*")}
    assert not list((harness.folder / "there").glob("jobs-*"))


def gated(harness, write_repro, cluster, tmp_path):
    """A bisection over the cluster that pauses in the middle: the command and its gate."""
    write_repro(
        "brittle", body=GATED.replace('os.environ["GATE"]', repr(str(tmp_path))), tool=f"timeout = 300\n{SIGNED}"
    )
    process = harness.start(*RANGE, "--scheduler", cluster.address)
    (reached,) = wait_for(lambda: list(tmp_path.glob("reached-*")), "the gate")
    return process, int(reached.name.partition("-")[2])


def test_a_probe_of_a_killed_worker_runs_again_elsewhere(harness, write_repro, cluster, tmp_path):
    """Even if no worker is left for a while: a new one takes over."""
    process, pid = gated(harness, write_repro, cluster, tmp_path)
    lost = []
    try:
        for tries in (2, 3):
            lost.append(cluster.worker_of(pid))
            cluster.kill(lost[-1])
            if tries == 3:
                add_again(cluster, *lost)
            reached = wait_for(lambda n=tries: gates(tmp_path, at_least=n), "the next try")
            pid = int(reached[-1].name.partition("-")[2])
        assert set(lost) == {"one", "two"}
        (tmp_path / "open").touch()
        code, answer, _ = ended(process)
    finally:
        add_again(cluster, *lost)
    assert (code, answer["status"], answer["last_good"], answer["first_bad"]) == (0, "found", "1.5", "1.6")
    runs = [(step["release"], step.get("attempt", 0)) for step in answer["steps"]]
    assert len(runs) == len(set(runs)) == answer["probes"]
    assert {step["verdict"] for step in answer["steps"]} == {"good", "bad"}
    for name in lost:
        wait_for(lambda name=name: not processes_below(cluster.cache(name) / "scratch"), "the guard to clean up")


def gates(folder, at_least):
    """When the gate was reached, in order; empty until it was reached often enough."""
    found = sorted(folder.glob("reached-*"), key=lambda path: path.stat().st_mtime_ns)
    return found if len(found) >= at_least else []


def add_again(cluster, *names):
    """Restart killed workers."""
    missing = [name for name in names if name not in cluster.processes]
    for name in missing:
        cluster.add(name, gpu={"one": "NVIDIA A100", "two": "NVIDIA T4"}[name])
    cluster.wait_until_there(*missing)


def test_ctrl_c_stops_runs_on_the_workers(harness, write_repro, cluster, tmp_path):
    process, pid = gated(harness, write_repro, cluster, tmp_path)
    cache = cluster.cache(cluster.worker_of(pid))
    process.send_signal(signal.SIGINT)
    code, _, stderr = ended(process)
    assert code == 130
    assert "run the same command again" in stderr
    wait_for(lambda: not processes_below(cache), "the run to end")


def test_a_killed_command_leaves_nothing_running_on_the_workers(harness, write_repro, cluster, tmp_path):
    process, pid = gated(harness, write_repro, cluster, tmp_path)
    cache = cluster.cache(cluster.worker_of(pid))
    process.kill()
    process.communicate(timeout=END_S)
    wait_for(lambda: not processes_below(cache), "the run to end")


def test_results_come_from_one_gpu_model_only(harness, write_repro, cluster):
    """Of two models with equally many lanes, the first by name is used; the other is reported and stays idle."""
    write_repro("brittle", tool=f'device = "cuda"\n{SIGNED}')
    code, answer, stderr = ended(harness.start(*RANGE, "--scheduler", cluster.address))
    assert (code, answer["device"], answer["first_bad"]) == (0, "cuda", "1.6")
    assert stderr.count("its GPU is NVIDIA T4, not NVIDIA A100") == 1
    here = harness(*RANGE, "--device", "cuda", "--results", "elsewhere")
    assert here.code != 0  # this machine has no GPU: what the cluster saw is not its own


def test_missing_workers_or_scheduler_give_one_sentence_and_an_exit_code(
    harness, write_repro, cluster, tmp_path, tmp_path_factory
):
    """After one lost worker too many, and with a missing or stopped scheduler."""
    strict = {**cluster.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with machines(tmp_path_factory.mktemp("own"), strict) as own:
        own.add("first")
        own.add("second")
        own.wait_until_there("first", "second")
        for lost, told in (
            ("worker", "1 workers died while running brittle_step"),
            ("scheduler", f"the scheduler at {own.address} is gone"),
        ):
            gate = tmp_path / lost
            gate.mkdir()
            process, pid = gated(harness, write_repro, own, gate)
            own.kill(own.worker_of(pid) if lost == "worker" else "scheduler")
            code, _, stderr = ended(process)
            assert code == 7
            assert "run the same command again" in stderr
            assert told in stderr
    code, _, stderr = ended(harness.start(*RANGE, "--scheduler", own.address))
    assert code == 7
    assert f"the scheduler at {own.address} can't be reached: Connection refused" in stderr
