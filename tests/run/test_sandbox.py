"""In the sandbox a run sees no home, no network and no other process, and can write only its own folders."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import venv
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import probes
import pytest
from attrs import evolve

from harness.errors import MissingProgram, UserMistake
from harness.events import SILENT, Warned
from harness.model import Outcome
from harness.model.repro import Repro
from harness.run import sandbox
from harness.run.forks import started_zygote
from harness.run.process import Cancelled, cancelled_by
from harness.run.runner import Job, Place, run_repro
from harness.run.sandbox import SandboxMode, View, choose

try:
    SANDBOX = choose(SandboxMode.REQUIRE, network=False, reporter=SILENT)
    OPEN = choose(SandboxMode.REQUIRE, network=True, reporter=SILENT)
except UserMistake as none:
    pytest.skip(f"{none}", allow_module_level=True)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder with a secret in it."""
    folder = tmp_path / "home of me"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id").write_text("hush")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("HF_TOKEN", "hush")
    return folder


def run(folder, source="", **more):
    return probes.run(folder, source, sandbox=SANDBOX, **more)


def test_a_run_can_write_only_its_own_folders(tmp_path, home):
    source = f"""
import os, sys
def writes(path):
    try:
        open(path, "w").write("x")
        return True
    except OSError:
        return False
own = [os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"], os.environ["XDG_CACHE_HOME"], "/tmp", "/var/tmp"]
assert all(writes(folder + "/new") for folder in own), own
others = ["/", "/usr", "/etc", os.path.dirname(os.__file__)]
assert not any(writes(folder + "/new") for folder in others), [f for f in others if writes(f + "/new")]
for folder in ({str(tmp_path)!r}, {str(home)!r}, os.path.dirname(__file__) + "/../.."):
    writes(folder + "/new")  # may be in the sandbox's own /tmp
"""
    ran = run(tmp_path, source)
    assert ran.outcome is Outcome.COMPLETED, ran.tail
    assert ran.machine["sandbox"].startswith("bubblewrap")
    assert not Path("/tmp/new").exists()
    assert list(tmp_path.rglob("new")) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_run_sees_no_home_and_no_other_process(tmp_path, home):
    source = f"""
import ctypes
import os
import platform
assert not os.path.exists({str(home / ".ssh" / "id")!r})
seen = [pid for pid in os.listdir("/proc") if pid.isdigit()]
assert len(seen) <= 4, seen
for pid in seen:
    assert "hush" not in open(f"/proc/{{pid}}/environ").read(), pid
assert os.getppid() < 10
"""
    ran = run(tmp_path, source)
    assert ran.outcome is Outcome.COMPLETED, ran.tail


def test_the_network_works_only_if_allowed(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        closed = run(tmp_path, source)
        assert (closed.outcome, closed.exception.name) == (Outcome.RAISED, "ConnectionRefusedError")
        assert probes.run(tmp_path, source, sandbox=OPEN).outcome is Outcome.COMPLETED


def test_processes_of_a_run_can_talk_to_each_other(tmp_path):
    source = (
        "import multiprocessing, socket\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
        "    with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "        socket.create_connection(server.getsockname(), 5)\n"
    )
    assert run(tmp_path, source).tail == "[2, 4]\n"


@pytest.mark.parametrize(
    ("source", "outcome", "detail"),
    [
        ("raise ValueError('x')", Outcome.RAISED, "ValueError: x"),
        ("import sys; sys.exit(129)", Outcome.EXITED, "exit code 129"),
        ("import ctypes; ctypes.string_at(0)", Outcome.CRASHED, "killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", Outcome.MACHINE_FAILED, None),
        ("import os; os._exit(0)", Outcome.NO_REPORT, None),
        ("import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(0.5)", Outcome.COMPLETED, None),
        ("import os, signal, time; os.kill(1, signal.SIGKILL); time.sleep(0.5)", Outcome.COMPLETED, None),
    ],
)
def test_a_run_ends_as_it_does_outside(tmp_path, source, outcome, detail):
    ran = run(tmp_path, source)
    assert (ran.outcome, ran.detail if detail else None) == (outcome, detail), ran.tail


@pytest.mark.parametrize(
    ("argv", "outcome", "code"),
    [
        (("sh", "-c", "exit 3"), Outcome.EXITED, 3),
        (("sh", "-c", "exit 129"), Outcome.EXITED, 129),
        (("sh", "-c", "exit 137"), Outcome.MACHINE_FAILED, None),
        (("sh", "-c", "exit 139"), Outcome.CRASHED, None),  # as a shell tells that its command had a SIGSEGV
        (("sh", "-c", "kill -SEGV $$"), Outcome.CRASHED, None),
    ],
)
def test_a_command_ends_as_it_does_outside(tmp_path, argv, outcome, code):
    ran = run(tmp_path, argv=argv)
    assert (ran.outcome, ran.exit_code) == (outcome, code)


def test_a_command_that_is_missing_is_refused_as_outside(tmp_path):
    with pytest.raises(MissingProgram, match="absent can't be started"):
        run(tmp_path, argv=("./absent",))


def test_a_hang_shows_where_it_hung_and_leaves_no_process(tmp_path, monkeypatch):
    probes.limit_when_printed(monkeypatch)
    sleep = ["sleep", f"987.{os.getpid()}"]  # another run of these tests may go on beside this one
    source = f"import subprocess, time\nsubprocess.Popen({sleep}, start_new_session=True)\n"
    ran = run(tmp_path, f"{source}print({probes.LIMIT!r}, flush=True); time.sleep(1000)\n")
    assert ran.outcome is Outcome.TIMED_OUT
    assert 'probe.py", line 3 in <module>' in ran.tail
    assert not [p for p in probes.psutil.process_iter(["cmdline"]) if p.info["cmdline"] == sleep]


def test_too_much_memory_ends_the_run(tmp_path):
    ran = run(tmp_path, "held = []\nwhile True: held.append(b'x' * 10_000_000)", memory=150_000_000)
    assert ran.outcome is Outcome.OUT_OF_MEMORY


def test_cancelling_leaves_no_process(tmp_path):
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    with cancelled_by(cancel), pytest.raises(Cancelled):
        run_repro(probes.job(tmp_path, "import time; time.sleep(1000)", sandbox=SANDBOX))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_command_in_the_home_can_read_its_start_folder(tmp_path, home):
    here = home / "project"
    here.mkdir()
    (here / "data.txt").write_text("of the project")
    source = (
        "import os, sys; root = os.environ['HARNESS_ROOT']; print(open(root + '/data.txt').read(), sys.argv[1]);"
        "print(os.listdir(os.path.dirname(root))); open(root + '/new', 'w')"
    )
    ran = run(tmp_path, argv=("python", "-c", source, "data.txt"), invoked_from=here)
    assert ran.tail.splitlines()[:2] == [f"of the project {here}/data.txt", "['project']"]
    assert "Read-only file system" in ran.tail


def test_a_command_started_in_the_home_sees_only_the_files_it_names(tmp_path, home):
    (home / "script.py").write_text(f"import os; print(sorted(os.listdir({str(home)!r})))")
    ran = run(tmp_path, argv=("python", "script.py"), invoked_from=home)
    assert ran.tail == "['script.py']\n"


def test_a_command_starts_in_its_folder_of_the_project(tmp_path, home):
    inner = home / "project" / "inner"
    inner.mkdir(parents=True)
    (inner / "data").write_text("x")
    asked = probes.job(tmp_path, argv=("python", "-c", "import os; print(os.listdir())"), sandbox=SANDBOX)
    asked = evolve(asked, repro=evolve(asked.repro, project=str(home / "project"), inside="inner"))
    assert run_repro(asked).tail == "['data']\n"


def test_an_environment_below_the_home_runs_and_is_read_only(tmp_path, home):
    venv.EnvBuilder(symlinks=True, with_pip=False).create(home / "env")
    site = next((home / "env").glob("lib/python*/site-packages"))
    (site / "tiny.py").write_text("x = 1\n")
    source = "import tiny\nassert tiny.x == 1\nopen(tiny.__file__, 'r+').write('x = 2')"
    ran = run(tmp_path, source, python=str(home / "env" / "bin" / "python"), pycache=home / "pyc")
    assert ran.exception.message.startswith("[Errno 30]"), ran.tail
    assert (site / "tiny.py").read_text() == "x = 1\n"


def test_nothing_in_an_environment_opens_a_folder(tmp_path, home):
    venv.EnvBuilder(symlinks=True, with_pip=False).create(home / "env")
    site = next((home / "env").glob("lib/python*/site-packages"))
    (site / "opens.pth").write_text(f"{home / '.ssh'}\n")
    (site / "opens-1.0.dist-info").mkdir()
    (site / "opens-1.0.dist-info" / "direct_url.json").write_text(f'{{"url": "file://{home / ".ssh"}"}}')
    settings = home / "env" / "pyvenv.cfg"
    settings.write_text(f"{settings.read_text()}home = {home / '.ssh' / 'bin'}\n")
    source = f"import os; print(os.listdir({str(home)!r}))"
    assert run(tmp_path, source, python=str(home / "env" / "bin" / "python")).tail == "['env']\n"


def test_a_parameter_opens_a_path_only_if_the_user_typed_it(tmp_path, home):
    secret = home / ".ssh" / "id"
    asked = probes.job(tmp_path, f"print(open({str(secret)!r}).read())", sandbox=SANDBOX, params={"x": str(secret)})
    assert run_repro(asked).exception.name == "FileNotFoundError"
    recorded = evolve(asked, repro=asked.repro.with_params({"x": str(secret)}, typed=False))
    assert run_repro(recorded).exception.name == "FileNotFoundError"
    typed = evolve(asked, repro=asked.repro.with_params({"x": str(secret)}))
    assert run_repro(typed).tail == "hush\n"


def test_links_on_the_path_to_visible_folders_exist(tmp_path, home):
    (home / "really").mkdir()
    (home / "really" / "data").write_text("found")
    (home / "link").symlink_to("really")
    source = f"print(open({str(home / 'link' / 'data')!r}).read())"
    assert run(tmp_path, source, readable=(home / "link",)).tail == "found\n"


def test_bytecode_is_kept(tmp_path, home):
    (home / "pyc").mkdir()
    ran = run(tmp_path, "import this_is.absent", pycache=home / "pyc")
    assert ran.outcome is Outcome.RAISED
    assert list((home / "pyc").rglob("*.pyc"))


def test_the_guard_and_sandbox_die_with_the_harness(tmp_path):
    source = (
        "import pathlib, probes, sys\n"
        "from harness.events import SILENT\n"
        "from harness.run.sandbox import SandboxMode, choose\n"
        "box = choose(SandboxMode.REQUIRE, network=False, reporter=SILENT)\n"
        "probes.run(pathlib.Path(sys.argv[1]), 'print(1)\\nimport time; time.sleep(1000)', sandbox=box)\n"
    )
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    harness = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path)], env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    )
    family = probes.psutil.Process(harness.pid)
    while len(family.children(recursive=True)) < 4:
        assert harness.poll() is None
    started = [child.pid for child in family.children(recursive=True)]
    harness.kill()
    harness.wait()
    assert probes.all_gone(started)


class Heard:
    """A reporter that records events."""

    def __init__(self):
        self.events = []

    def report(self, event):
        """Record it."""
        self.events.append(event)


def test_without_bubblewrap_auto_warns_once_and_require_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    heard = Heard()
    assert choose(SandboxMode.AUTO, network=False, reporter=heard) is None
    (event,) = heard.events
    assert isinstance(event, Warned)
    assert "\n" not in event.sentence
    with pytest.raises(UserMistake):
        choose(SandboxMode.REQUIRE, network=False, reporter=heard)
    assert choose(SandboxMode.OFF, network=False, reporter=heard) is None
    assert len(heard.events) == 1


def test_a_broken_bubblewrap_counts_as_missing(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    restricted = tmp_path / "restricted"
    restricted.write_text("1\n")
    monkeypatch.setattr(sandbox, "_RESTRICTED", restricted)
    with pytest.raises(UserMistake, match=r"No permissions.*AppArmor forbids it: sudo sysctl"):
        choose(SandboxMode.REQUIRE, network=False, reporter=SILENT)


def test_a_failing_sandbox_is_reported_and_is_not_a_run(tmp_path):
    broken = sandbox.Sandbox(shutil.which("false"), "false")
    with pytest.raises(UserMistake):
        probes.run(tmp_path, "print(1)", sandbox=broken)


def test_gpus_are_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.run.sandbox._GPUS", ("null",))
    words = list(View([]).mounts(tmp_path))
    assert words[words.index("--dev-bind") :][:3] == ["--dev-bind", "/dev/null", "/dev/null"]


def test_runs_can_be_forked_after_the_thread_that_started_their_process_has_ended(tmp_path):
    repro = Repro(name="step", digest="0", source="import json\n", path="step.py")
    job = Job(repro, Place(Path(sys.executable), tmp_path / "scratch", sandbox=SANDBOX), tmp_path / "log.gz")
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        zygote = pool.submit(lambda: stack.enter_context(started_zygote(job, ["json"]))).result()
        pool.shutdown()
        outcomes = [run_repro(evolve(job, zygote=zygote)).outcome for _ in range(2)]
    assert outcomes == [Outcome.COMPLETED, Outcome.COMPLETED]


def test_root_can_write_no_setting_of_the_kernel(tmp_path):
    source = "path = '/proc/sys/kernel/panic'\nold = open(path).read()\nopen(path, 'w').write(old)\n"
    assert "OSError" in run(tmp_path, source).tail


def test_the_home_that_the_harness_was_started_from_is_hidden_although_home_names_another(tmp_path, monkeypatch):
    other = Path(tempfile.mkdtemp(dir=Path(__file__).parent))
    try:
        (other / ".ssh").mkdir()
        (other / ".ssh" / "id").write_text("hush")
        (other / "project").mkdir()
        (other / "project" / "data").write_text("shown\n")
        source = f"import os\nprint(os.path.exists({str(other / '.ssh' / 'id')!r}))\n"
        monkeypatch.chdir(other)
        assert run(tmp_path, source, invoked_from=other).tail == "False\n"
        monkeypatch.chdir(other / "project")
        source += f"print(open({str(other / 'project' / 'data')!r}).read(), end='')"
        assert run(tmp_path, source, invoked_from=other / "project").tail == "False\nshown\n"
    finally:
        shutil.rmtree(other)


@pytest.mark.parametrize("box", [SANDBOX, OPEN])
def test_a_run_connects_to_no_socket_file(tmp_path, monkeypatch, box):
    """Neither by the name that it was bound with, nor by a relative one."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    with socket.socket(socket.AF_UNIX) as whole, socket.socket(socket.AF_UNIX) as relative:
        whole.bind(str(own / "whole"))
        relative.bind("relative")
        source = "import socket\n"
        for server in (whole, relative):
            server.listen()
        for name in ("whole", "relative"):
            source += f"try: socket.socket(socket.AF_UNIX).connect({str(own / name)!r}); print('connected')\n"
            source += "except ConnectionRefusedError: print('refused')\n"
        ran = probes.run(tmp_path, source, sandbox=box, invoked_from=own)
    assert ran.tail == "refused\nrefused\n"


def test_a_socket_that_goes_before_the_run_starts_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.run.sandbox.socket_files", lambda: [Path("/usr/share/no-such-socket")])
    assert run(tmp_path, "print('runs')").tail == "runs\n"


def test_the_keys_of_the_users_session_are_out_of_reach(tmp_path):
    libc = ctypes.CDLL(None)
    if platform.machine() != "x86_64" or libc.syscall(248, b"user", b"harness:test", b"hush", 4, -3) <= 0:
        pytest.skip("no keyring")
    source = "import ctypes\nprint(ctypes.CDLL(None).syscall(249, b'user', b'harness:test', None, 0))\n"
    assert run(tmp_path, source).tail == "-1\n"


def test_of_the_cache_a_run_sees_what_it_needs(tmp_path):
    cache = Path(tempfile.mkdtemp(dir=Path(__file__).parent))
    try:
        for name in ("needed", "of-another-project"):
            (cache / name).mkdir()
            (cache / name / "code.py").write_text("x = 1\n")
        source = f"from pathlib import Path\nprint([path.name for path in Path({str(cache)!r}).iterdir()])\n"
        box = evolve(SANDBOX, hidden=(cache,))
        ran = probes.run(tmp_path, source, sandbox=box, readable=(cache / "needed",))
        assert ran.tail == "['needed']\n"
    finally:
        shutil.rmtree(cache)


@pytest.mark.parametrize("end", ["sys.exit(139)", "os.kill(os.getpid(), signal.SIGSEGV)"])
@pytest.mark.parametrize("argv", [False, True])
def test_an_exit_code_means_the_same_with_and_without_a_sandbox(tmp_path, end, argv):
    source = f"import os, signal, sys\n{end}\n"
    more = {"argv": (sys.executable, "-c", source)} if argv else {}
    inside, outside = (
        probes.run(tmp_path / name, "" if argv else source, sandbox=box, **more)
        for name, box in (("inside", SANDBOX), ("outside", None))
    )
    assert (inside.outcome, inside.exit_code, inside.detail) == (outside.outcome, outside.exit_code, outside.detail)
