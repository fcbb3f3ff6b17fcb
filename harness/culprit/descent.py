"""Runs the levels in order, as deep as requested and as the runs can prove."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.commit import find_commit
from harness.culprit.lines import find_lines
from harness.culprit.package import find_package
from harness.culprit.release import narrow_release
from harness.culprit.sides import Sides
from harness.culprit.trials import Trials
from harness.model.culprit import Culprit, Level


def find_culprit(trials: Trials, sides: Sides, until: Level, *, are_neighbours: bool = False) -> Culprit | None:
    """Find the culprit between two sides, down to the level `until`; returns None if that is the release.

    With `are_neighbours` the sides are known to be neighbouring releases of one package. Raises `Interrupted`,
    `NoNetwork`, `NoSpace`.
    """
    if until is Level.RELEASE:
        return None
    package, narrowed = find_package(trials, sides, until)
    if narrowed is sides and not all(proof.holds for proof in package.proofs):
        return Culprit((package,))  # a side had another verdict when it was repeated
    if package.is_shown_one_way and not are_neighbours:
        package, narrowed = narrow_release(trials, narrowed, package, until)
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
    return Culprit(tuple(findings))
