"""The list of regressions that the search for lines is measured on."""

import importlib
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_each_listed_regression_is_a_repro_with_a_truth(monkeypatch):
    """Every script states its package and signature, and at least half of the cases are kept."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    cases = importlib.import_module("regressions").cases()
    assert len({case.name for case in cases}) == len(cases) >= 24
    for case in cases:
        compile(case.script, case.name, "exec")
        assert f"[tool.harness.subjects.{case.package}]" in case.script
        assert not (case.file and case.removed)
    assert 0 < sum(case.seen for case in cases) <= len(cases) / 2
