"""Runs the levels in order, as deep as requested and as the runs can prove."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.commit import find_commit
from harness.culprit.lines import find_lines
from harness.culprit.package import find_package
from harness.culprit.release import narrow_release
from harness.culprit.sides import Sides
from harness.culprit.trials import Trials
from harness.errors import Interrupted
from harness.model.culprit import Culprit, Finding, Level
from harness.model.text import listed


def find_culprit(trials: Trials, sides: Sides, until: Level, *, are_neighbours: bool = False) -> Culprit | None:
    """Find the culprit between two sides, down to the level `until`; returns None if that is the release.

    With `are_neighbours` the sides are known to be neighbouring releases of one package. Raises `Interrupted`,
    `NoNetwork`, `NoSpace`.
    """
    if until is Level.RELEASE:
        return None
    package, narrowed = find_package(trials, sides, until)
    if narrowed == sides and not all(proof.holds for proof in package.proofs):
        return Culprit((package,))  # a side had another verdict when it was repeated
    if package.is_shown_one_way and not are_neighbours:
        package, narrowed = narrow_release(trials, narrowed, package, until)
    trials.tally.sides = narrowed
    try:
        return Culprit(_with_lower_levels(trials, narrowed, package, until))
    except (Interrupted, KeyboardInterrupt) as stopped:
        if not package.is_proved:
            raise
        raise _stopped_below(package) from stopped


def _with_lower_levels(trials: Trials, narrowed: Sides, package: Finding, until: Level) -> tuple[Finding, ...]:
    """The finding on the package, and those of the levels below it."""
    findings = [package]
    if until.depth >= Level.FILE.depth and package.is_shown_one_way:
        below = find_lines(trials, narrowed, package, until)
        findings = [*below] if below and below[0].level is Level.PACKAGE else [*findings, *below]
    if until is Level.COMMIT and findings[-1].is_shown_one_way:
        cache = trials.prober.builder.workspace.clones
        commit = find_commit(trials, narrowed, findings[-1], trials.scope.policy.git, cache)
        if isinstance(commit, str):
            findings[-1] = evolve(findings[-1], notes=(*findings[-1].notes, f"no commit is named: {commit}"))
        else:
            findings.append(commit)
    return tuple(findings)


def _stopped_below(package: Finding) -> Interrupted:
    """The error for Ctrl-C after the culprit package was proved: it tells that much of the answer."""
    return Interrupted(
        f"stopped; the culprit package is proved: {listed(map(str, package.packages))}; finished runs are kept",
        hint="run the same command again to continue, or with --depth package to have this answer and its report",
    )
