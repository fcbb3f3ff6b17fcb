"""The benchmark of known culprits tells right answers from wrong ones, and forks that disagree with fresh runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "real_culprits.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("real_culprits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def kept(results, release, files, functions, removed=""):
    """A folder of results with one answer."""
    regions = [{"function": function} for function in functions]
    proofs = [{"verdict": "good", "expected": "good"}, {"verdict": "bad", "expected": "good"}]
    answer = {
        "probes": 10,
        "culprit_probes": 12,
        "failures": [
            {
                "culprits": [
                    {
                        "boundary": {"suspects": [release]},
                        "deeper": {"findings": [{"files": files, "regions": regions, "proofs": proofs}]},
                        "evidence": [{"name": removed, "file": "a.py"}] if removed else [],
                    }
                ]
            }
        ],
    }
    (results / "answers").mkdir(parents=True)
    (results / "answers" / "1.json").write_text(json.dumps({"answer": answer}))


@pytest.mark.parametrize(
    ("release", "files", "functions", "verdict"),
    [
        ("2.0", ["a.py"], ["f"], "exact"),
        ("2.0", ["a.py"], ["g"], "wider"),
        ("2.0", ["a.py", "b.py"], ["f"], "wider"),
        ("2.0", [], [], "wider"),
        ("2.0", ["b.py"], ["f"], "wrong"),
        ("2.1", ["a.py"], ["f"], "wrong"),
    ],
)
def test_an_answer_is_compared_with_the_truth(benchmark, tmp_path, release, files, functions, verdict):
    kept(tmp_path, release, files, functions)
    found = benchmark.Measured("case")
    benchmark._read_answer(benchmark.Case("case", (), "2.0", "a.py", "f", 12), tmp_path, found)
    assert (found.verdict, found.proofs, found.failed_proofs, found.culprit_runs) == (verdict, 1, 1, 12)


@pytest.mark.parametrize(("removed", "verdict"), [("m.f", "exact"), ("m.g", "wider"), ("", "wider")])
def test_a_removed_name_must_be_named(benchmark, tmp_path, removed, verdict):
    kept(tmp_path, "2.0", [], [], removed)
    found = benchmark.Measured("case")
    benchmark._read_answer(benchmark.Case("case", (), "2.0", "a.py", "", 5, removed="m.f"), tmp_path, found)
    assert found.verdict == verdict


def test_without_an_answer_there_is_no_verdict(benchmark, tmp_path):
    found = benchmark.Measured("case")
    benchmark._read_answer(benchmark.Case("case", (), "2.0", "a.py", "f", 12), tmp_path, found)
    assert found.verdict == "no answer"


def seen(outcome="completed", raised="", **metrics):
    return {
        "outcome": outcome,
        "exception": {"type": raised} if raised else None,
        "metrics": metrics,
        "duration_s": 1.0,
    }


@pytest.mark.parametrize(
    ("forked", "fresh", "disagrees"),
    [
        (seen(loss=1.0, seconds=2.0), seen(loss=1.0, seconds=9.0), False),
        (seen(loss=1.0), seen(loss=1.1), True),
        (seen(loss=1.0), seen(), True),
        (seen(), seen("raised", "ValueError"), True),
        (seen("raised", "KeyError"), seen("raised", "ValueError"), True),
        (seen("raised", "ValueError"), seen("raised", "ValueError"), False),
    ],
)
def test_a_fork_must_end_like_the_fresh_run(benchmark, forked, fresh, disagrees):
    found = benchmark.Measured("case")
    benchmark._compare({"a": fresh}, {"a+fork": forked, "b+fork": forked}, found)
    assert (found.forks, found.compared, bool(found.disagreements)) == (2, 1, disagrees)


def test_a_missed_limit_is_reported(benchmark, capsys):
    case = benchmark.Case("case", (), "2.0", "a.py", "f", 12, 60, 0.6)
    right = benchmark.Measured("case", 59.0, 10, 12, 7, 0.5, 4.0, 7, [], 6, 0, "2.0", ["a.py"], ["f"], [], "exact")
    assert benchmark.report([case], [right])
    assert "MISSED" not in capsys.readouterr().out
    wrong = benchmark.Measured("case", 61.0, 10, 13, 7, 0.7, 4.0, 7, ["k"], 6, 1, "2.1", [], [], [], "wrong")
    assert not benchmark.report([case], [wrong])
    assert capsys.readouterr().out.count("MISSED") == 6


def test_each_listed_regression_is_a_repro_with_a_truth(monkeypatch):
    """Every script states its package and signature, and no case is in both halves."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    cases = importlib.import_module("regressions").cases()
    assert len({case.name for case in cases}) == len(cases) >= 24
    for case in cases:
        compile(case.script, case.name, "exec")
        assert f"[tool.harness.subjects.{case.package}]" in case.script
        assert not (case.file and case.removed)
    assert abs(2 * sum(case.seen for case in cases) - len(cases)) <= 2
