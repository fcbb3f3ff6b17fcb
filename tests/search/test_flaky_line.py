"""A line where one run can be lucky: how often the answer is wrong, and what it costs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import bisection

from harness.model.boundary import Counts
from harness.model.verdict import Verdict
from harness.search import Gauges, LineSearch, LineStatus, Noise, Trial
from harness.search.posterior import PRIOR, RATES, TRUSTED_ENDS, Posterior

FLAKY = Noise(flaky=True)
NAMED = (LineStatus.FOUND, LineStatus.FIXED)


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
        search = LineSearch(count, good=0, bad=count - 1)
        drive(search, flaky(change, rate, dice))
        result = search.result
        named = result.boundary[1] if result.status in NAMED else None
        ended["none" if named is None else "right" if named == change else "wrong"] += 1
    assert ended["wrong"] <= 2
    assert ended["right"] >= 48


def test_a_plain_bisection_falls_for_one_lucky_run():
    """The fault itself: without repetitions most answers are wrong."""
    dice = Random(1)
    wrong = 0
    for _ in range(200):
        change = dice.randrange(1, 30)
        search = bisection(30, good=0, bad=29)
        drive(search, flaky(change, 0.5, dice))
        wrong += search.result.status in NAMED and search.result.boundary[1] != change
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

        search = LineSearch(count, find_fix=find_fix, **ends)
        drive(search, verdict)
        assert not search.is_noisy
        assert search.result.status in NAMED
        assert search.result.boundary == (change - 1, change)
        assert search.result.confidence >= 0.99
        again = [trial for trial in told if trial.attempt]
        assert {trial.position for trial in again} <= {change - 1, change}
        assert len(again) <= 10


def going_on(search, verdicts, **more):
    """A search that has to be sure, after the runs of another one."""
    sure = LineSearch(len(search.states), good=0, bad=len(search.states) - 1, **more)
    for trial, verdict in verdicts.items():
        sure.tell(trial, verdict)
    return sure


@pytest.mark.parametrize("change", [1, 9, 29])
def test_a_search_goes_on_with_the_runs_of_lower_levels(change):
    """It ends once two neighbours are named; proofs that are like their runs save repetitions."""
    verdicts = {}
    search = LineSearch(30, good=0, bad=29, sure=False)
    runs = drive(search, lambda t: verdicts.setdefault(t, Verdict.BAD if t.position >= change else Verdict.GOOD))
    assert runs == drive(bisection(30, good=0, bad=29), verdicts.get)
    assert (search.result.status, search.result.boundary) == (LineStatus.FOUND, (change - 1, change))
    again = [going_on(search, verdicts, proofs=proofs).ask(20) for proofs in ((0, 0), (2, 2), (3, 3), (9, 9))]
    assert set(again[0]) > set(again[1])
    assert len(again[2]) <= 3
    assert again[3] == ()


def test_a_contradicting_proof_continues_the_search():
    verdicts = {}
    first = LineSearch(10, good=0, bad=9, sure=False)
    drive(first, lambda trial: verdicts.setdefault(trial, Verdict.BAD if trial.position >= 7 else Verdict.GOOD))
    assert first.result.boundary == (6, 7)
    search = going_on(first, {**verdicts, Trial(6, 1): Verdict.BAD}, proofs=(2, 2))
    assert search.is_noisy
    assert not search.done
    drive(search, flaky(4, 0.6, Random(2)))
    assert search.result.boundary[1] == 4
    assert search.result.good_side.bad == 0


def test_a_bad_end_that_passes_is_run_again():
    lucky = LineSearch(6, good=0, bad=5)
    drive(lucky, lambda trial: Verdict.BAD if trial.position >= 3 and trial != Trial(5, 0) else Verdict.GOOD)
    assert lucky.result.boundary[1] == 3
    never = LineSearch(6, good=0, bad=5)
    drive(never, lambda trial: Verdict.GOOD)
    assert never.result.status is LineStatus.NO_FAILURE


def test_a_bug_that_fails_half_the_time_is_missed_at_the_bad_end_in_under_one_percent():
    """The probability that the bad end passes in all the runs before "no failure" is reported."""
    search = LineSearch(6, good=0, bad=5)
    assert 0.5 ** drive(search, lambda trial: Verdict.GOOD) < 0.01


def test_a_bad_end_that_passes_is_not_run_again_if_one_run_is_enough():
    search = LineSearch(6, good=0, bad=5, noise=Noise(confirm=0))
    assert drive(search, lambda trial: Verdict.GOOD) == 1
    assert search.result.status is LineStatus.NO_FAILURE


def test_a_good_end_that_fails_is_run_again():
    search = LineSearch(6, good=0, bad=5)
    drive(search, lambda trial: Verdict.BAD if trial.position >= 3 or trial == Trial(0, 0) else Verdict.GOOD)
    assert search.result.boundary[1] == 3
    always = LineSearch(6, good=0, bad=5)
    assert drive(always, lambda trial: Verdict.BAD) == 3
    assert always.result.status is LineStatus.NOT_A_REGRESSION


@pytest.mark.parametrize("lanes", [1, 4])
def test_confirm_repeats_only_both_sides(lanes):
    search = LineSearch(9, good=0, bad=8, noise=Noise(confirm=2))
    trials = []
    while waiting := search.ask(lanes):
        trials.append(waiting[0])
        search.tell(waiting[0], Verdict.BAD if waiting[0].position >= 5 else Verdict.GOOD)
    assert search.result.status is LineStatus.FOUND
    assert sorted(t for t in trials if t.attempt) == [Trial(4, 1), Trial(4, 2), Trial(5, 1), Trial(5, 2)]


@pytest.mark.parametrize(("side", "again"), [(4, Verdict.BAD), (5, Verdict.GOOD)])
def test_contradicting_verdicts_are_flaky_if_one_run_was_to_be_enough(side, again):
    search = LineSearch(9, good=0, bad=8, noise=Noise(confirm=0))
    drive(search, lambda trial: Verdict.BAD if trial.position >= 5 else Verdict.GOOD)
    search.tell(Trial(side, 1), again)
    assert search.done
    assert not search.is_noisy
    assert search.result.status is LineStatus.FLAKY
    assert search.result.flaky == (side,)
    assert search.result.boundary == (4, 5)


def test_a_requested_number_of_confirmations_is_exact():
    for confirm in (0, 2):
        search = LineSearch(9, good=0, bad=8, noise=Noise(confirm=confirm))
        plain = bisection(9, good=0, bad=8)
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

    search = LineSearch(count, good=0, bad=count - 1, noise=Noise(flaky=is_flaky))
    assert drive(search, verdict, lanes, pick=lambda waiting: dice.randrange(4)) <= 180
    result = search.result
    assert result.status is not LineStatus.OPEN
    assert 0 <= (result.confidence or 0) <= 1 + 1e-9
    if result.status is LineStatus.FOUND:
        older, newer = result.boundary
        assert newer == older + 1
        assert told[search.verdict_of(newer, Verdict.BAD)] is Verdict.BAD
        assert told[search.verdict_of(older, Verdict.GOOD)] is Verdict.GOOD


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
        plain = trials_of(bisection(count, good=0, bad=count - 1), found)
        sure = trials_of(LineSearch(count, good=0, bad=count - 1), found)
        repeated.append(len(sure) - len(plain))
        runs = [trial.position for trial in plain]
        moved.append(sum(0.5 ** sum(x >= change for x in runs) for change in range(1, found)) / (count - 1))
        nowhere.append(0.5 ** len(runs))
    risks = [sum(c * 0.5**k for c, k in zip(kind, repeated, strict=True)) for kind in (moved, nowhere)]
    assert max(risks) < 0.003
    assert sum(repeated) / len(repeated) < fewest_repetitions((moved, nowhere), [risk * 1.0001 for risk in risks]) + 0.1
    assert fewest_repetitions((moved, nowhere), (0.01, 0.01)) > 4.5


def investigate(count, change, before, after, dice, lanes=1, **more):
    """The result and the number of runs of one simulated search."""
    search, runs = LineSearch(count, good=0, bad=count - 1, noise=Noise(flaky=True, **more)), 0
    while waiting := search.ask(lanes):
        trial = waiting[dice.randrange(len(waiting))]
        rate = after if change is not None and trial.position >= change else before
        search.tell(trial, Verdict.BAD if dice.random() < rate else Verdict.GOOD)
        runs += 1
    return search.result, runs


@pytest.mark.parametrize(("before", "after", "most"), [(0, 0.5, 53), (0.05, 0.95, 23), (0, 0.9, 23)])
def test_a_changed_failure_rate_is_found_in_few_runs(before, after, most):
    dice, right, spent = Random(4), 0, 0
    for _ in range(40):
        change = dice.randrange(1, 32)
        result, runs = investigate(32, change, before, after, dice)
        right += result.status is LineStatus.FOUND and result.boundary[1] == change
        spent += runs
    assert right >= 38
    assert spent / 40 <= most


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_no_release_is_named_if_the_rate_is_constant(rate):
    dice, ended = Random(5), Counter()
    for _ in range(40):
        result, _ = investigate(32, None, rate, rate, dice)
        ended[result.status] += 1
    assert ended[LineStatus.FOUND] <= 1
    if rate == 0.0:
        assert set(ended) == {LineStatus.NO_FAILURE}
    if rate == 1.0:
        assert set(ended) == {LineStatus.NOT_A_REGRESSION}


@pytest.mark.parametrize(("before", "after", "most"), [(0, 0.5, 30), (0.05, 0.95, 18), (0, 1, 11)])
def test_trusted_ends_take_fewer_runs(before, after, most):
    dice, right, spent = Random(14), 0, 0
    for _ in range(40):
        change = dice.randrange(1, 32)
        result, runs = investigate(32, change, before, after, dice, confidence=0.96, trusts_ends=True)
        right += result.boundary is not None and result.boundary[1] == change
        spent += runs
        assert result.trusts_ends
    assert right >= 36
    assert spent / 40 <= most


def test_the_only_possible_release_is_named_after_both_sides_ran():
    """With trusted ends the oldest boundary is certain before the good end has run."""
    result, runs = investigate(32, 1, 0, 1, Random(1), confidence=0.96, trusts_ends=True)
    assert (result.status, result.boundary) == (LineStatus.FOUND, (0, 1))
    assert runs <= 12


def test_a_trusted_good_end_that_always_fails_names_nothing():
    result, runs = investigate(32, None, 1, 1, Random(1), confidence=0.96, trusts_ends=True)
    assert result.status is LineStatus.INCONCLUSIVE
    assert result.boundary is None
    assert runs <= 40


def test_a_fix_is_found_in_the_other_direction():
    dice = Random(6)
    search = LineSearch(20, find_fix=True, noise=FLAKY)
    while waiting := search.ask():
        fails = waiting[0].position < 12 and dice.random() < 0.7
        search.tell(waiting[0], Verdict.BAD if fails else Verdict.GOOD)
    assert (search.result.status, search.result.boundary) == (LineStatus.FIXED, (11, 12))
    assert search.result.good_side.bad == 0
    assert search.result.bad_side.bad < search.result.bad_side.runs


def test_skipped_releases_are_not_named_or_run_forever():
    dice, asked = Random(7), Counter()
    search = LineSearch(24, good=0, noise=FLAKY)
    while waiting := search.ask():
        trial = waiting[0]
        asked[trial.position] += 1
        bad = trial.position >= 12 and dice.random() < 0.7
        skipped = 9 <= trial.position <= 13
        search.tell(trial, Verdict.SKIP if skipped else Verdict.BAD if bad else Verdict.GOOD)
    assert search.result.status is LineStatus.INCONCLUSIVE
    assert search.result.suspects == tuple(range(9, 15))
    assert search.result.boundary == (8, 14)
    assert max(asked[p] for p in range(9, 14)) <= 1


def test_the_cheaper_of_two_equally_informative_runs_is_taken():
    slow = LineSearch(9, good=0, noise=FLAKY, gauges=Gauges(seconds=lambda position: 50.0 if position == 4 else 1.0))
    even = LineSearch(9, good=0, noise=FLAKY)
    for search in (slow, even):
        search.tell(Trial(8), Verdict.BAD)
        search.tell(Trial(0), Verdict.GOOD)
    at = even.ask()[0].position
    dear = LineSearch(9, good=0, noise=FLAKY, gauges=Gauges(seconds=lambda position: 50.0 if position == at else 1.0))
    dear.tell(Trial(8), Verdict.BAD)
    dear.tell(Trial(0), Verdict.GOOD)
    assert dear.ask()[0].position != at


def test_several_lanes_get_different_runs():
    search = LineSearch(64, good=0, noise=FLAKY)
    search.tell(Trial(63), Verdict.BAD)
    first = search.ask(4)
    assert len(set(first)) == 4
    search.tell(first[2], Verdict.GOOD)
    assert set(first) - {first[2]} <= set(search.ask(4))


@pytest.mark.parametrize("prior", [PRIOR, TRUSTED_ENDS])
def test_the_posterior_equals_the_sum_over_boundaries_and_rates(prior):
    """Compared with the explicit sum."""
    told = {0: Counts(0, 3), 2: Counts(1, 2), 3: Counts(2, 2)}
    weights = {}
    for cut in range(1, 5):
        total = 0.0
        for kind, (i, j) in itertools.product(prior.kinds, itertools.combinations(range(len(RATES)), 2)):
            likely = kind.good[i] * kind.bad[j] / kind.in_order / len(prior.kinds)
            for position, counts in told.items():
                rate = RATES[j] if position >= cut else RATES[i]
                likely *= rate**counts.bad * (1 - rate) ** (counts.runs - counts.bad)
            total += likely
        weights[cut] = total * (1 - prior.no_change) / 4
    none = prior.no_change * sum(
        w * math.prod(r**c.bad * (1 - r) ** (c.runs - c.bad) for c in told.values())
        for w, r in zip(prior.same, RATES, strict=True)
    )
    total = sum(weights.values()) + none
    posterior = Posterior.of(5, told, prior)
    assert posterior.none == pytest.approx(none / total)
    assert posterior.cuts[1:] == pytest.approx([weights[cut] / total for cut in range(1, 5)])


@pytest.mark.parametrize("prior", [PRIOR, TRUSTED_ENDS])
def test_before_any_run_the_posterior_is_the_prior(prior):
    """The weights add up to 1 over the ordered pairs of rates."""
    posterior = Posterior.of(9, {}, prior)
    assert posterior.none == pytest.approx(prior.no_change)
    assert posterior.cuts[1:] == pytest.approx([(1 - prior.no_change) / 8] * 8)
