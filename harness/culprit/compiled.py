"""Tells whether the cause is in the compiled part of a package: with all other files put back it fails alike."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.code_search import COMPILED, CodeSearch, file_units
from harness.culprit.edits import exchanged_in_words
from harness.model.culprit import Finding, Level
from harness.model.text import counted, listed

_MOST_NAMED = 5


def compiled_cause(search: CodeSearch) -> tuple[Finding | None, bool]:
    """The finding that the compiled files make the difference; None if there are none, or if no run shows it.

    Also returns whether all other files of the older release run with the compiled files of the newer one.

    One run has all other files from the older release. Unless it ends as the older release does, the compiled files are
    exchanged alone. That is a proof in each direction in which they can be mixed with the Python files.
    """
    others = search.all - {COMPILED}
    if COMPILED not in search.all or not others:
        return None, True
    trials, sides, packages = search.trials, search.sides, search.exchange.package.packages
    older, newer = sides.before.verdict, sides.after.verdict
    sentence = exchanged_in_words(packages, "all files that are not compiled", newer_base=True)
    alike = trials.proof(sentence, search.reverted(others), newer)
    if alike.verdict is older:
        return None, True
    back = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=True),
        search.reverted(frozenset({COMPILED})),
        older,
    )
    if not alike.holds and not back.holds:
        return None, False
    forth = trials.proof(
        exchanged_in_words(packages, "the compiled files", newer_base=False),
        search.advanced(frozenset({COMPILED})),
        newer,
    )
    ran = compiled_that_ran(search)
    is_shown = back.holds or forth.holds
    count = len(search.exchange.units) - len(file_units(search, frozenset({COMPILED})))
    note = f"with the {counted(count, 'file')} that are not compiled put back it fails in the same way"
    finding = evolve(
        search.exchange.package,
        level=Level.FILE if is_shown else Level.PACKAGE,
        files=ran if is_shown else (),
        compiled=ran,
        proofs=tuple(proof for proof in (back, forth) if proof.holds or is_shown) or search.exchange.package.proofs,
        candidates=len(search.exchange.units),
        runs=3,
        unresolved=sum(not proof.holds for proof in (back, forth)),
        causes=(f"the cause is in the compiled part, {few(ran)}",),
        notes=(note,) if alike.holds else (),
    )
    return finding, True


def removed_from_compiled(search: CodeSearch) -> Finding | None:
    """The finding that a name which only a stub declares was removed from compiled code; None if there is none.

    Nothing smaller can be tried: compiled code can't be put back in parts.
    """
    evidence = next(iter(search.clues.pointers.gone_from_stubs), None) if search.clues is not None else None
    if evidence is None or COMPILED not in search.all:
        return None
    owner, _, name = evidence.name.rpartition(".")
    ran, package = compiled_that_ran(search), search.exchange.package
    return evolve(
        package,
        compiled=ran,
        causes=(f"`{name}` was removed from `{owner}`, which is probably in the compiled part, {few(ran)}",),
        notes=(*package.notes, f"only a stub declares it ({evidence.file}:{evidence.line})"),
    )


def few(names: tuple[str, ...]) -> str:
    """The first names of a list, and how many more there are."""
    rest = len(names) - _MOST_NAMED
    return f"{', '.join(names[:_MOST_NAMED])} and {rest} more" if rest > 0 else listed(names)


def compiled_that_ran(search: CodeSearch) -> tuple[str, ...]:
    """The compiled files that differ and that a side loaded, or all that differ if none is known to be loaded.

    Libraries that a wheel brings along (`numpy.libs/`) come last.
    """
    files = search.edits.wholes[COMPILED]
    sides = (search.sides.before, search.sides.after)
    loaded = {path for side in sides for paths in side.observation.loaded.values() for path in paths}
    ran = [path for path in files if path in loaded] or list(files)
    return tuple(sorted(ran, key=lambda path: (path.partition("/")[0].endswith(".libs"), path)))
