"""Scripts that tamper with how Python ends or reports: the outcome is what happened, or a skip."""

from __future__ import annotations

import probes
import pytest

from harness.model import Outcome

RAISES = "\nraise RuntimeError('the bug')\n"
TAMPERING = {
    "a silent excepthook": "import sys\nsys.excepthook = lambda *a: None",
    "an exit in atexit": "import atexit, os\natexit.register(lambda: os._exit(0))",
    "no JSON": "import json\njson.dumps = json.dump = None",
    "no open": "import builtins\nbuiltins.open = None",
    "another __main__": "import sys\nsys.modules['__main__'] = None",
    "closed files": "import os\nos.closerange(0, 1000)",
    "closed streams": "import sys\nsys.stdout.close()\nsys.stderr.close()",
    "no metrics folder": "import os, shutil\nshutil.rmtree(os.path.dirname(os.environ['HARNESS_METRICS']))",
    "another time": "import time\ntime.time = time.monotonic = time.perf_counter = lambda: float('nan')",
    "a fork that ends well": "import os\nif os.fork() == 0:\n    os._exit(0)",
}


@pytest.mark.parametrize("tampering", TAMPERING)
def test_an_exception_is_reported_despite_tampering(tmp_path, tampering):
    ran = probes.run(tmp_path, TAMPERING[tampering] + RAISES)
    assert (ran.outcome, ran.exception.name) == (Outcome.RAISED, "RuntimeError")
    assert ran.exception.message == "the bug"


BROKEN_TEXT = {
    "raises": "raise ValueError('no text')",
    "exits": "raise SystemExit(0)",
    "ends the process": "import os; os._exit(0)",
}


@pytest.mark.parametrize("way", BROKEN_TEXT)
def test_an_exception_whose_text_fails_never_counts_as_success(tmp_path, way):
    source = f"class Odd(RuntimeError):\n    def __str__(self):\n        {BROKEN_TEXT[way]}\n\nraise Odd\n"
    ran = probes.run(tmp_path, source)
    assert ran.outcome in (Outcome.RAISED, Outcome.NO_REPORT)
    if ran.outcome is Outcome.RAISED:
        assert "builtins.RuntimeError" in ran.exception.bases


NO_REPORTS = {
    "no encoder": "import sys\nsys.modules['_harness_child'].make_encoder = None",
    "an empty report": "import sys\nsys.modules['_harness_child'].make_encoder = lambda *a: lambda *a: ['{}']",
    "no writing": "import os\nos.write = os.open = os.replace = None",
    "a class that hides its name": """
class Meta(type):
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__", "__mro__"):
            raise ValueError(name)
        return super().__getattribute__(name)
class RuntimeError(RuntimeError, metaclass=Meta):
    pass
""",
}


@pytest.mark.parametrize("way", NO_REPORTS)
def test_without_a_report_a_failure_is_an_exit_code_and_no_exception(tmp_path, way):
    ran = probes.run(tmp_path, NO_REPORTS[way] + RAISES)
    assert (ran.outcome, ran.exit_code) == (Outcome.EXITED, 1)
    assert ran.exception is None


@pytest.mark.parametrize("way", list(NO_REPORTS)[:3])
def test_without_a_report_a_script_has_not_completed(tmp_path, way):
    ran = probes.run(tmp_path, NO_REPORTS[way])
    assert ran.outcome is Outcome.NO_REPORT


def test_an_exception_that_was_handled_is_not_the_one_that_ended_the_script(tmp_path):
    source = "try:\n    raise RuntimeError('handled')\nexcept RuntimeError:\n    raise ValueError('another')\n"
    ran = probes.run(tmp_path, source)
    assert [raised.name for raised in ran.exception.chain()] == ["ValueError"]


def test_an_exception_in_a_group_is_not_taken_for_the_group(tmp_path):
    ran = probes.run(tmp_path, "raise ExceptionGroup('several', [RuntimeError('one')])\n")
    assert (ran.outcome, ran.exception.name) == (Outcome.RAISED, "ExceptionGroup")


@pytest.mark.parametrize("text", ["RuntimeError: the bug", "Traceback (most recent call last)"])
def test_a_printed_or_forged_exception_is_no_exception(tmp_path, text):
    ran = probes.run(tmp_path, f"import sys\nprint({text!r})\nsys.exit({text!r})\n")
    assert (ran.outcome, ran.exception) == (Outcome.EXITED, None)
