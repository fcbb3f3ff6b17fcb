"""The proof of a culprit in the older release, with the other edits that it needs there.

Its ties say what it needs. If that is not enough, what it lacks is searched like the culprit itself, declarations in
its file and lines with its names first.
"""

from __future__ import annotations

from attrs import evolve, frozen

from harness.culprit.edits import Unit, exchanged_in_words
from harness.culprit.line_search import COMPILED, LineSearch
from harness.culprit.proofs import Claim
from harness.culprit.subsets import Candidate, Choices, Lacking, Reduced
from harness.model import Verdict
from harness.model.culprit import Proof

LATE = "the time was over"
_LIKELY_NEEDS = 10  # that are tried alone first
_MOST_EVIDENCE, _SAME_FILE, _DECLARES = 10.0, 6.0, 4.0


@frozen
class Advanced:
    """The proof in the older environment, the other units that it needs there, and the number of runs.

    `ran_alone`: the older environment still had its own verdict with only the culprit and its ties. `is_needless`:
    `needs` make the difference even without the culprit.
    """

    proof: Proof
    needs: Candidate
    runs: int
    ran_alone: bool = False
    is_needless: bool = False
    notes: tuple[str, ...] = ()

    @property
    def named_needs(self) -> Candidate:
        """The units that an answer names beside the culprit: none where they are too many for a proof."""
        return self.needs if self.proof.holds else frozenset()


def advanced(search: LineSearch, core: Candidate, units: Candidate) -> Advanced:
    """Prove that the culprit (`core`) makes the difference in the older environment.

    It is advanced with the units that its ties require. A skipped run may add ties; if that is not enough, a search
    finds the missing units. `units` is the whole set that the search for lines found.
    """
    trials, sides = search.trials, search.sides
    proof: Proof | None = None
    runs, ran_alone = 0, False
    for start in dict.fromkeys((core, units)):
        if search.is_late:
            proof = proof or Proof(_sentence_forth(search, core, frozenset()), sides.after.verdict, Verdict.SKIP, LATE)
            return Advanced(proof, frozenset(), runs, ran_alone)
        besides = search.consistency.advanced(start) - core
        runs += 1
        one = counted_besides(search.trials.proof_if_likely(advance(search, core, start)), besides)
        if one.holds or (one.is_expected and start == core):  # no search finds fewer
            return Advanced(one, besides, runs, ran_alone)
        proof = one if proof is None or one.is_expected else proof
        ran_alone = ran_alone or one.verdict is sides.before.verdict
    needed = _needed(search, core)
    runs += needed.runs
    if needed.shown is not None:
        besides = needed.units
        sentence = _sentence_forth(search, core, besides)
        along = search.advanced(besides | core)
        proof = counted_besides(trials.proof_by(needed.shown, sentence, along, sides.after.verdict), besides)
        is_needless = False
        if any(_may_be_it(search, unit) for unit in besides):
            runs += 1
            without = exchanged_in_words(search.exchange.package.packages, search.names(besides), newer_base=False)
            alone = trials.proof_if_likely(Claim(without, search.advanced(besides), sides.after.verdict))
            is_needless = alone.holds
        return Advanced(proof, besides, runs, ran_alone, is_needless=is_needless)
    if proof is None:
        proof = Proof("", sides.after.verdict, Verdict.SKIP, "not tried")
    if proof.is_expected:
        return Advanced(proof, frozenset(), runs, ran_alone)
    note = f"adding only {search.names(core)} does not make the difference, and what else that needs was not found"
    return Advanced(proof, frozenset(), runs, ran_alone, notes=(note,))


def counted_besides(proof: Proof, besides: Candidate) -> Proof:
    """The proof with the number of changes beside the named ones; if they are too many, its reason says so."""
    told = evolve(proof, besides=len(besides))
    if told.holds or not told.is_expected:
        return told
    return evolve(told, reason=f"{proof.verdict.word} with {len(besides)} other changes, any of which may be the cause")


def advance(search: LineSearch, core: Candidate, start: Candidate | None = None) -> Claim:
    """The claim that the culprit makes the difference in the older environment.

    It is advanced with the units that the ties of `start` require (None: those of `core`).
    """
    new = search.consistency.advanced(core if start is None else start)
    return Claim(_sentence_forth(search, core, new - core), search.advanced(new), search.sides.after.verdict)


def advanced_alone(search: LineSearch, core: Candidate, found: Candidate) -> Advanced | None:
    """Prove that a part (`core`) of the found units makes the difference in the older environment without the rest.

    Returns None if it does not, or if its ties require more of the found units.
    """
    besides = search.consistency.advanced(core) - core
    if besides & found:
        return None
    proof = counted_besides(search.trials.proof_if_likely(advance(search, core)), besides)
    return Advanced(proof, besides, 1) if proof.holds else None


def _may_be_it(search: LineSearch, unit: Unit) -> bool:
    """Whether a unit may be the culprit itself: a region in a function, not an import, a class body or a whole file."""
    edits = search.edits
    return unit in search.suspects and edits.differences[edits.path_of(unit)].is_function(edits.function(unit))


def belongs(search: LineSearch, core: Candidate, forth: Advanced) -> bool:
    """Whether the other files that the culprit needs are part of the culprit.

    They are if the older environment kept its verdict with the culprit alone, or if all of them are new files.
    """
    own = {search.edits.path_of(unit) for unit in core}
    others = {unit for unit in forth.named_needs if search.edits.path_of(unit) not in own}
    new = all(
        not search.edits.is_region(unit)
        and not any(path in search.edits.before.digests for path in search.edits.wholes[unit])
        for unit in others
    )
    return bool(others) and (forth.ran_alone or new)


def _needed(search: LineSearch, core: Candidate) -> Reduced:
    """Search, in few runs, for the other units that must be advanced for the culprit to make the difference."""
    choices = choices_of_needs(search, core)
    if not choices.weights:
        return Reduced(frozenset())
    return Lacking(search.trials, search.sides.after.verdict, choices, until=search.trials.until).run()


def choices_of_needs(search: LineSearch, core: Candidate) -> Choices:
    """The other units that may have to be advanced with a culprit."""
    others = search.all - core
    weights = {unit: _usefulness(search, core, unit) for unit in sorted(others)}
    with_core = search.consistency.advanced

    def closed(units: Candidate) -> Candidate:
        return with_core(units | core) - core

    own = {search.edits.path_of(unit) for unit in core}
    likely = sorted(others, key=lambda unit: -weights[unit])[:_LIKELY_NEEDS]
    folders = tuple(path.rpartition("/")[0] for path in own)
    beside = [unit for unit in others if search.edits.path_of(unit) in own]
    near = [unit for unit in others if search.edits.path_of(unit).rpartition("/")[0] in folders]
    compiled = [unit for unit in others if unit == COMPILED]  # may hide a Python file with its name
    wholes = (frozenset(found) for found in (beside, near, compiled) if found)
    return Choices(
        weights,
        lambda units: search.advanced(units | core),
        lambda units: f"advanced: {search.names(core)} with {search.names(units)}",
        closed=closed,
        alone=closed,
        parts=tuple(dict.fromkeys((*(frozenset({unit}) for unit in likely), *wholes))),
    )


def _usefulness(search: LineSearch, core: Candidate, unit: Unit) -> float:
    """How likely the culprit needs a unit: declarations in the same file and lines with the same names come first."""
    edits = search.edits
    weight = min(search.weights.get(unit, 1.0), _MOST_EVIDENCE)
    if not edits.is_region(unit):
        return weight
    path, function = edits.path_of(unit), edits.function(unit)
    if path in {edits.path_of(one) for one in core}:
        weight *= _SAME_FILE
    if not function or not edits.differences[path].is_function(function):
        weight *= _DECLARES
    if any(edits.words(unit) & edits.words(one) for one in core):
        weight *= 2
    return weight


def _sentence_forth(search: LineSearch, core: Candidate, besides: Candidate) -> str:
    what = f"{search.names(core)} and, as it needs it, {search.names(besides)}" if besides else search.names(core)
    return exchanged_in_words(search.exchange.package.packages, what, newer_base=False)
