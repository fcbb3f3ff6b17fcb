"""A trace of a run: the functions that were called and the lines that ran."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import harness.run.inside.trace as trace_module
from harness.run.inside.trace import Tracer

SHOP = """
class Shop:
    def __init__(self, size):
        self.size = size

    def double(self, number):
        if number > 3:
            return 0
        return number * 2 * self.size


def run(numbers, *rest, mode=None, **more):
    return [Shop(1).double(number) for number in numbers]
"""


def traced(tmp_path, source, action, files=("shop.py",)):
    """The trace of `action` over a module that is imported from a folder like site-packages."""
    (tmp_path / "shop.py").write_text(source, encoding="utf-8")
    trace = Tracer(files, [str(tmp_path)])
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    trace.start()
    try:
        action(vars(importlib.import_module("shop")))
    finally:
        trace.stop()
        sys.path.remove(str(tmp_path))
        sys.modules.pop("shop", None)
    return trace.report()


def test_functions_and_lines_are_recorded(tmp_path):
    report = traced(tmp_path, SHOP, lambda space: space["run"]([1, 2]))
    assert set(report["called"]["shop.py"]) >= {"Shop.__init__", "Shop.double", "run"}
    assert {7, 9, 13} <= set(report["lines"]["shop.py"])
    assert 8 not in report["lines"]["shop.py"]


def test_a_function_that_runs_no_new_line_is_no_longer_traced(tmp_path):
    """Its calls are still ranked; a line that runs for the first time before that is recorded."""
    late = traced(tmp_path, SHOP, lambda space: space["run"]([0] * 20 + [9]))
    never = traced(tmp_path, SHOP, lambda space: space["run"]([0] * 200 + [9]))
    assert (8 in late["lines"]["shop.py"], 8 in never["lines"]["shop.py"]) == (True, False)
    assert late["called"] == never["called"]


def test_other_files_are_not_recorded(tmp_path):
    report = traced(tmp_path, SHOP, lambda space: space["run"]([1]), files=("other.py",))
    assert report == {"called": {}, "lines": {}}


def test_a_package_that_was_imported_before_is_traced(tmp_path, monkeypatch):
    (tmp_path / "early.py").write_text("def run():\n    return 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    early = importlib.import_module("early")
    trace = Tracer(["early.py"], [str(tmp_path)])
    trace.start()
    try:
        early.run()
    finally:
        trace.stop()
        del sys.modules["early"]
    assert trace.report()["lines"] == {"early.py": [2]}


def test_the_trace_needs_only_the_standard_library():
    """It runs inside probed environments."""
    code = f"import sys; sys.path[:0] = [{str(Path(trace_module.__file__).parent)!r}]; import trace as _; "
    source = Path(trace_module.__file__)
    code = f"import runpy; runpy.run_path({str(source)!r})"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_calls_are_counted_for_each_function_with_its_comprehensions(tmp_path):
    module = tmp_path / "shop.py"
    module.write_text("def one(x):\n    return x\n\n\ndef many(n):\n    return [one(max(i, 0)) for i in range(n)]\n")
    names = {}
    exec(compile(module.read_text(), str(module), "exec"), names)
    tracer = Tracer(["shop.py"], [str(tmp_path)], counts=True)
    tracer.start()
    names["many"](30)
    names["many"](10)
    tracer.stop()
    counts = tracer.report()["counts"]["shop.py"]
    assert counts["one"] == [40, 0]
    assert counts["many"][0] == 2
    assert counts["many"][1] >= 80


def test_only_our_own_trace_is_suspended_while_imports_are_recorded():
    """Coverage would miss the lines after an import."""
    before = sys.gettrace()

    def others(*_):
        return None

    try:
        sys.settrace(others)
        with trace_module._untraced():
            during_others = sys.gettrace()
        sys.settrace(Tracer((), ())._enter)
        with trace_module._untraced():
            during_ours = sys.gettrace()
    finally:
        sys.settrace(before)
    assert during_others is others
    assert (during_ours is None) == (sys.version_info < (3, 12))
