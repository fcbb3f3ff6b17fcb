"""Which sets a search tries, what it finds, and which it leaves out because they can't run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from attrs import define, field
from support import Heard

from harness.culprit.proofs import Tally
from harness.culprit.subsets import Choices, Fewest
from harness.model import Device, Judgement, Observation, Outcome, Verdict
from harness.probing import Prepared
from harness.probing.lanes import Lanes

VERDICTS = {Outcome.COMPLETED: Verdict.GOOD, Outcome.RAISED: Verdict.BAD, Outcome.CRASHED: Verdict.SKIP}
UNITS = tuple("abcdefgh")


def name_of(units):
    """Its letters in order."""
    return "".join(sorted(units))


@define
class Ruled:
    """Answers from a rule that maps a set of units to an outcome, and stores each run."""

    rule: Callable[[frozenset[str]], Outcome]
    known: set[frozenset[str]] = field(factory=set)
    ran: list[frozenset[str]] = field(factory=list)

    def prepare(self, probe):
        """Answer from the store, or prepare."""
        answer = self._observed(probe) if probe in self.known else None
        return Prepared(probe, "".join(sorted(probe)), observation=answer, cached=answer is not None)

    def execute(self, prepared):
        """Run."""
        self.ran.append(prepared.probe)
        self.known.add(prepared.probe)
        return self._observed(prepared.probe)

    def _observed(self, units):
        return Observation("".join(sorted(units)), self.rule(units), "repro", "d", Device.CPU)


@pytest.fixture(params=[1, 2])
def lanes(request):
    """One lane or two."""
    pool = Lanes(request.param)
    yield pool
    pool.close()


@pytest.fixture
def reduce(lanes):
    """Run a search that tries its units alone first; `flips` says which sets flip the verdict."""

    def run(
        flips,
        *,
        skips=lambda units: False,
        prober=None,
        notes=None,
        flipped=Verdict.BAD,
        units=UNITS,
        **more,
    ):
        shown, else_ = Outcome.RAISED, Outcome.COMPLETED
        if flipped is Verdict.GOOD:
            shown, else_ = else_, shown

        def rule(units):
            return Outcome.CRASHED if skips(units) else shown if flips(units) else else_

        prober = prober or Ruled(rule)
        trials = SimpleNamespace(
            prober=prober,
            lanes=lanes,
            judge=lambda observation: Judgement(VERDICTS[observation.outcome], "as the rule says"),
            reporter=notes or Heard(),
            tally=Tally(),
        )
        parts = more.pop("parts", [frozenset(unit) for unit in units])
        choices = Choices(dict.fromkeys(units, 1.0), lambda units: units, name_of, parts=parts)
        return Fewest(trials, flipped, choices, **more).run()

    return run


@pytest.mark.parametrize("flipped", [Verdict.BAD, Verdict.GOOD])
def test_a_sufficient_unit_is_found_in_both_directions(reduce, flipped):
    reduced = reduce(lambda units: "e" in units, flipped=flipped)
    assert reduced.units == {"e"}
    assert reduced.is_minimal
    assert reduced.shown.key == "e"


def test_two_units_sufficient_only_together_are_found(reduce):
    reduced = reduce({"b", "g"}.issubset)
    assert (reduced.units, reduced.is_minimal, reduced.unproven) == ({"b", "g"}, True, frozenset())


def test_another_failure_is_counted_and_is_never_the_answer(reduce):
    reduced = reduce(lambda units: "e" in units, skips=lambda units: ("c" in units) != ("d" in units))
    assert reduced.units == {"e"}
    assert reduced.unresolved >= 1


def test_a_unit_that_was_never_left_out_is_unproven(reduce):
    reduced = reduce({"b", "g"}.issubset, skips=lambda units: ("b" in units) != ("g" in units))
    assert reduced.units == {"b", "g"}
    assert reduced.unproven == {"b", "g"}


def test_nothing_is_shown_if_no_smaller_set_is_sufficient(reduce):
    reduced = reduce(frozenset("abc").issubset, units=tuple("abc"))
    assert (reduced.units, reduced.shown, reduced.is_minimal) == ({"a", "b", "c"}, None, True)


def test_the_limit_of_runs_is_respected_and_reported(reduce):
    reduced = reduce(frozenset(UNITS[1:]).issubset, most=5)
    assert 5 <= reduced.runs - len(UNITS) <= 6
    assert not reduced.is_minimal


def test_sets_are_tried_only_in_a_part_that_was_enough(reduce):
    reduced = reduce(frozenset("eg").issubset, units=tuple("abcdefg"), only_in_parts=True)
    assert (reduced.shown, reduced.is_minimal, reduced.runs) == (None, False, 7)
    pair = [frozenset("ab"), frozenset("efg")]
    reduced = reduce(frozenset("eg").issubset, units=tuple("abcdefg"), parts=pair, only_in_parts=True)
    assert (reduced.units, reduced.is_minimal) == ({"e", "g"}, True)


def test_stored_runs_are_not_repeated(reduce):
    prober = Ruled(lambda units: Outcome.RAISED if "e" in units else Outcome.COMPLETED)
    first = reduce(None, prober=prober)
    assert 0 < first.runs <= len(prober.ran)  # the other lane may be running what is not needed any more
    notes, ran = Heard(), len(prober.ran)
    second = reduce(None, prober=prober, notes=notes)
    assert second.units == {"e"}
    assert len(prober.ran) == ran
    assert all(cached for _, _, cached in notes.judged)


def test_verdicts_are_reported_as_observed(reduce):
    """A reduction that searches for a fix must not call good runs bad."""
    notes = Heard()
    reduce(lambda units: "b" in units, flipped=Verdict.GOOD, notes=notes, units=tuple("abc"))
    assert notes.judged[:2] == [("a", Verdict.BAD, False), ("b", Verdict.GOOD, False)]
    assert notes.started[:2] == ["a", "b"]
