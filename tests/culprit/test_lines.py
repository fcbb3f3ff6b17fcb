"""The found regions are reduced to fewer where a run shows that these are sufficient."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.culprit.lines import _apart
from harness.culprit.pursuit import Reduced
from harness.model import Device, Observation, Outcome, Verdict
from harness.model.culprit import Proof

CALL, HELPER, OTHER = "shop.py#1", "shop.py#2", "shop.py#3"
FOUND = frozenset({CALL, HELPER, OTHER})
NEEDS = {CALL: {CALL, HELPER}, HELPER: {HELPER}, OTHER: {OTHER, HELPER}}
CORE, LIKELIEST = frozenset({CALL, OTHER}), frozenset({CALL})
SEEN = Observation("x", Outcome.RAISED, "repro", "d", Device.CPU)


def search_in(enough):
    """A search whose proofs hold for the sets in `enough`; and the sets that it proved or failed to prove."""
    asked = []

    def proof(sentence, probe, expected):
        asked.append(probe)
        return Proof(sentence, expected, expected if probe in enough else Verdict.SKIP, "", SEEN)

    search = SimpleNamespace(
        edits=SimpleNamespace(is_region=lambda _: True),
        weights={CALL: 3.0, HELPER: 1.0, OTHER: 2.0},
        consistency=SimpleNamespace(reverted=lambda units: frozenset().union(*(NEEDS[unit] for unit in units))),
        trials=SimpleNamespace(proof=proof),
        sides=SimpleNamespace(before=SimpleNamespace(verdict=Verdict.GOOD)),
        exchange=SimpleNamespace(package=SimpleNamespace(packages=())),
        names=lambda units, **_: ", ".join(sorted(units)),
        reverted=lambda units: units,
    )
    return search, asked


def reduced(told):
    told = {units: (verdict, SEEN) for units, verdict in told.items()}
    return Reduced(FOUND, False, frozenset(), 5, 5, 0, SEEN, False, told=told)


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({}, [CORE, LIKELIEST]),
        ({CORE: Verdict.SKIP}, [LIKELIEST]),
        ({CORE: Verdict.BAD, LIKELIEST: Verdict.SKIP}, []),
        ({LIKELIEST: Verdict.GOOD}, [CORE, LIKELIEST]),
    ],
)
def test_a_set_that_the_search_tried_in_vain_is_not_run_again(told, asked):
    search, runs = search_in(enough=())
    result = _apart(search, reduced(told))
    assert runs == asked
    assert (result.units, result.runs) == (FOUND, 5 + len(asked))


def test_the_first_smaller_set_that_is_sufficient_is_the_result():
    search, runs = search_in(enough=(CORE, LIKELIEST))
    assert _apart(search, reduced({})).units == CORE
    search, runs = search_in(enough=(LIKELIEST,))
    result = _apart(search, reduced({CORE: Verdict.SKIP}))
    assert (result.units, result.is_minimal, runs) == (LIKELIEST, True, [LIKELIEST])
