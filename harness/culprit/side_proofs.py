"""Both sides run once more as a proof: under a trace where the lines are searched next, which saves two runs."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.counterfactual import Trials
from harness.culprit.evidence import used_units
from harness.culprit.exchange import Exchange
from harness.culprit.line_search import files_to_trace, read_ahead
from harness.culprit.sides import Sides
from harness.model.culprit import Finding, Level, Proof


def proved_again(
    trials: Trials, sides: Sides, package: Finding, sentences: tuple[str, str], until: Level
) -> tuple[Proof, Proof]:
    """The older and the newer side, each in a new process; where a traced run fails to show a side, a plain one."""
    traced: frozenset[str] = frozenset()
    exchange = Exchange.of(trials, sides, package) if until.depth >= Level.FILE.depth else None
    if exchange is not None:
        used = used_units(exchange.units, sides)
        traced = files_to_trace(exchange, used)
        if traced:
            read_ahead(trials, sides, exchange, used)

    def proved(sentence: str, *, is_newer: bool) -> Proof:
        side = sides.after if is_newer else sides.before
        probe = trials.mixed(side, None)
        if traced:
            proof = trials.proof(sentence, evolve(probe, trace=traced), side.verdict)
            if proof.holds:
                return proof
        return trials.proof(sentence, probe, side.verdict)

    older, newer = sentences
    return proved(older, is_newer=False), proved(newer, is_newer=True)
