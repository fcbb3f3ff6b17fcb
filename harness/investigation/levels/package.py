"""The package level: which of the packages that differ between two locks makes the difference.

A part of the older lock is moved to the newer versions; the resolver keeps the rest where it was. What really moved
is read from the new lock, so packages that their requirements tie together move together.
"""

from __future__ import annotations

from attrs import evolve

from harness.investigation.culprit import Finding, Level
from harness.investigation.levels.ground import Ground, listed
from harness.investigation.likelihood import ranked_packages
from harness.investigation.reduction import Candidate
from harness.investigation.sides import Side, Sides
from harness.model import Change
from harness.probe import Probe


def find_package(ground: Ground, sides: Sides) -> tuple[Finding, Sides]:
    """The packages that make the difference, and sides that differ in them alone."""
    changes = {change.name: change for change in sides.before.lock.diff(sides.after.lock)}
    movable = {name: change for name, change in changes.items() if change.after is not None}
    if len(changes) == 1:
        return _only_one(sides, tuple(changes.values())), sides
    if not movable:
        note = "nothing was installed in a newer version: the difference is what is missing"
        return Finding(Level.PACKAGE, tuple(changes.values()), is_minimal=False, notes=(note,)), sides
    ground.watcher.level(Level.PACKAGE, f"{len(movable)} packages differ: which of them makes the difference?")
    as_of = sides.after.observation.as_of

    def probe_of(names: Candidate) -> Probe:
        return ground.moved(sides.before.lock, [changes[name] for name in names], as_of)

    def label_of(names: Candidate) -> str:
        return f"with {listed(str(changes[name]) for name in sorted(names))}"

    ranked = ranked_packages(movable, sides, ground.plan)
    reduced = ground.reduce(sides.after.verdict, ranked, probe_of, label_of)
    lock = reduced.shown.lock if reduced.shown is not None else None
    moved = sides.before.lock.diff(lock) if lock else tuple(changes[name] for name in sorted(reduced.units))
    names = listed(change.name for change in moved)
    before, after = sides.before.verdict.value, sides.after.verdict.value
    back = ground.moved(sides.after.lock, [Change(c.name, c.after, c.before) for c in moved if c.before], as_of)
    proofs = (
        ground.proof(f"the {after} environment with {names} as before", back, sides.before.verdict),
        ground.shown(f"the {before} environment with only {names} advanced", reduced, sides.after.verdict),
    )
    finding = Finding(
        Level.PACKAGE,
        moved,
        proofs=proofs,
        candidates=len(movable),
        runs=reduced.runs + 1,
        unresolved=reduced.unresolved,
        is_minimal=reduced.is_minimal,
        notes=ground.notes(reduced) + _strangers(moved, changes),
    )
    if reduced.shown is None or lock is None:
        return finding, sides
    return finding, evolve(sides, after=Side(lock, sides.after.verdict, reduced.shown))


def _only_one(sides: Sides, changes: tuple[Change, ...]) -> Finding:
    """Where the locks differ in one package, the two sides themselves are the proof."""
    name = changes[0].name
    return Finding(Level.PACKAGE, changes, proofs=(
        sides.before.as_proof(f"the {sides.after.verdict.value} environment with {name} as before"),
        sides.after.as_proof(f"the {sides.before.verdict.value} environment with only {name} advanced"),
    ))  # fmt: skip


def _strangers(moved: tuple[Change, ...], changes: dict[str, Change]) -> tuple[str, ...]:
    """What the resolver moved to a version that neither side has."""
    return tuple(
        f"{change} came along, a version that neither side has"
        for change in moved
        if change.name not in changes or change.after != changes[change.name].after
    )
