"""Runs forked from a process that has imported something before."""

from __future__ import annotations

import contextlib
import gzip
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from attrs import evolve

from harness.environment import PipSettings, Uv, find_interpreter
from harness.errors import UserMistake
from harness.model import Device, Outcome
from harness.model.repro import Repro
from harness.run.forks import Zygote, started_zygote
from harness.run.process import Cancelled, ZygoteFailed, cancelled_by
from harness.run.result import Ran
from harness.run.runner import Job, Place, run_repro

PYTHON = Path(sys.executable)
AT_FORKS = ("asyncio", "threading", "multiprocessing", "concurrent.futures")


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with a module that counts its imports, one with a thread, and one that fails."""
    folder = tmp_path / "modules"
    folder.mkdir()
    loads = tmp_path / "loads"
    (folder / "heavy.py").write_text(f"open({str(loads)!r}, 'a').write('x')\nVALUE = [1]\n", encoding="utf-8")
    (folder / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
        encoding="utf-8",
    )
    (folder / "failing.py").write_text("raise RuntimeError('no')\n", encoding="utf-8")
    (folder / "fatal.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
    return folder


def start(tmp_path: Path, folder: Path, *names: str, python: Path = PYTHON) -> AbstractContextManager[Zygote]:
    repro = Repro(name="step", digest="0", search_path=(str(folder),))
    return started_zygote(Job(repro, Place(python, tmp_path / "scratch"), tmp_path / "log.gz"), names)


@pytest.fixture
def zygote(tmp_path: Path, modules: Path) -> Iterator[Zygote]:
    with start(tmp_path, modules, "json", "heavy", *AT_FORKS) as started:
        yield started


def pythons() -> Iterator[Path]:
    """The Pythons of this machine that the classifiers name."""
    for classifier in metadata.metadata("regression-harness").get_all("Classifier") or ():
        minor = classifier.removeprefix("Programming Language :: Python :: ")
        with contextlib.suppress(UserMistake):
            if minor != classifier:
                yield find_interpreter(minor, Uv(PipSettings())).path


@pytest.fixture(params=sorted({PYTHON, *pythons()}), ids=str)
def python(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_modules_that_act_at_each_fork_do_not_hinder_it_on_any_python(
    tmp_path: Path, modules: Path, python: Path
) -> None:
    """asyncio resets the file descriptor that signals wake, since Python 3.12."""
    with start(tmp_path, modules, *AT_FORKS, "heavy", python=python) as zygote:
        source = "import asyncio, heavy\nasyncio.run(asyncio.sleep(0))\nprint(heavy.VALUE)\nraise KeyError('x')\n"
        ran = forked(tmp_path, zygote, source, python=python)
    assert ran.outcome is Outcome.RAISED, ran
    assert (tmp_path / "loads").read_text(encoding="utf-8") == "x"


LEAVING = """
import gc, os, signal
os.environ["LEFT_BY_IMPORT"] = "yes"
gc.disable()
GOT = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda got, _: GOT.append(got))
"""
USING_WHAT_IS_LEFT = """
import gc, os, signal, leaving
assert not gc.isenabled() and gc.get_threshold()[0]
for number in (signal.SIGTERM, signal.SIGINT):
    os.kill(os.getpid(), number)
print(os.environ["LEFT_BY_IMPORT"], len(leaving.GOT))
"""


def test_a_fork_has_what_an_import_has_set_besides_its_module(tmp_path: Path, modules: Path) -> None:
    (modules / "leaving.py").write_text(LEAVING, encoding="utf-8")
    with start(tmp_path, modules, "leaving") as zygote:
        ran = forked(tmp_path, zygote, USING_WHAT_IS_LEFT)
    assert ran.outcome is Outcome.COMPLETED, ran
    assert "yes 2" in ran.tail


def test_a_fork_has_the_variables_of_the_stand_in_for_cuda(tmp_path: Path) -> None:
    place = Place(PYTHON, tmp_path / "scratch")
    job = Job(Repro(name="step", digest="0"), place, tmp_path / "log.gz", Device.EMULATED)
    script = "import os\nprint('disabled', os.environ.get('TORCHDYNAMO_DISABLE'))\n"
    with started_zygote(job, []) as zygote:
        forking = evolve(job, repro=evolve(job.repro, source=script, path="step.py", timeout=30.0), zygote=zygote)
        assert "disabled 1" in run_repro(forking).tail


def test_a_fork_that_dies_says_why(tmp_path: Path, modules: Path) -> None:
    source = (
        "import importlib\ndef refuse():\n    raise RuntimeError('not now')\nimportlib.invalidate_caches = refuse\n"
    )
    (modules / "spoiling.py").write_text(source, encoding="utf-8")
    told = pytest.raises(ZygoteFailed, match="a fork died: RuntimeError: not now")
    with start(tmp_path, modules, "spoiling") as zygote, told:
        forked(tmp_path, zygote, "pass\n")


def forked(tmp_path: Path, zygote: Zygote, source: str, timeout: float = 30.0, python: Path = PYTHON) -> Ran:
    repro = Repro(name="step", digest="0", source=source, path="step.py", timeout=timeout)
    job = Job(repro, Place(python, tmp_path / "scratch"), tmp_path / "log.gz", zygote=zygote)
    return run_repro(job)


def test_a_fork_has_the_imports_but_nothing_from_earlier_forks(tmp_path: Path, zygote: Zygote) -> None:
    source = (
        "import heavy\nheavy.VALUE.append(2)\nassert heavy.VALUE == [1, 2], heavy.VALUE\nprint('value', heavy.VALUE)\n"
    )
    for _ in range(3):
        assert forked(tmp_path, zygote, source).outcome is Outcome.COMPLETED
    assert (tmp_path / "loads").read_text(encoding="utf-8") == "x"
    assert b"value [1, 2]" in gzip.decompress((tmp_path / "log.gz").read_bytes())


def test_an_exception_is_returned_with_type_message_and_frames(tmp_path: Path, zygote: Zygote) -> None:
    ran = forked(tmp_path, zygote, "def step():\n    raise KeyError('the step')\n\nstep()\n")
    assert ran.outcome is Outcome.RAISED
    assert ran.exception is not None
    assert ran.exception.name == "KeyError"
    assert [frame.function for frame in ran.exception.frames][-1] == "step"


def test_metrics_scratch_folder_and_environment_belong_to_the_run(tmp_path: Path, zygote: Zygote) -> None:
    source = (
        "import json, os, sys\n"
        "open('here', 'w').close()\n"
        "assert os.getcwd().startswith(os.path.realpath(os.path.dirname(os.path.dirname(os.environ['TMPDIR']))))\n"
        "assert sys.argv[0].endswith('step.py'), sys.argv\n"
        "json.dump({'left': len(os.listdir())}, open(os.environ['HARNESS_METRICS'], 'w'))\n"
    )
    for _ in range(2):
        ran = forked(tmp_path, zygote, source)
        assert (ran.outcome, ran.metrics) == (Outcome.COMPLETED, {"left": 1.0})


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("import time\ntime.sleep(60)\n", Outcome.TIMED_OUT),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", Outcome.CRASHED),
        ("import sys\nsys.exit(3)\n", Outcome.EXITED),
        ("import sys\nsys.exit(125)\n", Outcome.DECLINED),
    ],
)
def test_each_way_to_end_is_reported_like_a_fresh_process(
    tmp_path: Path, zygote: Zygote, source: str, outcome: Outcome
) -> None:
    limit_s = 2.0 if outcome is Outcome.TIMED_OUT else 60.0
    assert forked(tmp_path, zygote, source, timeout=limit_s).outcome is outcome


def test_processes_left_by_a_fork_are_killed(tmp_path: Path, zygote: Zygote) -> None:
    pid_file = tmp_path / "pid"
    source = (
        "import subprocess\np = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(pid_file)!r}, 'w').write(str(p.pid))\n"
    )
    forked(tmp_path, zygote, source)
    assert not psutil.pid_exists(int(pid_file.read_text(encoding="utf-8")))


def test_a_fork_can_be_cancelled(tmp_path: Path, zygote: Zygote) -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    with cancelled_by(cancel), pytest.raises(Cancelled):
        forked(tmp_path, zygote, "import time\ntime.sleep(60)\n")
    assert forked(tmp_path, zygote, "pass\n").outcome is Outcome.COMPLETED


def test_exit_handlers_run(tmp_path: Path, zygote: Zygote) -> None:
    source = (
        "import atexit, threading, time\natexit.register(print, 'at exit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('thread done'))).start()\n"
    )
    assert forked(tmp_path, zygote, source).outcome is Outcome.COMPLETED
    log = gzip.decompress((tmp_path / "log.gz").read_bytes())
    assert b"thread done" in log
    assert b"at exit" in log


def test_an_import_that_starts_a_thread_is_not_forked(tmp_path: Path, modules: Path) -> None:
    with pytest.raises(ZygoteFailed, match="thread"), start(tmp_path, modules, "threaded"):
        pass


def test_a_failing_import_is_repeated_in_the_fork(tmp_path: Path, modules: Path) -> None:
    with start(tmp_path, modules, "failing", "heavy") as zygote:
        ran = forked(tmp_path, zygote, f"import sys\nsys.path.append({str(modules)!r})\nimport failing\n")
        assert ran.exception is not None
        assert ran.exception.message == "no"


def test_an_import_that_exits_is_reported(tmp_path: Path, modules: Path) -> None:
    with pytest.raises(ZygoteFailed), start(tmp_path, modules, "fatal"):
        pass


def test_closing_ends_the_zygote(tmp_path: Path, modules: Path) -> None:
    with start(tmp_path, modules, "heavy") as zygote:
        children = [child for child in psutil.Process().children() if "zygote.py" in " ".join(child.cmdline())]
        assert len(children) == 1
    assert not children[0].is_running()
    with pytest.raises(ZygoteFailed), zygote.guard():
        pass


def test_a_zygote_of_a_zygote_keeps_what_the_first_has_imported(tmp_path: Path, modules: Path) -> None:
    repro = Repro(name="step", digest="0", search_path=(str(modules),))
    with start(tmp_path, modules, "heavy") as first:
        place = Place(PYTHON, first.scratch)
        with started_zygote(Job(repro, place, tmp_path / "log.gz"), ["heavy", "json"], first) as second:
            assert forked(tmp_path, second, "import heavy\nassert heavy.VALUE == [1]\n").outcome is Outcome.COMPLETED
        assert forked(tmp_path, first, "import heavy\n").outcome is Outcome.COMPLETED
    assert (tmp_path / "loads").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("of_its_parent", [False, True])
def test_forks_that_share_a_socket_of_an_import_take_turns(
    tmp_path: Path, modules: Path, *, of_its_parent: bool
) -> None:
    (modules / "paired.py").write_text("import socket\nNEAR, FAR = socket.socketpair()\n", encoding="utf-8")
    body = "import time, paired\npaired.FAR.send(b'x')\ntime.sleep(0.5)\nassert paired.NEAR.recv(9) == b'x'\n"
    repro = Repro(name="step", digest="0", search_path=(str(modules),))
    with contextlib.ExitStack() as stack:
        zygotes = [stack.enter_context(start(tmp_path, modules, "paired"))] * 2
        if of_its_parent:
            job = Job(repro, Place(PYTHON, zygotes[0].scratch), tmp_path / "log.gz")
            zygotes[1] = stack.enter_context(started_zygote(job, ["json"], zygotes[0]))
        with ThreadPoolExecutor() as pool:
            runs = list(pool.map(lambda number: forked(tmp_path / str(number), zygotes[number], body), range(2)))
    assert [ran.outcome for ran in runs] == [Outcome.COMPLETED] * 2
