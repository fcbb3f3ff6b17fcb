"""Triton finds an active driver, and a launch is a gap. A fake package replaces triton here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from emulated import Python

FILES = {
    "triton/__init__.py": "from . import runtime\n",
    "triton/backends/__init__.py": "",
    "triton/backends/compiler.py": "import collections\n"
    "GPUTarget = collections.namedtuple('GPUTarget', 'backend arch warp_size')\n",
    "triton/runtime/__init__.py": "from .driver import driver\nfrom .jit import JITFunction\n",
    "triton/runtime/driver.py": """
class DriverConfig:
    active = None
    def set_active(self, driver): self.active = driver
driver = DriverConfig()
""",
    "triton/runtime/jit.py": """
class JITFunction:
    def __init__(self, function): self.__name__ = function.__name__
    def __getitem__(self, grid): return lambda *given, **named: self.run(*given, grid=grid, **named)
    def run(self, *given, **named): raise AssertionError("compiled")
""",
}
SCRIPT = """
emulation = install(capability="9.0")
import triton
active = triton.runtime.driver.active
def add(x): pass
def said(call):
    try: call()
    except emulation.EmulationGap as error: return str(error)
told = {
    "target": list(active.get_current_target()),
    "active": active.is_active(),
    "device": active.get_current_device(),
    "stream": active.get_current_stream(0),
    "processors": active.utils.get_device_properties(0)["multiprocessor_count"],
    "launch": said(lambda: triton.runtime.JITFunction(add)[(1,)](1)),
    "load": said(lambda: active.utils.load_binary("add", b"", 0, 0)),
    "launcher": said(lambda: active.launcher_cls(None, None)),
    "benchmark": said(lambda: active.get_benchmarker()(add)),
    "unknown": said(lambda: active.whatever()),
    "dunder": hasattr(active, "__array__"),
}
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triton")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Python(Path(sys.executable)).tell(SCRIPT, folder)


def test_the_driver_describes_the_emulated_card(told):
    assert told["target"] == ["cuda", 90, 32]
    assert (told["active"], told["device"], told["stream"], told["processors"]) == (True, 0, 0, 132)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("launch", "the launch of the triton kernel add"),
        ("load", "load_binary"),
        ("launcher", "a triton kernel"),
        ("benchmark", "the benchmark of a triton kernel"),
        ("unknown", "whatever"),
    ],
)
def test_a_call_that_needs_a_card_is_a_named_gap(told, what, words):
    assert words in told[what]
    assert "needs a real GPU" in told[what]


def test_probing_for_a_protocol_is_not_a_gap(told):
    assert told["dunder"] is False
