"""The child driver alone, in every installed interpreter: it needs only the standard library."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run import runner
from harness.run.launch import marshalled

CHILD = Path(runner.__file__).with_name("inside") / "child.py"
OLD_AND_NEW = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def child(folder, source, *, python=sys.executable, emulation=None):
    """Run the driver; return its report (None if there is none) and the finished process."""
    script, report, job = folder / "script" / "probe.py", folder / "report.json", folder / "order"
    script.parent.mkdir()
    script.write_text(source)
    order = {
        "script": str(script),
        "report": str(report),
        "emulation": emulation and {"package": str(emulation), "capability": "8.6"},
    }
    job.write_bytes(marshalled(order))
    done = subprocess.run([python, CHILD, job], cwd=folder, capture_output=True, text=True, check=False)
    return (json.loads(report.read_text()) if report.exists() else None), done


def stand_in(folder, source):
    package = folder / "emulation"
    package.mkdir()
    (package / "__init__.py").write_text("from .gaps import EmulationGap\n" + source)
    (package / "gaps.py").write_text("class EmulationGap(RuntimeError): pass\n")
    return package


@pytest.mark.parametrize("version", OLD_AND_NEW)
def test_every_supported_interpreter_reports_the_same(tmp_path, version):
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"no Python {version} here")
    source = "count: int = 1\ndef f():\n    raise KeyError('k') from ValueError('v')\nf()\n"
    report, done = child(tmp_path, source, python=python)
    assert done.returncode == 1
    assert report["python"].startswith(f"{version}.")
    assert "problems" not in report["machine"]
    raised = report["exception"]
    assert (raised["type"], raised["message"]) == ("builtins.KeyError", "'k'")
    assert raised["cause"]["type"] == "builtins.ValueError"
    assert [(frame["line"], frame["function"]) for frame in raised["frames"]] == [(4, "<module>"), (3, "f")]


def test_the_stand_in_is_installed_before_the_script(tmp_path):
    package = stand_in(tmp_path, "def install(*, capability):\n    global asked\n    asked = capability\n")
    report, done = child(tmp_path, "import _harness_emulation as e\nprint(e.asked)\n", emulation=package)
    assert (done.stdout, done.stderr) == ("8.6\n", "")
    assert (report["end"], report["stage"]) == ("completed", "script")


def test_a_gap_hit_by_the_script_is_in_the_chain(tmp_path):
    package = stand_in(tmp_path, "def install(*, capability): pass\ndef graph(): raise EmulationGap('graph')\n")
    report, done = child(tmp_path, "import _harness_emulation as e\ne.graph()\n", emulation=package)
    assert done.returncode == 1
    assert report["chain"] == [["_harness_emulation.gaps.EmulationGap", "graph"]]
    assert report["exception"]["frames"][-1]["file"] == "<emulation>/__init__.py"


@pytest.mark.parametrize("fault", ["def install(*, capability): raise ImportError('no torch')\n", "1 / 0\n"])
def test_a_failing_stand_in_is_not_blamed_on_the_script(tmp_path, fault):
    report, done = child(tmp_path, "print('ran')\n", emulation=stand_in(tmp_path, fault))
    assert (report["end"], report["stage"]) == ("raised", "emulation")
    assert done.stdout == ""


def test_a_killed_interpreter_leaves_no_report(tmp_path):
    report, done = child(tmp_path, "import os; os._exit(5)\n")
    assert (report, done.returncode) == (None, 5)
    assert [path.name for path in tmp_path.iterdir()] != []
    assert not list(tmp_path.glob("report*"))


def test_the_report_is_written_before_exit_handlers(tmp_path):
    source = (
        "import atexit, os\n"
        "report = os.path.join(os.path.dirname(os.path.dirname(__file__)), 'report.json')\n"
        "atexit.register(lambda: print(os.path.exists(report)))\n"
    )
    _, done = child(tmp_path, source)
    assert done.stdout == "True\n"


def test_the_build_of_an_imported_torch_is_recorded_and_cuda_is_not_asked(tmp_path):
    source = (
        "import sys, types\n"
        "torch = sys.modules['torch'] = types.ModuleType('torch')\n"
        "torch.__version__ = '2.7.0+cu126'\n"
        "torch.version = types.SimpleNamespace(cuda='12.6')\n"
        "torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)\n"
    )
    report = child(tmp_path, source)[0]
    assert (report["machine"]["torch"], report["machine"]["torch_cuda"]) == ("2.7.0+cu126", "12.6")
    assert "problems" not in report["machine"]


def test_a_failing_torch_loses_only_device_facts(tmp_path):
    source = (
        "import sys, types\n"
        "torch = sys.modules['torch'] = types.ModuleType('torch')\n"
        "class Failing:\n"
        "    def __getattr__(self, name): raise ZeroDivisionError(name)\n"
        "torch.version = Failing()\n"
        "raise ValueError('x')\n"
    )
    report, _ = child(tmp_path, source)
    assert report["exception"]["message"] == "x"
    assert report["machine"] == {"problems": "ZeroDivisionError: cuda"}
