"""Down the levels, as far as asked and as far as it can be shown."""

from __future__ import annotations

from harness.culprit.counterfactual import Ground
from harness.culprit.file import find_files
from harness.culprit.package import find_package
from harness.culprit.region import find_regions
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
        files = find_files(ground, narrowed, package)
        if files is not None:
            findings.append(files)
            if until is Level.REGION and files.is_shown_one_way:
                regions = find_regions(ground, narrowed, files)
                findings += [regions] if regions is not None else []
    return Culprit(tuple(findings))
