"""Proofs of deeper levels count as repetitions of a boundary only if all that were run have held."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.culprit.proofs import count_proofs
from harness.model import Verdict


@pytest.mark.parametrize(("failed", "counted"), [(0, (1, 1)), (1, (0, 0))])
def test_a_proof_of_what_is_no_finding_counts_against_the_others(failed, counted):
    search = SimpleNamespace(result=SimpleNamespace(boundary=(0, 1)))
    searched = SimpleNamespace(search=search, record=SimpleNamespace(observations={}))
    sides = SimpleNamespace(**{name: SimpleNamespace(lock=SimpleNamespace(id=name)) for name in ("before", "after")})
    proofs = [
        SimpleNamespace(
            is_expected=True,
            verdict=verdict,
            observation=SimpleNamespace(lock=SimpleNamespace(id="mixed"), key=verdict.value, mixture="m", attempt=0),
        )
        for verdict in (Verdict.GOOD, Verdict.BAD)
    ]
    findings = [SimpleNamespace(proofs=proofs)]
    assert count_proofs(searched, sides, findings, failed) == counted
