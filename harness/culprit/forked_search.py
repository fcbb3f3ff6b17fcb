"""Searches for lines with forked probes, once forks have been shown to agree with fresh processes.

Starting a process to fork from takes about as long as a fresh probe. If probes are quick, the first ones are therefore
fresh, and many searches need no more than those.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import evolve

from harness.culprit.background import Background
from harness.culprit.claims import Claim
from harness.culprit.line_needs import advance, search_for_needs
from harness.culprit.line_search import COMPILED, is_not_mixable, reverted_in_words
from harness.events import Judged, Note, Started
from harness.model import Mixture
from harness.probe import Prober
from harness.probe.forking import CannotFork, ForkingProber, forking
from harness.scheduling.scheduler import held_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.culprit.counterfactual import Trials
    from harness.culprit.line_search import LineSearch
    from harness.culprit.reduction import Reduced
    from harness.culprit.sides import Sides
    from harness.culprit.ties import Unit
    from harness.model import Verdict
    from harness.probe import Probe

_FRESH_FIRST = 4
_SLOW_S = 3.0  # a longer run spends most of its time on imports, which forks don't repeat
_MANY = 8  # for at most this many units, a few fresh probes are enough


def pursued(search: LineSearch, used: frozenset[Unit], stack: ExitStack, *, most: int) -> tuple[LineSearch, Reduced]:
    """Find the smallest set of units whose reversal removes the difference, in at most `most` runs.

    It starts with fresh processes, unless they are slow, and continues with forks. A result from forks is confirmed by
    a fresh process; if that fails, the search is repeated without forks. Also returns the search that it ended with.
    Forks are closed with `stack`.
    """
    trials = search.trials
    few = None
    if not _is_slow(search):
        few = search.pursue(search.weights, most=_FRESH_FIRST)
        if not few.gave_up or trials.is_late or is_not_mixable(search, few):
            return search, few
    files = [path for unit in used for path in search.exchange.units[unit] if path.endswith(".py")]
    whole = search.reverted(frozenset(unit for unit in search.all if search.edits.path_of(unit) in used))
    # A run beside forks makes them several times slower. The run in progress may go on while the first process starts.
    with held_for(trials.spare, trials.lanes.count, stops=False):
        forks = _open_forks(search, files, few, stack)
        if forks is not None:
            forked = evolve(search, trials=evolve(trials, forks=forks))
            with held_for(trials.spare, trials.lanes.count):
                found = _found_with_forks(forked, forks, whole, few, most=most)
            if found is not None:
                return forked, found
    return search, search.pursue(search.weights, most=most, after=few)


def _found_with_forks(
    search: LineSearch, forks: ForkingProber, whole: Probe, few: Reduced | None, *, most: int
) -> Reduced | None:
    """What a search with forks finds, confirmed by a fresh process; None if they disagree.

    `whole` is the probe with every change reverted.
    """
    trials = search.trials
    found = search.pursue(search.weights, most=1, after=few)
    if not _is_forked(found) and not _shows_older_side(trials, search.sides, forks, whole):
        return None
    found = search.pursue(search.weights, most=most, after=found)
    if not _is_forked(found):
        return found
    back = Claim(reverted_in_words(search, found.units), search.reverted(found.units), search.sides.before.verdict)
    is_one = len(found.units) == 1
    ahead = Background.begun(trials.prober, lambda: search_for_needs(search, found.units) if is_one else None)
    proof = trials.proof_with(back, [advance(search, found.units)] if is_one else [])
    ahead.result()
    if not proof.holds:
        _give_up(trials, forks)
        return None
    return evolve(found, shown=proof.observation)


def _is_forked(reduced: Reduced) -> bool:
    """Whether the run of the smallest set that a search found was a fork."""
    return reduced.shown is not None and bool(reduced.shown.machine.get("forked"))


def _is_slow(search: LineSearch) -> bool:
    """Whether probes are so slow, and units so many, that forks are used at once. Never with compiled files."""
    sides = (search.sides.before, search.sides.after)
    quickest = min(side.observation.duration_s for side in sides)
    return quickest >= _SLOW_S and len(search.all) > _MANY and COMPILED not in search.edits.wholes


def _open_forks(
    search: LineSearch, files: Iterable[str], few: Reduced | None, stack: ExitStack
) -> ForkingProber | None:
    """Open a prober that forks the newer side with some of these files exchanged; None if forks can't be used.

    The prober lasts until `stack` is closed. `few` is the earlier search that will be continued, if any. A fork of the
    unchanged newer side must have that side's verdict; `_shows_older_side` checks the older one.
    """
    trials, sides = search.trials, search.sides
    prober = trials.prober
    if not isinstance(prober, Prober) or not trials.plan.question.fork:
        return None
    unchanged = trials.mixed(sides.after, Mixture(files={}, label="nothing exchanged"))
    trials.reporter.report(Started("preparing a process from which the next runs are forked"))
    try:
        likely = search.likely_files(few)
        forks = stack.enter_context(forking(prober, trials.mixed(sides.after, None), files, likely))
    except CannotFork as why:
        trials.reporter.report(Note(f"not forking runs: {why}"))
        return None
    label = f"forked: the {sides.after.verdict.value} environment"
    ahead = Background.begun(prober, lambda: search.next_sets(2, few))
    verdict = _verdict(trials, forks, label, unchanged)
    ahead.result()
    if forks.stopped:
        trials.reporter.report(Note(f"not forking runs: {forks.stopped}"))
        return None
    if verdict is sides.after.verdict:
        return forks
    _give_up(trials, forks)
    return None


def _shows_older_side(trials: Trials, sides: Sides, forks: ForkingProber, reverted: Probe) -> bool:
    """Whether a fork of the newer side with every change reverted has the older verdict; stops forking if not.

    This run is not needed if the first set of a search already has the older verdict.
    """
    if _verdict(trials, forks, "forked: every change reverted", reverted) is sides.before.verdict:
        return True
    _give_up(trials, forks)
    return False


def _give_up(trials: Trials, forks: ForkingProber) -> None:
    """Stop forking, and report it."""
    forks.stop("a fork and a fresh process disagree")
    trials.reporter.report(Note("forked runs disagree with fresh processes; the search goes on without forks"))


def _verdict(trials: Trials, forks: ForkingProber, label: str, probe: Probe) -> Verdict:
    prepared = forks.prepare(probe)
    observation = forks.execute(prepared)
    trials.tally.ran_now += not prepared.cached
    judgement = trials.judge(observation)
    trials.reporter.report(Judged(label, judgement, observation, cached=prepared.cached))
    return judgement.verdict
