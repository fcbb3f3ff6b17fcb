"""Traces agree on every interpreter, although each calls `sys.settrace` in its own way."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest
import uv

import harness.run.inside.trace as trace_module

SHOP = """
import contextlib


class Shop:
    def __init__(self, size):
        self.size = size

    def double(self, number):
        if number > 3:
            return 0
        return number * 2 * self.size

    def fail(self):
        raise ValueError("empty")


def each(numbers):
    for number in numbers:
        yield number


@contextlib.contextmanager
def opened():
    yield 1


def run(numbers, *rest, mode=None, **more):
    shop = Shop(1)
    try:
        shop.fail()
    except ValueError:
        mode = "failed"
    with opened():
        found = [shop.double(number) for number in each(numbers)]
    return found, mode


def register(function):
    return function


def early():
    return "early"


def late():
    return "late"


def lends():
    return "lent"
"""

# Modules that use it while they load: one by an import of its own, one through another that has imported it.
AROUND = {
    "apart": "import sys\n\nis_traced = sys.gettrace() is not None\n\ndef step():\n    return 1\n",
    "uses": "import apart\nimport lent\nimport shop\n\n@shop.register\ndef used():\n    shop.early()\n\nused()\n",
    "lent": "import importlib\n\nshop = importlib.import_module('shop')\nshop.lends()\n",
    "through": "import uses\n\nuses.used()\nuses.shop.late()\n",
}
DRIVER = """
import importlib.util, json, sys, threading
path, folder, files, again = sys.argv[1:]
spec = importlib.util.spec_from_file_location("tracing", path)
tracing = importlib.util.module_from_spec(spec)
sys.modules["tracing"] = tracing
spec.loader.exec_module(tracing)
sys.path.insert(0, folder)
trace = tracing.Tracer(json.loads(files), [folder])
trace.pause_imports()
trace.start()
try:
    import through
    import shop
    assert not through.uses.apart.is_traced
    shop.run([1, 2], 5, other=6)
    other = threading.Thread(target=shop.Shop(7).double, args=(1,))
    other.start()
    other.join()
finally:
    trace.stop()
if again == "again":
    shop.run([9], mode="after")
    second = tracing.Tracer(json.loads(files), [folder])
    second.start()
    shop.run([1, 2], 5, other=6)
    second.stop()
    trace = second
print(json.dumps(trace.report()))
"""


@functools.cache
def python_of(version):
    """An interpreter of this version found by uv or pyenv, or None."""
    words = [uv.find_uv_bin(), "python", "find", "--no-python-downloads", "--no-project", version]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next((str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))), None)


@pytest.fixture(params=["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def traced(request, tmp_path):
    """The report of a run with one interpreter."""
    python = python_of(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} here")
    for name, source in {"shop": SHOP, **AROUND}.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")

    def run(files=("shop.py",), *, again=False):
        words = [python, "-I", "-B", "-c", DRIVER, trace_module.__file__, str(tmp_path), json.dumps(files)]
        ended = subprocess.run([*words, "again" if again else ""], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return run


def line_of(text):
    return next(number for number, line in enumerate(SHOP.splitlines(), 1) if text in line)


def test_every_interpreter_records_functions_and_lines(traced):
    report = traced()
    bare = {name.rpartition(".")[2] for name in report["called"]["shop.py"]}
    assert bare >= {"__init__", "double", "fail", "each", "opened", "run"}
    lines = set(report["lines"]["shop.py"])
    ran = (
        "self.size = size",
        "number * 2",
        "raise ValueError",
        "yield number",
        'mode = "failed"',
        "return found, mode",
    )
    assert {line_of(text) for text in ran} <= lines
    assert line_of("return 0") not in lines


def test_what_modules_call_while_they_load_is_recorded(traced):
    """Although a module that loads before the traced one is imported is not traced."""
    report = traced()
    lines = set(report["lines"]["shop.py"])
    assert {line_of(f'return "{text}"') for text in ("early", "late", "lent")} <= lines
    assert line_of("return function") in lines


def test_other_files_are_not_recorded(traced):
    assert traced(("other.py",)) == {"called": {}, "lines": {}}


def test_code_after_the_trace_is_not_recorded_and_a_second_trace_is_complete(traced):
    report = traced(again=True)
    assert line_of("number * 2") in report["lines"]["shop.py"]
