"""Forks probes for the search for lines, once a fork has been shown to agree with a fresh process.

Preparing a process to fork from takes some seconds, so the first probes are fresh, and many searches end with them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from harness.events import Judged, Note, Started
from harness.model import Mixture
from harness.probe import Prober
from harness.probe.forking import CannotFork, ForkingProber, forking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.culprit.counterfactual import Trials
    from harness.culprit.sides import Sides
    from harness.model import Verdict
    from harness.probe import Probe

FRESH_FIRST = 4


def open_forks(
    trials: Trials, sides: Sides, files: Iterable[str], reverted: Probe, stack: ExitStack
) -> ForkingProber | None:
    """Forks of the newer side in which these files can be exchanged, until `stack` is closed; None if they disagree.

    `reverted` is a probe of the newer side with the change reverted; forked, it and the side itself must show the
    verdicts of the two sides.
    """
    prober = trials.prober
    if not isinstance(prober, Prober) or not trials.plan.question.fork:
        return None
    unchanged = trials.mixed(sides.after, Mixture(files={}, label="nothing exchanged"))
    trials.reporter.report(Started("preparing a process from which the next runs are forked"))
    try:
        forks = stack.enter_context(forking(prober, trials.mixed(sides.after, None), files))
    except CannotFork as why:
        trials.reporter.report(Note(f"not forking runs: {why}"))
        return None
    for label, probe, expected in (
        (f"forked: the {sides.after.verdict.value} environment", unchanged, sides.after.verdict),
        ("forked: every change reverted", reverted, sides.before.verdict),
    ):
        if _verdict(trials, forks, label, probe) is not expected:
            give_up(trials, forks)
            return None
    return forks


def give_up(trials: Trials, forks: ForkingProber) -> None:
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
