"""A trace of a run: functions, lines, arguments and results, with large values shortened."""

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


def test_functions_lines_and_values_are_recorded(tmp_path):
    report = traced(tmp_path, SHOP, lambda space: space["run"]([1, 2]))
    assert set(report["called"]["shop.py"]) >= {"Shop.__init__", "Shop.double", "run"}
    assert {7, 9, 13} <= set(report["lines"]["shop.py"])
    assert 8 not in report["lines"]["shop.py"]
    doubled = [row for row in report["returned"] if row[1] == "Shop.double"]
    assert [row[3] for row in doubled] == ["2", "4"]
    assert doubled[0][2] != doubled[1][2]
    assert [row[1] for row in report["returned"] if row[1] in ("Shop.double", "run")][-1] == "run"


def test_other_files_are_not_recorded(tmp_path):
    report = traced(tmp_path, SHOP, lambda space: space["run"]([1]), files=("other.py",))
    assert report == {"called": {}, "lines": {}, "returned": []}


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


def test_calls_of_one_function_are_limited(tmp_path):
    report = traced(tmp_path, SHOP, lambda space: space["run"](list(range(500))))
    assert 1 <= sum(row[1] == "Shop.double" for row in report["returned"]) <= 10


def test_unprintable_values_are_named_by_type(tmp_path):
    source = """
class Odd:
    def __getattribute__(self, name):
        raise RuntimeError("leave me alone")

def give(value):
    return value
"""
    circle = []
    circle.append(circle)

    def action(space):
        space["give"](space["Odd"]())
        space["give"](circle)
        space["give"]("x" * 10_000)

    rows = [row for row in traced(tmp_path, source, action)["returned"] if row[1] == "give"]
    assert len(rows) == 3
    assert all(len(row[3]) < 1000 for row in rows)


def test_tensors_are_summarised_without_importing_their_library(tmp_path):
    source = """
class Tensor:
    dtype = "float32"
    def __init__(self, values):
        self.values, self.shape = values, (len(values),)
    def detach(self):
        return self
    def reshape(self, _):
        return self
    def __abs__(self):
        return Tensor([abs(one) for one in self.values])
    def __getitem__(self, part):
        return Tensor(self.values[part])
    def sum(self):
        return self
    def item(self):
        return float(sum(self.values))

def give(value):
    return value
"""

    def action(space):
        for values in ([1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [1.0, 2.5]):
            space["give"](space["Tensor"](values))

    told = [row[3] for row in traced(tmp_path, source, action)["returned"] if row[1] == "give"]
    assert told[0] == told[1]
    assert len(set(told)) == 3
    assert told[0].startswith("(2,)float32")


def test_values_that_load_what_they_are_asked_for_are_left_alone(tmp_path):
    source = """
import types
loaded = []

class Mapping(dict):
    def items(self):
        loaded.append("items")
        return super().items()
    def __len__(self):
        loaded.append("len")
        return super().__len__()

class Module(types.ModuleType):
    def __getattr__(self, name):
        loaded.append(name)
        raise AttributeError(name)

class Proxy:
    def __getattr__(self, name):
        loaded.append(name)
        return 1
    def __call__(self):
        loaded.append("call")

class Bare:
    __slots__ = ("unset",)
    def __getattr__(self, name):
        loaded.append(name)
        return 1

def give(value):
    return value
"""
    loaded = []

    def action(space):
        for value in (space["Mapping"](a=1), space["Module"]("lazy"), space["Proxy"](), space["Bare"]()):
            space["give"](value)
        loaded.extend(space["loaded"])

    told = [row[3] for row in traced(tmp_path, source, action)["returned"] if row[1] == "give"]
    assert told == ["dict1{'a'1:1}", "module lazy", "Proxydict0{}", "Bare(unset=None)"]
    assert not loaded


def test_the_trace_needs_only_the_standard_library():
    """It runs inside probed environments."""
    code = f"import sys; sys.path[:0] = [{str(Path(trace_module.__file__).parent)!r}]; import trace as _; "
    source = Path(trace_module.__file__)
    code = f"import runpy; runpy.run_path({str(source)!r})"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
