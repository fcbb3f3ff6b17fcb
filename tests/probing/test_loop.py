"""The main loop over a prober that answers from a dict: what is prepared, run, reported and cancelled."""

from __future__ import annotations

import threading
import time

import pytest
from fake_prober import VERDICTS, WAIT_S, FakeProber
from support import Heard, bisection, knowing

from harness.errors import HarnessFault, Interrupted, NoNetwork
from harness.events import SILENT, Progress
from harness.model import Judgement, Verdict
from harness.probing.lanes import Engine, Lanes
from harness.run.process import pause
from harness.search import Grid, Trial


def drive(prober, search, *, lanes=1, notes=None, judge=None, fresh=(), clock=time.monotonic, **more):
    pool = Lanes(lanes)
    try:
        engine = Engine(
            prober,
            pool,
            lambda trial: trial,
            lambda trial: str(trial.position),
            judge or (lambda trial, seen, cached: Judgement(VERDICTS[seen.outcome], "")),
            notes or SILENT,
            lambda: Progress(search.states, search.remaining()),
            fresh=fresh,
            clock=clock,
        )
        engine.drive(search, **more)
    finally:
        pool.close()


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("letters", ["GB", "GGGGGBBB", "GBBBBBBB", "GGGGGGGB", "GGGUGBBB", "UGGGBBBU"])
def test_the_answer_does_not_depend_on_lanes(letters, lanes):
    search = bisection(len(letters), good=0, bad=len(letters) - 1)
    notes = Heard()
    drive(FakeProber(letters), search, lanes=lanes, notes=notes)
    assert search.result.boundary[1] == letters.index("B")
    positions = [int(label) for label, _, _ in notes.judged]
    assert len(positions) == len(set(positions))


def test_an_unresolvable_probe_is_reported_without_a_run():
    prober, notes = FakeProber("GGGUGBBB"), Heard()
    drive(prober, bisection(8, good=0, bad=7), notes=notes)
    assert ("3", Verdict.SKIP, False) in notes.judged
    assert 3 not in prober.executed
    assert "3" not in notes.started


def test_a_stored_observation_is_reported_without_a_run():
    prober, notes = FakeProber("GGGGBBBB", known=frozenset(range(8))), Heard()
    drive(prober, bisection(8, good=0, bad=7), notes=notes)
    assert prober.executed == []
    assert all(cached for _, _, cached in notes.judged)


def test_an_observation_made_beside_the_search_is_not_called_stored():
    prober, notes = FakeProber("GGGGBBBB", known=frozenset(range(8))), Heard()
    drive(prober, bisection(8, good=0, bad=7), notes=notes, fresh={"7-0"})
    assert [label for label, _, cached in notes.judged if not cached] == ["7"]


def test_likely_next_probes_are_prepared_while_a_lane_runs():
    search = bisection(9, good=0, bad=8)
    prober = FakeProber("GGGGGBBBB")
    ahead = search.foresee(1)[0].position
    saw = prober.saw.setdefault(ahead, threading.Event())
    # The bad end does not finish before another release has been prepared: else this waits in vain.
    prober.wait_for[8] = saw
    drive(prober, search)
    assert prober.prepared.index(ahead) > 0
    assert search.result.boundary[1] == 5


def test_others_are_prepared_after_the_requested_ones():
    search = knowing(bisection(9, good=0, bad=8), {0: Verdict.GOOD})
    ahead = {trial.position for trial in search.foresee(2)}

    class Slow(FakeProber):
        def prepare(self, probe):
            if probe.position == 8:
                time.sleep(0.6)
                during.update(self.prepared)
            return super().prepare(probe)

    during = set()
    drive(Slow("GGGGGBBBB"), search)
    assert not ahead & during
    assert search.result.boundary[1] == 5


def test_a_run_made_useless_by_a_verdict_is_cancelled():
    letters = "GGBBBBBBBBBBB"
    search = knowing(bisection(len(letters), good=0, bad=12), {0: Verdict.GOOD, 12: Verdict.BAD})
    asked = [trial.position for trial in search.ask(3)]
    prober = FakeProber(letters, stuck=frozenset(position for position in asked if position > min(asked)))
    started = [threading.Event() for _ in prober.stuck]

    class Started(FakeProber):
        def execute(self, prepared):
            if prepared.probe.position in self.stuck:
                started.pop().set()
            elif prepared.probe.position == min(asked):
                for event in events:
                    assert event.wait(WAIT_S)
            return super().execute(prepared)

    events = list(started)
    prober = Started(letters, stuck=prober.stuck)
    drive(prober, search, lanes=3)
    assert search.result.boundary[1] == 2
    assert sorted(prober.called_off) == sorted(prober.stuck)


class TrialGrid(Grid):
    """A grid whose candidates are trials, like the fakes here."""

    def ask(self, n=1):
        """Like a grid, with trials."""
        return tuple(map(Trial, super().ask(n)))

    def foresee(self, n):
        """Like a grid, with trials."""
        return tuple(map(Trial, super().foresee(n)))

    def tell(self, candidate, verdict):
        """By position."""
        super().tell(candidate.position, verdict)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_one_run_answers_for_all_probes_with_the_same_key(lanes):
    twins = {0: "same", 1: "same", 3: "same", 4: "other", 5: "other"}
    prober, notes = FakeProber("BBGBGGG", keys=twins), Heard()
    search = TrialGrid(7)
    drive(prober, search, lanes=lanes, notes=notes)
    assert len(prober.executed) == len(set(prober.executed)) == 4
    assert [verdict.value[0] for verdict in search.result.values()] == list("bbgbggg")
    assert sorted(int(label) for label, _, cached in notes.judged if cached) == sorted(
        {0, 1, 3, 4, 5} - set(prober.executed)
    )


@pytest.mark.parametrize(("since", "is_told"), [(0, True), (9, False)])
def test_a_useless_run_that_is_nearly_done_ends(since, is_told):
    """The run of 8 takes 10 seconds, and that of 16 begins `since` seconds after it. That 8 is bad makes 16 useless."""
    seconds, begun, told, judged = [0], threading.Event(), threading.Event(), threading.Event()
    search = knowing(bisection(25, good=0, bad=24), {0: Verdict.GOOD, 24: Verdict.BAD})
    times = iter([0, since])

    class Timed(FakeProber):
        def execute(self, prepared):
            if prepared.probe.position == 16:
                begun.set()
                assert told.wait(WAIT_S)
                pause(0.6 if is_told else WAIT_S)
            elif prepared.probe.position == 8:
                assert begun.wait(WAIT_S)
                seconds[0] = 10
            elif is_told:
                assert judged.wait(WAIT_S)  # the search must not end before
            return super().execute(prepared)

    def judge(trial, seen, cached):
        if trial.position == 8:
            told.set()
        elif trial.position == 16:
            judged.set()
        return Judgement(VERDICTS[seen.outcome], "")

    notes = Heard()
    clock = lambda: next(times, seconds[0])  # noqa: E731 - the first two calls are the beginnings of both runs
    drive(Timed("GG" + "B" * 23), search, lanes=2, notes=notes, judge=judge, clock=clock)
    assert search.result.boundary[1] == 2
    assert ("16" in [label for label, *_ in notes.judged]) is is_told


def test_an_error_in_preparing_a_later_probe_is_ignored():
    search = bisection(3, good=0, bad=2)
    foreseen = search.foresee(2)[1].position
    prober = FakeProber("GBB", broken={1: NoNetwork("x")})
    assert foreseen == 1
    saw = prober.saw.setdefault(1, threading.Event())
    prober.wait_for[2] = saw
    with pytest.raises(NoNetwork):
        drive(prober, search)  # asked for in the end, it is one
    narrow = bisection(3, good=0, bad=2)
    prober = FakeProber("BBB", broken={1: NoNetwork("x")})
    prober.wait_for[2] = prober.saw.setdefault(1, threading.Event())  # it runs until the other one was prepared
    drive(prober, narrow)
    assert narrow.done
    assert 1 in prober.prepared


def test_what_failed_ahead_ends_the_loop_only_when_it_is_asked_for():
    class Waiting(FakeProber):
        def execute(self, prepared):
            time.sleep(0.5)
            return super().execute(prepared)

    prober = Waiting("GBB", broken={1: NoNetwork("x")})
    with pytest.raises(NoNetwork):
        drive(prober, bisection(3, good=0, bad=2))
    assert len(prober.executed) == 2


def test_a_slow_error_of_a_requested_probe_ends_the_loop():
    class Slow(FakeProber):
        def prepare(self, probe):
            time.sleep(0.3)
            return super().prepare(probe)

    prober = Slow("GB", broken={1: NoNetwork("x")})
    with pytest.raises(NoNetwork):
        drive(prober, bisection(2, good=0, bad=1))
    assert prober.prepared.count(1) == 1


def test_an_error_of_a_run_ends_the_loop():
    class Failing(FakeProber):
        def execute(self, prepared):
            raise NoNetwork("gone")

    with pytest.raises(NoNetwork, match="gone"):
        drive(Failing("GB"), bisection(2, good=0, bad=1))


def test_ctrl_c_cancels_running_probes():
    prober = FakeProber("GGGB", stuck=frozenset({2}))

    def judge(trial, seen, cached):
        if trial.position == 0:
            raise KeyboardInterrupt
        return Judgement(VERDICTS[seen.outcome], "")

    with pytest.raises(Interrupted) as caught:
        drive(prober, bisection(4, good=0, bad=3), judge=judge)
    assert "same command" in caught.value.hint


def test_the_loop_stops_on_request():
    search, notes = bisection(8, good=0, bad=7), Heard()
    drive(FakeProber("GGGGBBBB"), search, notes=notes, width=1, until=lambda: len(notes.judged) >= 1)
    assert [int(label) for label, _, _ in notes.judged] == [7]
    assert not search.done


def test_a_search_that_asks_for_nothing_is_an_internal_error():
    class Silent:
        done = False

        def ask(self, n):
            return ()

    with pytest.raises(HarnessFault):
        drive(FakeProber(""), Silent())
