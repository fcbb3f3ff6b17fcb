"""Down the levels, as far as asked and as far as it can be shown."""

from __future__ import annotations

from harness.culprit.counterfactual import Ground
from harness.culprit.lines import find_lines
from harness.culprit.package import find_package
from harness.culprit.release import narrow_release
from harness.culprit.sides import Sides
from harness.model.culprit import Culprit, Level


def find_culprit(ground: Ground, sides: Sides, until: Level) -> Culprit | None:
    """The culprit between two sides, as closely as `until`; None for the release alone."""
    if until is Level.RELEASE:
        return None
    package, narrowed = find_package(ground, sides)
    if package.is_shown_one_way:
        package, narrowed = narrow_release(ground, narrowed, package)
    findings = [package]
    if until.depth >= Level.FILE.depth and package.is_shown_one_way:
        below = find_lines(ground, narrowed, package, until)
        findings = [*below] if below and below[0].level is Level.PACKAGE else [*findings, *below]
    return Culprit(tuple(findings))
