"""Proves claims about two sides, under a trace if lines are searched next between them, which saves two runs."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.clues import files_to_trace, used_units
from harness.culprit.sides import Exchange, Sides
from harness.culprit.trials import Claim, Trials
from harness.model.culprit import Finding, Level, Proof


def proved_again(
    trials: Trials, sides: Sides, package: Finding, sentences: tuple[str, str], until: Level
) -> tuple[Proof, Proof]:
    """Prove the older and the newer side by another run of each; see `proved`."""
    older, newer = (
        Claim(sentence, trials.mixed(side, None), side.verdict)
        for sentence, side in zip(sentences, (sides.before, sides.after), strict=True)
    )
    return proved(trials, sides, package, (older, newer), until)


def proved(
    trials: Trials, sides: Sides, package: Finding, claims: tuple[Claim, Claim], until: Level
) -> tuple[Proof, Proof]:
    """Prove a claim about the older and one about the newer side, each in a fresh process.

    If `until`, the level that is searched between these sides, is the file level or deeper, the runs in the lock of
    their side are traced. A traced run without the expected verdict is repeated without a trace.
    """
    traced: frozenset[str] = frozenset()
    exchange = Exchange.of(trials.environment, sides, package) if until.depth >= Level.FILE.depth else None
    if exchange is not None:
        traced = files_to_trace(exchange, used_units(exchange.units, sides))
    asked = [
        evolve(claim, probe=evolve(claim.probe, trace=traced)) if traced and claim.probe.lock == side.lock else claim
        for claim, side in zip(claims, (sides.before, sides.after), strict=True)
    ]
    older, newer = (
        proof if proof.holds or claim is other else trials.proof(claim.sentence, claim.probe, claim.expected)
        for claim, other, proof in zip(claims, asked, trials.proofs(asked), strict=True)
    )
    return older, newer
