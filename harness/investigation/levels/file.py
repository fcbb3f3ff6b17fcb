"""The file level: which files of the culprit make the difference.

In the newer environment a part of the culprit's files is put back to the older release. Added, removed and compiled
files count; all metadata of a distribution counts as one.
"""

from __future__ import annotations

from harness.investigation.culprit import Finding, Level
from harness.investigation.levels.ground import Ground, listed, versions
from harness.investigation.likelihood import ranked_files
from harness.investigation.reduction import Candidate
from harness.investigation.sides import PackageFiles, Sides, differing, mixture_of
from harness.probe import Probe

_REST = "files that the run did not use"


def find_files(ground: Ground, sides: Sides, package: Finding) -> Finding | None:
    """The files that make the difference; None where the sides can't be taken apart or no file differs."""
    content = both_contents(ground, sides, package)
    if content is None:
        return None
    before, after = content
    units = differing(before, after)
    if not units:
        return None
    names = listed(change.name for change in package.packages)
    ground.watcher.level(Level.FILE, f"{len(units)} files of {names} differ: which of them make the difference?")
    ranked, unused = ranked_files(
        units, sides, ground.plan, after, ground.traced(sides.after) if len(units) > 1 else {}
    )
    lumps = {unit: (unit,) for unit in ranked} | ({_REST: unused} if unused else {})

    def paths(chosen: Candidate) -> list[str]:
        return [path for lump in chosen for unit in lumps[lump] for path in units[unit]]

    older = versions(package.packages, newer=False)

    def probe_of(chosen: Candidate) -> Probe:
        return ground.mixed(sides.after, mixture_of(paths(chosen), before, f"{listed(sorted(chosen))} as in {older}"))

    reduced = ground.reduce(
        sides.before.verdict, tuple(lumps), probe_of, lambda chosen: f"reverted: {listed(sorted(chosen))}"
    )
    files = tuple(sorted(unit for lump in reduced.units for unit in lumps[lump]))
    label = f"{listed(files)} as in {versions(package.packages, newer=True)}"
    alone = ground.mixed(sides.before, mixture_of(paths(reduced.units), after, label))
    proofs = (
        ground.shown(
            f"the {sides.after.verdict.value} environment with only {listed(files)} reverted",
            reduced,
            sides.before.verdict,
        )
        if reduced.shown
        else sides.before.as_proof(f"the {sides.after.verdict.value} environment with {listed(files)} reverted"),
        ground.proof(
            f"the {sides.before.verdict.value} environment with only {listed(files)} advanced",
            alone,
            sides.after.verdict,
        ),
    )
    return Finding(
        Level.FILE,
        package.packages,
        files=files,
        proofs=proofs,
        candidates=len(units),
        runs=reduced.runs + 1,
        unresolved=reduced.unresolved,
        is_minimal=reduced.is_minimal,
        notes=ground.notes(reduced),
    )


def both_contents(ground: Ground, sides: Sides, package: Finding) -> tuple[PackageFiles, PackageFiles] | None:
    """The files of the culprit's packages before and after."""
    names = [change.name for change in package.packages]
    before, after = ground.environment(sides.before), ground.environment(sides.after)
    if before is None or after is None:
        return None
    return PackageFiles.of(before, names), PackageFiles.of(after, names)
