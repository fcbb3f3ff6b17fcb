"""Tells whether the cause is in the compiled part of a package: with all other files put back it fails alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.culprit.compiled_sources import changed_sources
from harness.culprit.edits import exchanged_in_words
from harness.culprit.line_search import COMPILED, LineSearch
from harness.model.culprit import Finding, Level
from harness.model.text import counted, listed

if TYPE_CHECKING:
    from harness.culprit.pursuit import Reduced

_MOST_NAMED = 5
_NEARLY_ALL = 0.9


def compiled_cause(search: LineSearch) -> tuple[Finding | None, bool]:
    """The finding that the compiled files make the difference; None if there are none, or if no run shows it.

    Also returns whether all other files of the older release run with the compiled files of the newer one.

    One run has all other files from the older release. If it ends as the newer release does, the compiled files are
    exchanged alone, in both directions, which is a proof if they can be mixed with the Python files.
    """
    others = search.all - {COMPILED}
    if COMPILED not in search.all or not others:
        return None, True
    trials, sides, packages = search.trials, search.sides, search.exchange.package.packages
    older, newer = sides.before.verdict, sides.after.verdict
    sentence = exchanged_in_words(packages, "all files that are not compiled", newer_base=True)
    alike = trials.proof(sentence, search.reverted(others), newer)
    if not alike.holds:
        return None, alike.verdict is older
    back = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=True),
        search.reverted(frozenset({COMPILED})),
        older,
    )
    forth = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=False),
        search.advanced(frozenset({COMPILED})),
        newer,
    )
    ran = compiled_that_ran(search)
    is_shown = back.holds or forth.holds
    found = evolve(
        search.exchange.package,
        level=Level.FILE if is_shown else Level.PACKAGE,
        files=ran if is_shown else (),
        compiled=ran,
        proofs=tuple(proof for proof in (back, forth) if proof.holds or is_shown) or search.exchange.package.proofs,
        candidates=len(search.exchange.units),
        runs=3,
        unresolved=sum(not proof.holds for proof in (back, forth)),
        causes=(f"the cause is in the compiled part, {few(ran)}",),
        notes=(
            f"with {counted(len(others), 'change')} outside the compiled files put back it fails in the same way",
            *_behind(search, ran),
        ),
    )
    return found, True


def probably_compiled(search: LineSearch, reduced: Reduced) -> Finding | None:
    """The finding that the cause is probably in the compiled files; None if the Python files were not cleared.

    They are if nearly all changes in code that ran were in a mixture that ran and failed alike. Compiled files and
    Python files of two releases often can't be mixed, so that no run shows more.
    """
    if COMPILED not in search.all:
        return None
    alike = (units for units, (verdict, _) in reduced.told.items() if verdict is search.sides.after.verdict)
    cleared = frozenset().union(*alike)
    suspects = search.suspects
    if len(cleared & suspects) < _NEARLY_ALL * len(suspects) or not suspects:
        return None
    ran, package = compiled_that_ran(search), search.exchange.package
    note = f"{len(cleared & suspects)} of {counted(len(suspects), 'change')} in Python code that ran leave it as it is"
    return evolve(
        package,
        compiled=ran,
        causes=(f"the cause is probably in the compiled part, {few(ran)}",),
        runs=package.runs + reduced.runs,
        notes=(*package.notes, note, *_behind(search, ran)),
    )


def _behind(search: LineSearch, ran: tuple[str, ...]) -> tuple[str, ...]:
    """A note on the changed source files behind compiled files, if the releases have source distributions."""
    packages = search.exchange.package.packages
    found = changed_sources(search.trials, packages[0], ran) if len(packages) == 1 else ()
    if not found:
        return ()
    return (f"{counted(len(found), 'changed source file')} behind {'it' if len(ran) == 1 else 'them'}: {few(found)}",)


def few(names: tuple[str, ...]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])} and {more} more" if more > 0 else listed(names)


def compiled_that_ran(search: LineSearch) -> tuple[str, ...]:
    """The compiled files that differ and that a side loaded, or all that differ if none is known to be loaded."""
    files = search.edits.wholes[COMPILED]
    sides = (search.sides.before, search.sides.after)
    loaded = {path for side in sides for paths in side.observation.loaded.values() for path in paths}
    return tuple(sorted(path for path in files if path in loaded)) or tuple(sorted(files))
