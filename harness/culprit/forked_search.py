"""Forks probes for the search for lines, once a fork has been shown to agree with a fresh process.

A process to fork from takes about as long to make as a fresh probe, so where that is quick the first probes are fresh,
and many searches end with them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import evolve

from harness.culprit.claims import Claim
from harness.culprit.line_needs import advance
from harness.culprit.line_search import COMPILED, is_not_mixable, reverted_in_words
from harness.events import Judged, Note, Started
from harness.model import Mixture
from harness.probe import Prober
from harness.probe.forking import ForkingProber, forking
from harness.probe.zygotes import CannotFork

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
_SLOW_S = 3.0  # a run that takes so long is mostly imports, which forks need not repeat
_MANY = 8  # units, below which a few fresh probes are enough


def pursued(search: LineSearch, used: frozenset[Unit], stack: ExitStack, *, most: int) -> tuple[LineSearch, Reduced]:
    """The smallest set that removes the difference: fresh processes first, then forks; the last run is fresh."""
    trials = search.trials
    few = None
    if not _is_slow(search):
        few = search.pursue(search.weights, most=_FRESH_FIRST)
        if not few.gave_up or trials.is_late or is_not_mixable(search, few):
            return search, few
    files = [path for unit in used for path in search.exchange.units[unit] if path.endswith(".py")]
    whole = search.reverted(frozenset(unit for unit in search.all if search.edits.path_of(unit) in used))
    forks = _open_forks(search, files, few, stack)
    if forks is None:
        return search, search.pursue(search.weights, most=most, after=few)
    forked = evolve(search, trials=evolve(trials, forks=forks))
    first = forked.pursue(search.weights, most=1, after=few)
    if not _is_forked(first) and not _shows_older_side(trials, search.sides, forks, whole):
        return search, search.pursue(search.weights, most=most, after=few)
    found = forked.pursue(search.weights, most=most, after=first)
    if not _is_forked(found):
        return forked, found
    back = Claim(reverted_in_words(search, found.units), search.reverted(found.units), search.sides.before.verdict)
    proof = trials.proof_with(back, [advance(search, found.units)] if len(found.units) == 1 else [])
    if proof.holds:
        return forked, evolve(found, shown=proof.observation)
    _give_up(trials, forks)
    return search, search.pursue(search.weights, most=most, after=few)


def _is_forked(reduced: Reduced) -> bool:
    """Whether a fork showed the smallest set of a search."""
    return reduced.shown is not None and bool(reduced.shown.machine.get("forked"))


def _is_slow(search: LineSearch) -> bool:
    """Whether probes are slow and many enough for the first one to be a fork; compiled files can't be forked."""
    sides = (search.sides.before, search.sides.after)
    quickest = min(side.observation.duration_s for side in sides)
    return quickest >= _SLOW_S and len(search.all) > _MANY and COMPILED not in search.edits.wholes


def _open_forks(
    search: LineSearch, files: Iterable[str], few: Reduced | None, stack: ExitStack
) -> ForkingProber | None:
    """Forks of the newer side in which these files may be exchanged, until `stack` is closed; else None.

    `few` is an earlier search, which it goes on from. Forked, the newer side itself must show its verdict; see
    `_shows_older_side` for the other one.
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
    verdict = _verdict(trials, forks, label, unchanged)
    if forks.stopped:
        trials.reporter.report(Note(f"not forking runs: {forks.stopped}"))
        return None
    if verdict is sides.after.verdict:
        return forks
    _give_up(trials, forks)
    return None


def _shows_older_side(trials: Trials, sides: Sides, forks: ForkingProber, reverted: Probe) -> bool:
    """Whether a fork of the newer side with what changed put back shows the older verdict; else forks are given up.

    The first set of a search often shows it, and then it need not be asked.
    """
    if _verdict(trials, forks, "forked: every change reverted", reverted) is sides.before.verdict:
        return True
    _give_up(trials, forks)
    return False


def _give_up(trials: Trials, forks: ForkingProber) -> None:
    """Fork nothing more, and say so."""
    forks.stop("a fork and a fresh process disagree")
    trials.reporter.report(Note("forked runs disagree with fresh processes; the search goes on without forks"))


def _verdict(trials: Trials, forks: ForkingProber, label: str, probe: Probe) -> Verdict:
    prepared = forks.prepare(probe)
    observation = forks.execute(prepared)
    trials.tally.ran_now += not prepared.cached
    judgement = trials.judge(observation)
    trials.reporter.report(Judged(label, judgement, observation, cached=prepared.cached))
    return judgement.verdict
