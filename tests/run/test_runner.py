"""One repro in one real interpreter: the outcome is complete, and nothing leaks."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
import threading
import venv

import probes
import pytest

from harness.errors import HarnessFault, MissingProgram
from harness.model import Device, Observation, Outcome, Signature, Verdict, capture_signature, judge
from harness.run.process import Cancelled, cancelled_by
from harness.run.result import METRICS_COUNT, read_metrics
from harness.run.runner import run_repro


def log_of(folder):
    return gzip.decompress((folder / "logs" / "log.gz").read_bytes())


# -- how a script ends


def test_a_script_that_ends_normally_completed(tmp_path):
    ran = probes.run(tmp_path, "print('hello')")
    assert (ran.outcome, ran.detail, ran.exit_code) == (Outcome.COMPLETED, "ran to its end", 0)
    assert ran.exception is None
    assert ran.tail == "hello\n"
    assert log_of(tmp_path) == b"hello\n"
    assert ran.python == "{}.{}.{}".format(*sys.version_info)
    assert ran.duration_s > 0
    assert ran.peak_memory > 1_000_000


def test_an_exception_is_returned_with_its_frames(tmp_path):
    ran = probes.run(tmp_path, "def step():\n    raise ValueError('bad value')\n\nstep()\n")
    assert (ran.outcome, ran.detail, ran.exit_code) == (Outcome.RAISED, "ValueError: bad value", 1)
    assert ran.exception.type == "builtins.ValueError"
    assert ran.exception.bases == ("builtins.Exception", "builtins.BaseException")
    assert [(f.file, f.line, f.function, f.package, f.text) for f in ran.exception.frames] == [
        ("probe.py", 4, "<module>", "", "step()"),
        ("probe.py", 2, "step", "", "raise ValueError('bad value')"),
    ]


def test_the_traceback_is_printed_as_python_prints_it(tmp_path):
    source = "def step():\n    raise ValueError('bad value')\n\nstep()\n"
    ran = probes.run(tmp_path, source)
    lines = [line.strip() for line in ran.tail.splitlines()]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: bad value"
    assert sum(line.startswith("File ") for line in lines) == 2
    assert "child.py" not in ran.tail


def test_an_explicit_cause_is_kept_and_a_context_is_not(tmp_path):
    source = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('k'){}\n"
    caused = probes.run(tmp_path, source.format(" from error")).exception
    assert (caused.name, caused.cause.name, caused.cause.message) == (
        "KeyError",
        "ZeroDivisionError",
        "division by zero",
    )
    assert caused.cause.frames[0].line == 2
    assert probes.run(tmp_path, source.format("")).exception.cause is None


def test_a_gap_is_found_behind_the_exception_that_replaced_it(tmp_path):
    source = (
        "class EmulationGap(RuntimeError): pass\n"
        "try:\n    raise EmulationGap('torch.cuda.Graph')\n"
        "except RuntimeError:\n    raise ValueError('other')\n"
    )
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.detail) == (Outcome.EMULATION_GAP, "EmulationGap: torch.cuda.Graph")
    assert ran.exception.name == "ValueError"


def test_a_syntax_error_is_an_ordinary_exception(tmp_path):
    ran = probes.run(tmp_path, "def f(:\n")
    assert (ran.outcome, ran.exception.name) == (Outcome.RAISED, "SyntaxError")
    assert "SyntaxError" in ran.tail


def test_endless_recursion_is_reported_in_few_frames(tmp_path):
    ran = probes.run(tmp_path, "def f(): f()\nf()\n")
    assert ran.exception.name == "RecursionError"
    assert len(ran.exception.frames) == 200


def test_an_exception_with_a_failing_message_is_reported(tmp_path):
    source = "class Mute(Exception):\n    def __str__(self): raise KeyError('x')\nraise Mute\n"
    ran = probes.run(tmp_path, source)
    assert ran.exception.type == "__main__.Mute"
    assert "str() failed" in ran.exception.message


@pytest.mark.parametrize(
    ("source", "outcome", "code", "detail"),
    [
        ("import sys; sys.exit(0)", Outcome.COMPLETED, 0, "ran to its end"),
        ("import sys; sys.exit()", Outcome.COMPLETED, 0, "ran to its end"),
        ("import sys; sys.exit(3)", Outcome.EXITED, 3, "exit code 3"),
        (
            "import sys; sys.exit(125)",
            Outcome.DECLINED,
            125,
            "exit code 125: the repro can't tell",
        ),
        ("import sys; sys.exit('no data')", Outcome.EXITED, 1, "exit code 1: no data"),
        ("import os; os._exit(4)", Outcome.EXITED, 4, "exit code 4"),
        ("import ctypes; ctypes.string_at(0)", Outcome.CRASHED, None, "killed by SIGSEGV"),
        ("import os; os.abort()", Outcome.CRASHED, None, "killed by SIGABRT"),
        ("raise KeyboardInterrupt", Outcome.RAISED, 130, "KeyboardInterrupt"),
        ("raise MemoryError", Outcome.OUT_OF_MEMORY, 1, "MemoryError"),
        (
            "import atexit, os; atexit.register(os._exit, 9)",
            Outcome.EXITED,
            9,
            "exit code 9",
        ),
    ],
)
def test_each_way_to_end_has_its_outcome(tmp_path, source, outcome, code, detail):
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.exit_code, ran.detail) == (outcome, code, detail)


NO_LAST_WORD = {
    "exits hard": "import os; os._exit(0)",
    "becomes another program": "import os; os.execv('/bin/true', ['true'])",
    "becomes another Python": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'pass'])",
    "leaves it to a fork": "import os, time\nif os.fork(): os._exit(0)\ntime.sleep(0.3)\nraise ValueError('the bug')\n",
    "leaves it to a fork and exits": "import os, sys, time\nif os.fork(): sys.exit(0)\ntime.sleep(5)\n1 / 0\n",
    "changes its exit code": "import atexit, os, sys\natexit.register(os._exit, 0)\nsys.exit(3)\n",
    "kills its guard": "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)",
    "breaks its report": (
        "import sys\nsys.modules['_harness_child'].make_encoder = lambda *a: lambda *a: ['{\"end\": [1]}']\n"
    ),
}


@pytest.mark.parametrize("source", NO_LAST_WORD.values(), ids=NO_LAST_WORD)
def test_a_script_without_a_final_report_did_not_complete(tmp_path, source):
    ran = probes.run(tmp_path, source)
    assert ran.outcome is Outcome.NO_REPORT, ran.detail
    seen = Observation("k", ran.outcome, "r", "d", Device.CPU, detail=ran.detail, exit_code=ran.exit_code)
    assert judge(seen, Signature(exception="ValueError")).verdict is Verdict.SKIP
    assert judge(seen, Signature(exit_code=0)).verdict is Verdict.SKIP
    assert capture_signature(seen) is None


@pytest.mark.parametrize(
    "source",
    [
        "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\n",
        "import multiprocessing, time\np = multiprocessing.get_context('fork').Process(target=time.sleep, args=(9,),"
        " daemon=True)\np.start()\nimport sys; sys.exit(0)\n",
        "import subprocess; subprocess.Popen(['sleep', '9'])",
    ],
)
def test_other_processes_do_not_keep_a_script_from_completing(tmp_path, source):
    assert probes.run(tmp_path, source).outcome is Outcome.COMPLETED


def test_a_hang_ends_at_the_timeout_and_shows_where_it_hung(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    pids = tmp_path / "pids"
    ran = probes.run(tmp_path, probes.HANG, variables={"PIDS": str(pids)})
    assert (ran.outcome, ran.exit_code, ran.detail) == (Outcome.TIMED_OUT, None, "timed out after 60 s")
    assert all(probes.is_gone(pid) for pid in probes.told_pids(pids, 2))
    assert 'probe.py", line 16 in <module>' in ran.tail


HANGS_AT_EXIT = f"""
import threading, time
def wait():
    threading.main_thread().join()
    print({probes.LIMIT!r}, flush=True)
    time.sleep(1000)
threading.Thread(target=wait).start()
"""


def test_an_exception_is_reported_even_if_a_thread_hangs_at_exit(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    raised = probes.run(tmp_path, HANGS_AT_EXIT + "raise ValueError('x')")
    assert (raised.outcome, raised.detail, raised.exit_code) == (Outcome.RAISED, "ValueError: x", None)
    ended = probes.run(tmp_path, HANGS_AT_EXIT)
    assert ended.outcome is Outcome.TIMED_OUT


def test_too_much_memory_ends_the_run(tmp_path):
    source = "held = []\nwhile True:\n    held.append(b'x' * 10_000_000)\n"
    ran = probes.run(tmp_path, source, memory=150_000_000)
    assert (ran.outcome, ran.detail) == (Outcome.OUT_OF_MEMORY, "used more than 143 MiB of memory")
    assert ran.exit_code is None
    assert ran.peak_memory > 150_000_000


def test_cancelling_raises_and_leaves_no_process(tmp_path):
    pids, cancel, stopped = tmp_path / "pids", threading.Event(), []

    def work():
        try:
            with cancelled_by(cancel):
                run_repro(probes.job(tmp_path, probes.HANG, variables={"PIDS": str(pids)}))
        except Cancelled as stop:
            stopped.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    started = probes.told_pids(pids, 2)
    cancel.set()
    thread.join()
    assert stopped
    assert all(probes.is_gone(pid) for pid in started)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "logs").exists()


def test_a_missing_interpreter_is_an_internal_error(tmp_path):
    with pytest.raises(HarnessFault):
        probes.run(tmp_path, "", python=str(tmp_path / "none" / "python"))


# -- what a script sees


def test_the_script_runs_as_main_in_a_process_of_its_own(tmp_path):
    source = (
        "import os, pickle, sys\n"
        "class Own: pass\n"
        "pickle.loads(pickle.dumps(Own()))\n"
        "assert __name__ == '__main__' and __spec__ is None\n"
        "assert sys.argv == [__file__], sys.argv\n"
        "assert sys.path[0] == os.path.dirname(__file__)\n"
        "assert sys.modules['__main__'].Own is Own\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'harness']\n"
    )
    assert probes.run(tmp_path, source).detail == "ran to its end"


def test_multiprocessing_finds_the_script(tmp_path):
    source = (
        "import multiprocessing\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    assert probes.run(tmp_path, source).tail == "[2, 4]\n"


def test_a_forked_process_that_returns_does_not_report(tmp_path):
    source = "import os\npid = os.fork()\nif pid == 0:\n    raise ValueError('of the child')\nos.waitpid(pid, 0)\n"
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.exception) == (Outcome.COMPLETED, None)
    assert "of the child" in ran.tail


def test_parameters_and_metrics_are_passed_through(tmp_path):
    source = (
        "import json, os\n"
        "given = json.loads(os.environ['HARNESS_PARAMS'])\n"
        "with open(os.environ['HARNESS_METRICS'], 'w') as file:\n"
        "    json.dump({'loss': given['x'] / 2, 'nan': float('nan'), 'ok': True, 'name': 'n'}, file)\n"
    )
    ran = probes.run(tmp_path, source, params={"x": 3})
    assert math.isnan(ran.metrics.pop("nan"))
    assert ran.metrics == {"loss": 1.5, "ok": 1.0}
    assert (ran.outcome, ran.detail) == (
        Outcome.COMPLETED,
        "ran to its end; metrics that are not numbers: name",
    )


def test_metrics_of_a_hanging_script_are_kept(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    source = "import os, time\nopen(os.environ['HARNESS_METRICS'], 'w').write('{\"loss\": 1}')\n"
    source += f"print({probes.LIMIT!r}, flush=True)\ntime.sleep(1000)"
    assert probes.run(tmp_path, source).metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    ("text", "metrics", "complaint"),
    [
        ("{", {}, "; its metrics file can't be read (JSONDecodeError)"),
        ("[1]", {}, "; its metrics file is not a JSON object"),
        ("[" * 100_000, {}, "; its metrics file can't be read (RecursionError)"),
        ('{"a": Infinity, "b": 2}', {"a": math.inf, "b": 2.0}, ""),
        ('{"a": 1' + "0" * 400 + "}", {"a": math.inf}, ""),
        ('{"a": [1], "b": null}', {}, "; metrics that are not numbers: a and b"),
    ],
)
def test_broken_metrics_are_ignored_with_a_note(tmp_path, text, metrics, complaint):
    path = tmp_path / "metrics.json"
    path.write_text(text)
    assert read_metrics(path) == (metrics, complaint)


METRICS_FILES = {
    "a named pipe": "os.mkfifo(path)",
    "a link to endless zeros": "os.symlink('/dev/zero', path)",
    "a folder": "os.mkdir(path)",
    "a socket": "import socket; socket.socket(socket.AF_UNIX).bind(path)",
    "a huge file": "open(path, 'w').truncate(10**13)",
    "a link to a file": "open('m', 'w').write('{\"a\": 1}'); os.symlink(os.path.abspath('m'), path)",
}


@pytest.mark.parametrize("act", METRICS_FILES.values(), ids=METRICS_FILES)
def test_a_metrics_file_that_is_not_a_regular_file_is_not_read(tmp_path, act):
    ran = probes.run(tmp_path, f"import os\npath = os.environ['HARNESS_METRICS']\n{act}\n")
    assert (ran.outcome, ran.metrics) == (Outcome.COMPLETED, {}), ran.tail
    assert "its metrics file" in ran.detail


@pytest.mark.parametrize("act", METRICS_FILES.values(), ids=METRICS_FILES)
def test_a_report_that_is_not_a_regular_file_is_not_read(tmp_path, act):
    source = f"""
import os
def replace(part, path):
    {act}
os.replace = replace
"""
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.exit_code) == (Outcome.NO_REPORT, 0), ran.tail


def test_only_the_first_of_many_metrics_are_kept(tmp_path):
    path = tmp_path / "m"
    path.write_text(json.dumps({f"loss {i}": i for i in range(200_000)}))
    metrics, complaint = read_metrics(path)
    assert metrics == {f"loss {i}": float(i) for i in range(METRICS_COUNT)}
    assert complaint == "; only the first 1000 of 200000 metrics are kept"


def test_text_from_a_probe_is_made_safe(tmp_path):
    source = (
        "import json, os\n"
        "json.dump({'lo\\x1b[2Jss\\ud800': 1}, open(os.environ['HARNESS_METRICS'], 'w'))\n"
        "class \ufe33odd(Exception): pass\n"
        "raise ValueError('a\\ud800b \\x1b]8;;http://x\\x07link\\x1b]8;;\\x07 \\u202egnp \\x9b2J end')\n"
    ).replace("class \ufe33odd(Exception): pass\n", "")
    ran = probes.run(tmp_path, source)
    assert ran.exception.message == "a\ufffdb link gnp  end"
    assert ran.metrics == {"loss\ufffd": 1.0}
    assert ran.detail == "ValueError: a\ufffdb link gnp end"


def test_metrics_that_are_not_text_are_ignored(tmp_path):
    (tmp_path / "m").write_bytes(b"\xff\xfe")
    assert read_metrics(tmp_path / "m") == ({}, "; its metrics file can't be read (UnicodeDecodeError)")


def test_missing_metrics_are_no_error(tmp_path):
    assert read_metrics(tmp_path / "none") == ({}, "")


def test_a_run_leaves_nothing_for_the_next(tmp_path):
    source = (
        "import os, pathlib\n"
        "places = [os.environ[name] for name in ('HOME', 'TMPDIR', 'XDG_CACHE_HOME')]\n"
        "for place in (os.getcwd(), *places):\n"
        "    assert os.listdir(place) == [], place\n"
        "    pathlib.Path(place, 'left').write_text('x')\n"
        "    pathlib.Path(place).chmod(0o500)\n"
    )
    for _ in range(2):
        ran = probes.run(tmp_path, source)
        assert ran.outcome is Outcome.COMPLETED, ran.tail
    assert list((tmp_path / "scratch").iterdir()) == []


def test_secrets_reach_the_script_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hush")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    source = "import os; print(os.environ.get('HF_TOKEN'), os.environ.get('PYTHONPATH'))"
    assert probes.run(tmp_path, source).tail == "None None\n"
    assert probes.run(tmp_path, source, pass_env=("HF_TOKEN",)).tail == "hush None\n"


def test_the_report_needs_neither_stdout_nor_stderr(tmp_path):
    source = (
        'import os, sys\nprint(\'{"end": "completed"}\', flush=True)\n'
        "sys.stdout.close(); sys.stderr.close(); os.close(1); os.close(2)\nraise ValueError('x')\n"
    )
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.detail, ran.exit_code) == (Outcome.RAISED, "ValueError: x", 1)


def test_the_report_survives_a_script_that_breaks_things(tmp_path):
    source = (
        "import builtins, os, shutil, sys\n"
        "shutil.rmtree(os.getcwd())\n"
        "shutil.rmtree(os.environ['HOME'])\n"
        "builtins.open = None\n"
        "sys.excepthook = None\n"
        "sys.path.clear()\n"
        "raise ValueError('x')\n"
    )
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.detail, ran.exit_code) == (Outcome.RAISED, "ValueError: x", 1)
    assert ran.exception.frames[0].line == 7


def test_a_script_that_deletes_its_folders_is_still_reported(tmp_path):
    source = "import os, shutil\nshutil.rmtree(os.path.dirname(os.getcwd()))\nraise ValueError('x')\n"
    ran = probes.run(tmp_path, source)
    assert (ran.outcome, ran.detail) == (Outcome.RAISED, "ValueError: x")


def test_a_large_output_is_kept_completely(tmp_path):
    ran = probes.run(tmp_path, "for i in range(150): print(f'{i:04} ' * 20_000)")
    log = log_of(tmp_path).decode()
    assert log.splitlines() == [f"{i:04} " * 20_000 for i in range(150)]
    assert len(ran.tail) == 64 * 1024
    assert log.endswith(ran.tail)


def test_binary_output_is_kept_unchanged(tmp_path):
    ran = probes.run(tmp_path, "import os; os.write(1, b'\\xff\\x00a\\r\\n')")
    assert log_of(tmp_path) == b"\xff\x00a\r\n"
    assert ran.tail == "\ufffd\x00a\r\n"


# -- what a script used


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with two hand-written distributions: its interpreter and site-packages."""
    root = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(symlinks=True).create(root)
    site = next(root.glob("lib/python*/site-packages"))
    files = {
        "tiny/__init__.py": "import json, os\n"
        "with open(os.path.join(os.path.dirname(__file__), 'constants.json')) as file:\n"
        "    VALUE = json.load(file)\n",
        "tiny/constants.json": "7",
        "tiny/deep/__init__.py": "",
        "tiny/deep/steps.py": "def fail():\n    raise RuntimeError('in tiny')\n",
        "tiny/unused.py": "",
        "shared/other.py": "",
        "single.py": "",
    }
    distributions = {
        "Tiny_Package-1.2.dist-info": (
            "Tiny_Package",
            "1.2",
            [name for name in files if name.startswith("tiny")],
        ),
        "other-0.1+cpu.dist-info": ("other", "0.1+cpu", ["shared/other.py", "single.py"]),
    }
    for name, text in {**files, "stray/__init__.py": ""}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    for folder, (name, version, owned) in distributions.items():
        (site / folder).mkdir()
        (site / folder / "METADATA").write_text(METADATA.format(name, version))
        (site / folder / "RECORD").write_text("".join(f"{path},sha256=x,1\n" for path in owned))
    return root / "bin" / "python", site


# Like the description of distro 1.9.0, which shows an example of the fields.
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n\nIt prints\n\nName: Antergos Linux\nVersion: 2015.10\n"
USING_TINY = "import tiny, single, stray, shared.other\nfrom tiny.deep import steps\nassert tiny.VALUE == 7\n"
USING_TINY += "open(tiny.__file__.replace('__init__', 'unused')).close()\n"
TINY_FILES = ("tiny/__init__.py", "tiny/constants.json", "tiny/deep/__init__.py", "tiny/deep/steps.py")


def test_used_files_are_listed_by_distribution(tmp_path, environment):
    ran = probes.run(tmp_path, USING_TINY, python=str(environment[0]))
    assert ran.outcome is Outcome.COMPLETED, ran.tail
    assert ran.loaded == {
        "tiny-package": TINY_FILES,
        "other": ("shared/other.py", "single.py"),
        "stray": ("stray/__init__.py",),
    }
    assert ran.installed == (("other", "0.1+cpu"), ("tiny-package", "1.2"))
    assert ran.machine["platform"] == f"{sys.platform}-{os.uname().machine}"


def test_used_files_are_the_same_with_only_bytecode(tmp_path, environment):
    source = USING_TINY + "import sys\nfor name in list(sys.modules):\n    if 'tiny' in name: del sys.modules[name]\n"
    for _ in range(2):
        ran = probes.run(tmp_path, source, python=str(environment[0]), pycache=tmp_path / "pyc")
        assert ran.loaded["tiny-package"] == TINY_FILES
    assert list((tmp_path / "pyc").rglob("steps.*.pyc"))


def test_frames_name_installed_files_independently_of_the_environment(tmp_path, environment):
    ran = probes.run(tmp_path, "from tiny.deep import steps\nsteps.fail()\n", python=str(environment[0]))
    last = ran.exception.frames[-1]
    assert (last.file, last.line, last.function, last.package) == (
        "tiny/deep/steps.py",
        2,
        "fail",
        "tiny-package",
    )
    assert last.text == "raise RuntimeError('in tiny')"


def test_a_missing_module_is_reported_in_full(tmp_path, environment):
    ran = probes.run(tmp_path, "import tiny\nimport absent\n", python=str(environment[0]))
    assert ran.detail == "ModuleNotFoundError: No module named 'absent'"
    assert [frame.file for frame in ran.exception.frames] == ["probe.py"]
    assert ran.loaded["tiny-package"] == TINY_FILES[:2]


# -- commands


def test_a_command_runs_in_its_own_folder_with_absolute_paths(tmp_path):
    here = tmp_path / "here"
    (here / "tests").mkdir(parents=True)
    (here / "tests" / "test_x.py").write_text("")
    arguments = ("tests/test_x.py", "tests/test_x.py::test_y", "--rootdir=tests", "-k", "absent/path", "-x")
    source = "import os, sys; print(*sys.argv[1:], os.environ['HARNESS_ROOT'], os.listdir(), sep='\\n')"
    ran = probes.run(tmp_path, argv=("python", "-c", source, *arguments), invoked_from=here)
    test, root = f"{here}/tests/test_x.py", f"--rootdir={here}/tests"
    passed = [test, f"{test}::test_y", root, "-k", "absent/path", "-x"]
    assert ran.tail.splitlines() == [*passed, str(here), "[]"]


def test_the_program_of_a_command_can_be_a_relative_path(tmp_path):
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho ran; exit 7\n")
    (tmp_path / "run.sh").chmod(0o755)
    ran = probes.run(tmp_path, argv=("./run.sh",), invoked_from=tmp_path)
    assert (ran.outcome, ran.exit_code, ran.tail) == (Outcome.EXITED, 7, "ran\n")


def test_a_command_finds_the_programs_of_the_environment_first(tmp_path, environment):
    source = "import sys; print(sys.prefix)"
    ran = probes.run(tmp_path, argv=("python", "-c", source), python=str(environment[0]))
    assert ran.tail.strip() == str(environment[0].parents[1])


@pytest.mark.parametrize(("code", "outcome"), [(0, Outcome.COMPLETED), (125, Outcome.DECLINED), (2, Outcome.EXITED)])
def test_a_command_is_judged_by_its_exit_code(tmp_path, code, outcome):
    ran = probes.run(tmp_path, argv=("sh", "-c", f"exit {code}"))
    assert (ran.outcome, ran.exit_code) == (outcome, code)
    assert (ran.exception, ran.loaded, ran.installed) == (None, {}, ())


def test_a_missing_command_is_a_mistake_of_the_user(tmp_path):
    with pytest.raises(MissingProgram):
        probes.run(tmp_path, argv=("no-such-command",))


def test_a_missing_file_is_a_mistake_of_the_user(tmp_path):
    with pytest.raises(MissingProgram, match="no-such-file can't be started"):
        probes.run(tmp_path, argv=("./no-such-file",))


def test_the_hash_seed_of_a_run_orders_its_sets_and_is_recorded(tmp_path):
    source = "import sys\nprint(sys.flags.hash_randomization, list({'a', 'b', 'c', 'd'}))\n"
    ran = [probes.run(tmp_path, source, hash_seed=seed) for seed in (0, 1, 1)]
    assert ran[0].tail != ran[1].tail == ran[2].tail
    assert [one.machine["hash_seed"] for one in ran] == [0, 1, 1]
