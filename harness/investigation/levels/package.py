"""The package level: which of the packages that differ between two locks makes the difference.

A part of the older lock is moved to the newer versions; the resolver keeps the rest where it was. What really moved
is read from the new lock, so packages that their requirements tie together move together. Those are then exchanged
one by one without asking the resolver, and at the end the culprit is put back in the newer environment.
"""

from __future__ import annotations

from attrs import evolve

from harness.investigation.culprit import Finding, Level, Proof
from harness.investigation.levels.ground import Ground, listed
from harness.investigation.likelihood import ranked_packages
from harness.investigation.reduction import Candidate, Reduced
from harness.investigation.sides import Side, Sides, exchanged
from harness.model import Change
from harness.probe import Probe

_MOST = 16


def find_package(ground: Ground, sides: Sides) -> tuple[Finding, Sides]:
    """The packages that make the difference, and sides that differ in them alone."""
    changes = {change.name: change for change in sides.before.lock.diff(sides.after.lock)}
    if len(changes) == 1:
        return _only_one(sides, tuple(changes.values())), sides
    ground.watcher.level(Level.PACKAGE, f"{len(changes)} packages differ: which of them makes the difference?")
    searches: list[Reduced] = []
    together = _moved_by_resolver(ground, sides, changes, searches)
    strangers = _strangers(together, changes)
    narrowed = _without_ties(ground, together, searches)
    narrowed = _apart_from_needs(ground, narrowed, searches)
    names = frozenset(_names(narrowed))
    forward = _forward(narrowed, sides)
    back = _back(ground, sides, names)
    notes = strangers
    if back.verdict is sides.after.verdict and (more := _others(ground, sides, names, searches)):
        notes = (*notes, f"{listed(sorted(names))} alone brings it too; it goes only if {listed(sorted(more))} is put back as well")
        names |= more
        back = _back(ground, sides, names)
        narrowed, forward = _advanced(ground, sides, names)
    along = sorted(change.name for change in sides.before.lock.diff(narrowed.before.lock))
    if along:
        notes = (*notes, f"{listed(sorted(names))} could not be run without {listed(along)}, which alone makes no difference")
    last = searches[-1] if searches else None
    finding = Finding(
        Level.PACKAGE,
        narrowed.before.lock.diff(narrowed.after.lock),
        proofs=(back, forward),
        candidates=len(changes),
        runs=sum(search.runs for search in searches) + 1,
        unresolved=sum(search.unresolved for search in searches),
        is_minimal=last is None or last.is_minimal,
        notes=(*(ground.notes(last) if last is not None and not along else ()), *notes),
    )
    return finding, narrowed
