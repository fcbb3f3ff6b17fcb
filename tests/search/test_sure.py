"""Bisections that repeat runs because one can be lucky: how often they are wrong, and their cost."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.verdict import Verdict
from harness.search import Bisection, BisectionStatus, Noise, SureBisection, Trial

NAMED = (BisectionStatus.FOUND, BisectionStatus.FIXED)


def drive(search, verdict, lanes=1, pick=lambda waiting: 0):
    """Answer until done; return the number of runs."""
    runs = 0
    while waiting := search.ask(lanes):
        assert len(waiting) <= lanes
        assert search.ask(lanes) == waiting
        trial = waiting[pick(waiting) % len(waiting)]
        search.tell(trial, verdict(trial))
        runs += 1
    assert search.done
    assert search.remaining() == 0
    assert search.foresee(3) == ()
    return runs


def flaky(change, rate, dice, *, before=0.0):
    """Releases from `change` on fail at `rate`, those before it at `before`."""
    return lambda trial: Verdict.BAD if dice.random() < (rate if trial.position >= change else before) else Verdict.GOOD


@pytest.mark.parametrize("count", [8, 30, 100])
@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_a_flaky_bug_is_misattributed_in_under_one_percent(rate, count):
    """Under 1 % in the long run; at most 2 of the 60 here."""
    dice = Random(f"{rate} {count}")
    ended = Counter()
    for _ in range(60):
        change = dice.randrange(1, count)
        search = SureBisection(count, good=0, bad=count - 1)
        drive(search, flaky(change, rate, dice))
        result = search.result
        named = result.first_bad if result.status in NAMED else None
        ended["none" if named is None else "right" if named == change else "wrong"] += 1
    assert ended["wrong"] <= 2
    assert ended["right"] >= 48


def test_a_plain_bisection_falls_for_one_lucky_run():
    """The fault itself: without repetitions most answers are wrong."""
    dice = Random(1)
    wrong = 0
    for _ in range(200):
        change = dice.randrange(1, 30)
        search = Bisection(30, good=0, bad=29)
        drive(search, flaky(change, 0.5, dice))
        wrong += search.result.status in NAMED and search.result.first_bad != change
    assert wrong > 60


@pytest.mark.parametrize("find_fix", [False, True])
@pytest.mark.parametrize("count", [2, 8, 30, 100])
def test_a_deterministic_bug_repeats_only_its_sides(count, find_fix):
    for change in {1, count // 2, count - 1}:
        older, newer = (Verdict.BAD, Verdict.GOOD) if find_fix else (Verdict.GOOD, Verdict.BAD)
        ends = {"good": count - 1, "bad": 0} if find_fix else {"good": 0, "bad": count - 1}
        told = []

        def verdict(trial, change=change, told=told, older=older, newer=newer):
            told.append(trial)
            return newer if trial.position >= change else older

        search = SureBisection(count, find_fix=find_fix, **ends)
        drive(search, verdict)
        assert not search.is_noisy
        assert search.result.status in NAMED
        assert search.result.boundary == (change - 1, change)
        assert search.result.confidence >= 0.99
        again = [trial for trial in told if trial.attempt]
        assert {trial.position for trial in again} <= {change - 1, change}
        assert len(again) <= 9


def test_runs_of_lower_levels_count_as_repetitions():
    """With three more passes and failures, a deterministic bug takes at most one extra run."""
    for change in range(1, 30):
        search = SureBisection(30, good=0, bad=29, patient=True)
        drive(search, lambda trial, change=change: Verdict.BAD if trial.position >= change else Verdict.GOOD)
        assert search.result.status is BisectionStatus.FOUND
        search.support(3, 3)
        search.insist()
        assert len(search.ask(9)) <= 3


def test_repetitions_are_known_before_the_proofs_of_lower_levels():
    for change in (1, 9, 29):
        search = SureBisection(30, good=0, bad=29, patient=True)
        assert search.repetitions(2, 2) == ()
        drive(search, lambda trial, change=change: Verdict.BAD if trial.position >= change else Verdict.GOOD)
        foreseen = search.repetitions(2, 2)
        assert search.done
        assert search.ask(20) == ()
        assert set(foreseen) < set(search.repetitions(0, 0))
        search.support(2, 2)
        search.insist()
        assert search.ask(20) == foreseen
        assert search.repetitions(9, 9) == ()


def test_a_contradicting_proof_continues_the_search():
    search = SureBisection(10, good=0, bad=9, patient=True)
    drive(search, lambda trial: Verdict.BAD if trial.position >= 7 else Verdict.GOOD)
    assert search.result.boundary == (6, 7)
    search.tell(Trial(6, 1), Verdict.BAD)
    assert search.is_noisy
    assert not search.done
    drive(search, flaky(4, 0.6, Random(2)))
    assert search.result.first_bad == 4
    assert search.result.good_side.bad == 0


def test_a_bad_end_that_passes_is_run_again():
    lucky = SureBisection(6, good=0, bad=5)
    drive(lucky, lambda trial: Verdict.BAD if trial.position >= 3 and trial != Trial(5, 0) else Verdict.GOOD)
    assert lucky.result.first_bad == 3
    never = SureBisection(6, good=0, bad=5)
    drive(never, lambda trial: Verdict.GOOD)
    assert never.result.status is BisectionStatus.NO_FAILURE


def test_a_bug_that_fails_half_the_time_is_missed_at_the_bad_end_in_under_one_percent():
    """The probability that the bad end passes in all the runs before "no failure" is reported."""
    search = SureBisection(6, good=0, bad=5)
    assert 0.5 ** drive(search, lambda trial: Verdict.GOOD) < 0.01


def test_a_bad_end_that_passes_is_not_run_again_if_one_run_is_enough():
    search = SureBisection(6, good=0, bad=5, confirm=0)
    assert drive(search, lambda trial: Verdict.GOOD) == 1
    assert search.result.status is BisectionStatus.NO_FAILURE


def test_a_good_end_that_fails_is_run_again():
    search = SureBisection(6, good=0, bad=5)
    drive(search, lambda trial: Verdict.BAD if trial.position >= 3 or trial == Trial(0, 0) else Verdict.GOOD)
    assert search.result.first_bad == 3
    always = SureBisection(6, good=0, bad=5)
    assert drive(always, lambda trial: Verdict.BAD) == 3
    assert always.result.status is BisectionStatus.NOT_A_REGRESSION


@pytest.mark.parametrize("lanes", [1, 4])
def test_confirm_repeats_only_both_sides(lanes):
    search = SureBisection(9, good=0, bad=8, confirm=2)
    trials = []
    while waiting := search.ask(lanes):
        trials.append(waiting[0])
        search.tell(waiting[0], Verdict.BAD if waiting[0].position >= 5 else Verdict.GOOD)
    assert search.result.status is BisectionStatus.FOUND
    assert sorted(t for t in trials if t.attempt) == [Trial(4, 1), Trial(4, 2), Trial(5, 1), Trial(5, 2)]


@pytest.mark.parametrize(("side", "again"), [(4, Verdict.BAD), (5, Verdict.GOOD)])
def test_contradicting_verdicts_are_flaky_if_one_run_was_to_be_enough(side, again):
    search = SureBisection(9, good=0, bad=8, confirm=0)
    drive(search, lambda trial: Verdict.BAD if trial.position >= 5 else Verdict.GOOD)
    search.tell(Trial(side, 1), again)
    assert search.done
    assert not search.is_noisy
    assert search.result.status is BisectionStatus.FLAKY
    assert search.result.flaky == (side,)
    assert search.result.boundary == (4, 5)


def test_a_requested_number_of_confirmations_is_exact():
    for confirm in (0, 2):
        search = SureBisection(9, good=0, bad=8, confirm=confirm)
        plain = Bisection(9, good=0, bad=8)
        verdict = lambda trial: Verdict.BAD if trial.position >= 5 else Verdict.GOOD  # noqa: E731
        assert drive(search, verdict) == drive(plain, verdict) + 2 * confirm
        assert 0 < search.result.confidence < 0.99


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.3, 0.6, 1.0]),
    st.sampled_from([0.0, 0.1, 0.6]),
    st.integers(0, 2**32),
)
def test_simulated_investigations_end_in_a_supported_answer(count, lanes, is_flaky, before, after, skips, seed):
    """With any rates, skips and faults of single runs it ends, and both sides of its answer were run."""
    dice = Random(seed)
    change = dice.randrange(0, count + 1)
    untestable = {p for p in range(count) if dice.random() < skips}
    chance = flaky(change, after, dice, before=before)
    told = {}

    def verdict(trial):
        lost = trial.position in untestable or dice.random() < skips / 10
        told[trial] = Verdict.SKIP if lost else chance(trial)
        return told[trial]

    search = SureBisection(count, good=0, bad=count - 1, noise=Noise(flaky=is_flaky))
    assert drive(search, verdict, lanes, pick=lambda waiting: dice.randrange(4)) <= 180
    result = search.result
    assert result.status is not BisectionStatus.OPEN
    assert 0 <= (result.confidence or 0) <= 1 + 1e-9
    if result.status is BisectionStatus.FOUND:
        assert result.first_bad == result.last_good + 1
        assert told[search.verdict_of(result.first_bad, Verdict.BAD)] is Verdict.BAD
        assert told[search.verdict_of(result.last_good, Verdict.GOOD)] is Verdict.GOOD


def trials_of(search, change):
    """All trials of a search for a bug that shows each time from a release on."""
    told = []
    drive(search, lambda trial: told.append(trial) or (Verdict.BAD if trial.position >= change else Verdict.GOOD))
    return told


def fewest_repetitions(lucky, limits):
    """The least mean of repetitions, by release that is found, that keeps every kind of luck under its limit.

    `lucky` has, for each kind, the chance to find each release by luck; a repetition halves it at best.
    """
    best = math.inf
    for share in (i / 50 for i in range(51)):
        for scale in (10 ** (i / 80) for i in range(400)):
            wanted = [
                math.ceil(math.log2(max(1.0, scale * (share * one / limits[0] + (1 - share) * other / limits[1]))))
                for one, other in zip(*lucky, strict=True)
            ]
            if all(
                sum(chance * 0.5**k for chance, k in zip(kind, wanted, strict=True)) <= limit
                for kind, limit in zip(lucky, limits, strict=True)
            ):
                best = min(best, sum(wanted) / len(wanted))
                break
    return best


def test_no_search_that_is_wrong_as_seldom_repeats_less_on_a_deterministic_bug():
    """Where the bug shows in half of the runs, a run of what is taken for the wrong side agrees by luck half the time.

    So the chance to be wrong after some repetitions follows from the path of the plain bisection alone. One kind of
    luck is a change at an older release, the other is no change at all.
    """
    count = 30
    moved, nowhere, repeated = [], [], []
    for found in range(1, count):
        plain = trials_of(Bisection(count, good=0, bad=count - 1), found)
        sure = trials_of(SureBisection(count, good=0, bad=count - 1), found)
        repeated.append(len(sure) - len(plain))
        runs = [trial.position for trial in plain]
        moved.append(sum(0.5 ** sum(x >= change for x in runs) for change in range(1, found)) / (count - 1))
        nowhere.append(0.5 ** len(runs))
    risks = [sum(c * 0.5**k for c, k in zip(kind, repeated, strict=True)) for kind in (moved, nowhere)]
    assert max(risks) < 0.003
    assert sum(repeated) / len(repeated) < fewest_repetitions((moved, nowhere), [risk * 1.0001 for risk in risks]) + 0.1
    assert fewest_repetitions((moved, nowhere), (0.01, 0.01)) > 4.5
