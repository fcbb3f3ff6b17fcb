"""Any report or metrics of a run are read without a crash, and the stored values have the right types."""

from __future__ import annotations

import contextlib
import json
import math

import cattrs
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import Device, RaisedException
from harness.run.launch import Limits
from harness.run.process import Ended, EndReason
from harness.run.result import METRICS_COUNT, Unreadable, read_metrics, read_report, result_of

DONE = Ended(returncode=0, reason=EndReason.ENDED, seconds=1.0, peak_memory=1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
EXCEPTION = st.fixed_dictionaries(
    {"type": st.text() | ANYTHING, "message": st.text(st.characters(codec=None)) | ANYTHING},
    optional={
        "bases": ANYTHING,
        "frames": st.lists(st.fixed_dictionaries({"file": st.text(), "line": ANYTHING, "function": st.text()})),
        "cause": ANYTHING,
    },
)
NEARLY = st.fixed_dictionaries(
    {"end": st.sampled_from(["completed", "exit", "raised", "forked"]) | ANYTHING},
    optional={
        **dict.fromkeys(("stage", "message", "python", "problems", "machine", "loaded"), ANYTHING),
        "trace": ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(("called", "lines"), ANYTHING)),
        "exception": EXCEPTION | ANYTHING,
        "chain": st.lists(st.lists(st.text(), max_size=3)) | ANYTHING,
        "installed": st.lists(st.lists(st.text(), max_size=3)) | ANYTHING,
    },
)


def is_plain(text):
    return all(c in "\n\t" or c.isprintable() or not ("\x00" <= c <= "\x9f" or "\ud800" <= c <= "\udfff") for c in text)


def texts(exception: RaisedException | None):
    while exception is not None:
        yield from (exception.type, exception.message, *exception.bases)
        exception = exception.cause


@settings(deadline=None)
@given(st.one_of(NEARLY, ANYTHING).map(json.dumps) | st.text())
def test_any_report_is_parsed(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "any-report.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    ran = result_of(DONE, "", path, folder / "no-metrics.json", device=Device.CPU, limits=Limits(1))
    assert ran.outcome.ran
    assert all(map(is_plain, (ran.detail, ran.python, *texts(ran.exception))))
    json.dumps(
        [ran.machine, ran.loaded, ran.installed, ran.trace and cattrs.unstructure(ran.trace)], ensure_ascii=False
    ).encode()


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_parsed_or_rejected(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bytes-report.json"
    path.write_bytes(data)
    with contextlib.suppress(Unreadable):
        assert read_report(path) is not None


@settings(deadline=None)
@given(st.dictionaries(st.text(st.characters(codec=None)), ANYTHING).map(json.dumps) | ANYTHING.map(json.dumps))
def test_any_metrics_are_parsed_to_numbers(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any-metrics.json"
    path.write_text(text)
    metrics, complaint = read_metrics(path)
    assert all(type(value) is float for value in metrics.values())
    assert all(map(is_plain, (*metrics, complaint)))
    assert len(metrics) <= METRICS_COUNT


@pytest.mark.parametrize("text", ["[" * 100_000, '{"end": "completed", "machine": ' + "[" * 50_000, "nul", "{}", "[]"])
def test_an_invalid_report_is_reported(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(Unreadable):
        read_report(path)
    ran = result_of(DONE, "", path, path, device=Device.CPU, limits=Limits(1))
    assert "its report" in ran.detail


def test_infinite_metrics_are_kept(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text('{"a": -Infinity, "b": 1e999}')
    assert read_metrics(path)[0] == {"a": -math.inf, "b": math.inf}


def test_bytes_cut_from_the_log_are_reported(tmp_path):
    ran = result_of(evolve(DONE, output=10**9), "", None, tmp_path / "m", device=Device.CPU, limits=Limits(1))
    assert f"{10**9 - 16 * 2**20} bytes" in ran.detail
