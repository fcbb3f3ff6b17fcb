"""No process started by a command outlives it, whatever happens to the harness."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import probes
import pytest

from harness.run.launch import Limits, physical_memory
from harness.run.process import Cancelled, EndReason, cancelled_by, run_guarded

ROOT = Path(__file__).parents[2]


def guarded(folder, argv, *, memory=None, env=None):
    return run_guarded(
        argv,
        env={"PATH": os.environ["PATH"], **(env or {})},
        cwd=folder,
        limits=Limits(120.0, memory),
        output=folder / "output",
    )


def python(source):
    return [sys.executable, "-c", source]


def test_a_finished_command_gives_its_exit_code_and_output(tmp_path):
    ended = guarded(tmp_path, ["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (ended.returncode, ended.reason, ended.signal) == (3, EndReason.ENDED, None)
    assert (tmp_path / "output").read_text() == "out\nerr\n"
    assert ended.seconds > 0
    assert ended.peak_memory > 0


def test_a_death_by_signal_is_named(tmp_path):
    assert guarded(tmp_path, ["sh", "-c", "kill -TERM $$"]).signal == "SIGTERM"


def test_a_missing_command_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        guarded(tmp_path, ["no-such-command"])
    assert caught.value.filename == "no-such-command"


def test_a_missing_working_directory_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_guarded(["true"], env={}, cwd=tmp_path / "none", limits=Limits(9), output=tmp_path / "output")


def test_each_rank_prints_its_stack_at_the_time_limit(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    source = "import time\ndef wait_for_{0}():\n    open('ready-{0}', 'w').close()\n    time.sleep(60)\n"
    waiting = [source.format(rank) + f"wait_for_{rank}()" for rank in range(2)]
    (tmp_path / "ranks.py").write_text(
        f"import os, subprocess, sys\nranks = [subprocess.Popen([sys.executable, '-c', code], "
        f"env={{**os.environ, 'RANK': str(rank)}}) for rank, code in enumerate({waiting!r})]\n"
        "while not all(os.path.exists(f'ready-{rank}') for rank in range(2)):\n    pass\n"
        f"print({probes.LIMIT!r}, flush=True)\n"
        "while all(rank.poll() is None for rank in ranks):\n    pass\nfor rank in ranks:\n    rank.kill()\n"
    )
    ended = guarded(tmp_path, [sys.executable, "ranks.py"], env={"PYTHONFAULTHANDLER": "1"})
    assert ended.reason is EndReason.TIMEOUT
    parts = (tmp_path / "output").read_text().split("[harness: process ")[1:]
    assert sorted(part.partition("rank ")[2][0] for part in parts) == ["0", "1"]
    assert all(f"in wait_for_{part.partition('rank ')[2][0]}" in part for part in parts)


def test_descendants_are_killed_when_the_command_ends(tmp_path):
    pids = tmp_path / "pids"
    ended = guarded(tmp_path, python(probes.DETACHED_GRANDCHILD), env={"PIDS": str(pids)})
    assert ended.reason is EndReason.ENDED
    assert all(probes.is_gone(pid) for pid in probes.told_pids(pids, 2))


def test_no_process_is_left_after_a_timeout(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    pids = tmp_path / "pids"
    ended = guarded(tmp_path, python(probes.HANG), env={"PIDS": str(pids)})
    assert ended.reason is EndReason.TIMEOUT
    assert all(probes.is_gone(pid) for pid in probes.told_pids(pids, 2))


def test_a_process_that_ignores_signals_is_killed(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    source = (
        "import signal, time\n"
        "for number in (signal.SIGABRT, signal.SIGTERM, signal.SIGINT):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        f"print({probes.LIMIT!r}, flush=True)\n"
        "time.sleep(1000)"
    )
    ended = guarded(tmp_path, python(source))
    assert (ended.reason, ended.signal) == (EndReason.TIMEOUT, "SIGKILL")


def test_the_memory_of_the_whole_tree_counts(tmp_path):
    source = (
        "import os, time\n"
        "held = []\n"
        "for _ in range(2): os.fork()\n"
        "while True:\n"
        "    held.append(b'x' * 1_000_000)\n"
        "    time.sleep(0.01)\n"
    )
    ended = guarded(tmp_path, python(source), memory=120_000_000)
    assert ended.reason is EndReason.MEMORY
    assert ended.peak_memory > 100_000_000


def test_memory_shared_by_forks_counts_once(tmp_path):
    source = "import os, time\nheld = b'x' * 60_000_000\npids = [os.fork() for _ in range(3)]\ntime.sleep(0.6)\n"
    assert guarded(tmp_path, python(source), memory=150_000_000).reason is EndReason.ENDED


def test_the_default_limit_is_most_of_the_machine():
    assert Limits(1).bytes == int(physical_memory() * 0.9)


def test_cancelling_kills_everything(tmp_path):
    pids, cancel, raised = tmp_path / "pids", threading.Event(), []

    def work():
        try:
            with cancelled_by(cancel):
                guarded(tmp_path, python(probes.HANG), env={"PIDS": str(pids)})
        except Cancelled as stop:
            raised.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    started = probes.told_pids(pids, 2)
    cancel.set()
    thread.join()
    assert raised
    assert all(probes.is_gone(pid) for pid in started)


def test_a_cancellable_command_can_end_by_itself(tmp_path):
    with cancelled_by(threading.Event()):
        assert guarded(tmp_path, ["true"]).returncode == 0


def test_kill_9_of_the_harness_leaves_no_process(tmp_path):
    pids = tmp_path / "pids"
    source = (
        "import pathlib, probes, sys\n"
        "probes.run(pathlib.Path(sys.argv[1]), probes.HANG, variables={'PIDS': sys.argv[2]})\n"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path), str(pids)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])},
    )
    started = probes.told_pids(pids, 2)
    server, guard, *_ = probes.psutil.Process(harness.pid).children(recursive=True)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    assert probes.all_gone([*started, server.pid, guard.pid])


def test_ctrl_c_in_the_terminal_reaches_only_the_harness(tmp_path):
    pids = tmp_path / "pids"
    source = (
        "import pathlib, probes, sys\n"
        "try:\n"
        "    probes.run(pathlib.Path(sys.argv[1]), probes.HANG, variables={'PIDS': sys.argv[2]})\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path), str(pids)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])},
        start_new_session=True,
    )
    started = probes.told_pids(pids, 2)
    os.killpg(harness.pid, signal.SIGINT)
    assert harness.wait() == 130
    assert all(probes.is_gone(pid) for pid in started)


SIGNALS_ITS_GUARD = """
import os, signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import os, time; open(os.environ['PIDS'], 'w').write(str(os.getpid())); "
    "time.sleep(1000)"], start_new_session=True)
while not os.path.exists(os.environ["PIDS"]) or not open(os.environ["PIDS"]).read():
    time.sleep(0.01)
os.kill(os.getppid(), signal.{})
time.sleep(1000)
"""


class OverdueWhenStopped:
    """A clock that is past every limit while a process below this one is stopped."""

    sleep = time.sleep

    def monotonic(self):
        """Return the time in seconds."""
        children = probes.psutil.Process().children(recursive=True)
        return time.monotonic() + 1000 * any(child.status() == probes.psutil.STATUS_STOPPED for child in children)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSTOP"])
def test_a_command_that_signals_its_guard_is_killed_with_its_children(tmp_path, monkeypatch, name):
    monkeypatch.setattr("harness.run.process.time", OverdueWhenStopped())
    pids = tmp_path / "pids"
    env = {"PIDS": str(pids), "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    ended = guarded(tmp_path, python(SIGNALS_ITS_GUARD.format(name)), env=env)
    assert ended.reason is EndReason.LOST
    assert probes.all_gone(probes.told_pids(pids, 1))


def test_a_run_that_kills_what_guards_are_forked_from_disturbs_no_later_run(tmp_path):
    source = (
        "import os, signal\n"
        "status = open(f'/proc/{os.getppid()}/status').read().splitlines()\n"
        "server, = [int(line.split()[1]) for line in status if line.startswith('PPid:')]\n"
        "os.kill(server, signal.SIGKILL)\n"
    )
    assert [guarded(tmp_path, python(source)).returncode for _ in range(2)] == [0, 0]


def test_the_guard_has_no_variables_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hush")
    source = "import os; print(open(f'/proc/{os.getppid()}/environ').read())"
    ended = guarded(tmp_path, python(source))
    printed = (tmp_path / "output").read_text()
    assert "hush" not in printed
    # An unprivileged user can't even read it.
    assert ended.returncode == 0 or "PermissionError" in printed


def test_a_command_that_prints_endlessly_is_stopped(tmp_path):
    ended = run_guarded(
        ["yes"], env={"PATH": os.environ["PATH"]}, cwd=tmp_path, limits=Limits(60, output=50_000_000),
        output=tmp_path / "output",
    )  # fmt: skip
    assert ended.reason is EndReason.OUTPUT
    assert 50_000_000 < (tmp_path / "output").stat().st_size < 100_000_000


def test_the_last_output_arrives_even_if_its_process_exits_at_once(tmp_path):
    guarded(tmp_path, python("import os; os.write(1, b'x' * 65536); os._exit(0)"))
    assert (tmp_path / "output").read_bytes() == b"x" * 65536


def test_ignored_signals_are_not_passed_on(tmp_path):
    source = "import signal; print([signal.getsignal(n).name for n in (signal.SIGHUP, signal.SIGTERM)])"
    guarded(tmp_path, python(source))
    assert (tmp_path / "output").read_text() == "['SIG_DFL', 'SIG_DFL']\n"


def test_many_concurrent_runs_do_not_interfere(tmp_path):
    codes = {}

    def work(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        codes[number] = guarded(folder, ["sh", "-c", f"exit {number}"]).returncode

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {number: number for number in range(8)}


def test_the_clock_measures_only_the_command(tmp_path):
    begun = time.monotonic()
    ended = guarded(tmp_path, ["true"])
    assert 0 < ended.seconds < time.monotonic() - begun
