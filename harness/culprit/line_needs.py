"""Proves the culprit in the older release, and finds which other changes it needs there."""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from harness.culprit.claims import Claim
from harness.culprit.line_search import LineSearch
from harness.culprit.pursuit import Pursuit
from harness.culprit.reduction import Candidate, Reduced
from harness.culprit.sentences import exchanged_in_words
from harness.culprit.ties import Unit
from harness.model import Verdict
from harness.model.culprit import Proof

_MOST_NEEDED = 14
_MOST_EVIDENCE, _SAME_FILE, _DECLARES = 10.0, 6.0, 4.0
_BASES = 4.0  # the bases of a class may decide how its instances are called
_SERVES = 0.1  # an import is added with the lines that use it
_GONE = 0.2  # lines that only the older side has are seldom an obstacle
_CALLED_ALIKE = 6.0  # a variable is often named after its class


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


def advanced(search: LineSearch, core: Candidate, units: Candidate) -> Advanced:
    """Prove that the culprit (`core`) makes the difference in the older environment.

    It is advanced with the units that its ties require. A skipped run may add ties; if that is not enough, a search
    finds the missing units. `units` is the whole set that the search for lines found.
    """
    trials, sides = search.trials, search.sides
    proof: Proof | None = None
    runs, ran_alone = 0, False
    tried: set[Candidate] = set()
    attempts: list[Candidate] = [core, core, core, units]
    for start in attempts:
        new = search.consistency.advanced(start)
        if new in tried:
            continue
        tried.add(new)
        runs += 1
        besides = new - core
        claim = advance(search, core, start)
        one = trials.proof(claim.sentence, claim.probe, claim.expected)
        if proof is None or one.holds:
            proof = one
        if one.holds:
            return Advanced(one, besides, runs, ran_alone)
        ran_alone = ran_alone or one.verdict is sides.before.verdict
        if one.observation is not None and one.verdict is Verdict.SKIP:
            search.learn(new, one.observation, reverting=False)
    needed = _needed(search, core)
    runs += needed.runs
    if needed.shown is not None:
        besides = needed.units
        sentence = _sentence_forth(search, core, besides)
        along = search.advanced(besides | core)
        proof = trials.shown(sentence, needed, sides.after.verdict, lambda: along)
        is_needless = False
        if any(_may_be_it(search, unit) for unit in besides):
            runs += 1
            without = exchanged_in_words(search.exchange.package.packages, search.names(besides), newer_base=False)
            alone = trials.proof(without, search.advanced(besides), sides.before.verdict)
            is_needless = alone.verdict is sides.after.verdict
        return Advanced(proof, besides, runs, ran_alone, is_needless=is_needless)
    if proof is None:
        proof = Proof("", sides.after.verdict, Verdict.SKIP, "not tried")
    note = f"{search.names(core)} alone does not make the difference, and what else it needs was not found"
    return Advanced(proof, frozenset(), runs, ran_alone, notes=(note,))


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
    claim = advance(search, core)
    proof = search.trials.proof(claim.sentence, claim.probe, claim.expected)
    return Advanced(proof, besides, 1) if proof.holds else None


def _may_be_it(search: LineSearch, unit: Unit) -> bool:
    """Whether a unit may be the culprit itself: a region in a function, not an import, a class body or a whole file."""
    edits = search.edits
    if not edits.is_region(unit) or unit in search.serving:
        return False
    return edits.differences[edits.path_of(unit)].is_function(edits.function(unit))


def belongs(search: LineSearch, core: Candidate, forth: Advanced) -> bool:
    """Whether the other files that the culprit needs are part of the culprit.

    They are if the older environment kept its verdict with the culprit alone, or if all of them are new files.
    """
    own = {search.edits.path_of(unit) for unit in core}
    others = {unit for unit in forth.needs if search.edits.path_of(unit) not in own}
    new = all(
        not search.edits.is_region(unit)
        and not any(path in search.edits.before.digests for path in search.edits.wholes[unit])
        for unit in others
    )
    return bool(others) and (forth.ran_alone or new)


def _needed(search: LineSearch, core: Candidate) -> Reduced:
    """Search, in few runs, for the other units that must be advanced for the culprit to make the difference."""
    pursuit = search_for_needs(search, core)
    return pursuit.run() if pursuit is not None else Reduced(frozenset(), True, frozenset(), 0, 0, 0, None, False)


def search_for_needs(search: LineSearch, core: Candidate) -> Pursuit | None:
    """The search for the other units that must be advanced with the culprit, None if there are no others.

    What its first sets need is remembered, so a second call is quick.
    """
    others = search.all - core
    weights = {unit: _usefulness(search, core, unit) for unit in sorted(others)}
    if not weights:
        return None
    with_core = search.consistency.advanced
    return Pursuit(
        trials=search.trials,
        serving=search.serving,
        flipped=search.sides.after.verdict,
        weights=weights,
        closed=lambda units: with_core(units | core) - core,
        probe_of=lambda units: search.advanced(units | core),
        label_of=lambda units: f"advanced: {search.names(core)} with {search.names(units)}",
        learn=lambda moved, observation: search.learn(moved | core, observation, reverting=False),
        most=_MOST_NEEDED,
        until=search.trials.until,
    ).without_broken()


def _usefulness(search: LineSearch, core: Candidate, unit: Unit) -> float:
    """How likely the culprit needs a unit: declarations in the same file and lines with the same names come first."""
    edits = search.edits
    weight = min(search.weights.get(unit, 1.0), _MOST_EVIDENCE)
    if not edits.is_region(unit):
        return weight
    path, function = edits.path_of(unit), edits.function(unit)
    if path in {edits.path_of(one) for one in core}:
        weight *= _SAME_FILE
    if unit in search.serving:
        return weight * _SERVES
    if not edits.lines(unit)[1]:
        weight *= _GONE
    if not function or not edits.differences[path].is_function(function):
        weight *= _DECLARES * (_BASES if edits.changes_bases(unit) else 1.0)
        if _is_called_like(function, {word for one in core for word in edits.words(one)}):
            weight *= _CALLED_ALIKE
    if any(edits.words(unit) & edits.words(one) for one in core):
        weight *= 2
    return weight


def _is_called_like(name: str, words: Collection[str]) -> bool:
    """Whether one of the words is most of a definition's name, such as `decoder_layer` for `WhisperDecoderLayer`."""
    plain = name.rpartition(".")[2].replace("_", "").lower()
    return any(2 * len(bare) > len(plain) and bare in plain for bare in (w.replace("_", "").lower() for w in words))


def _sentence_forth(search: LineSearch, core: Candidate, besides: Candidate) -> str:
    what = f"{search.names(core)} and, as it needs it, {search.names(besides)}" if besides else search.names(core)
    return exchanged_in_words(search.exchange.package.packages, what, newer_base=False)
