"""The proof of a culprit in the older release, with the other edits that it needs there.

Its ties say what it needs. If that is not enough, what it lacks is searched like the culprit itself, declarations in
its file and lines with its names first.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, evolve, frozen

from harness.culprit.code_search import COMPILED, CodeSearch, reverted_in_words
from harness.culprit.edits import Unit, Units, exchanged_in_words
from harness.culprit.proofs import Claim
from harness.culprit.subsets import Choices, Fewest, Reduced
from harness.culprit.ties import Consistency
from harness.model import Observation, Verdict
from harness.model.culprit import Proof

LATE = "the time was over"
_MOST_SEARCHES = 3  # for other units that the culprit needs
_MOST_LESSONS = 6  # from runs that lack what the culprit needs
_LIKELY_NEEDS = 10  # that are tried alone first
_MOST_CONTROLS = 40  # other units that are tried without the culprit
_MOST_EVIDENCE, _SAME_FILE, _DECLARES = 10.0, 6.0, 4.0


@frozen
class Advanced:
    """The proof in the older environment, the other units that it needs there, and the number of runs.

    `ran_alone`: the older environment still had its own verdict with only the culprit and its ties. `instead` is a run
    of the newer environment that has lost the difference with only `needs` reverted: they make it without the culprit.
    """

    proof: Proof
    needs: Units
    runs: int
    ran_alone: bool = False
    instead: Observation | None = None
    notes: tuple[str, ...] = ()

    @property
    def named_needs(self) -> Units:
        """The units that an answer names beside the culprit: none where they are too many for a proof."""
        return self.needs if self.proof.holds else frozenset()


def advanced(search: CodeSearch, core: Units, units: Units) -> Advanced:
    """Prove that the culprit (`core`) makes the difference in the older environment.

    It is advanced with what it can't run without, then with all that its ties require; `units` is the whole set that
    the search for lines found. If that is not enough, or so much that it shows nothing of the culprit, a search finds
    the fewest other units. They must not make the difference without the culprit.
    """
    return _Advancing(search, core).find(units)


@define
class _Advancing:
    """The search for a proof of `core` in the older environment, and what it has shown until now."""

    search: CodeSearch
    core: Units
    runs: int = 0
    ran_alone: bool = False
    failed: Proof | None = None  # the proof to show if none holds
    needless: Units = frozenset()
    too_much: Units = frozenset()  # others that lead to the verdict with the culprit, too many for a proof

    def find(self, units: Units) -> Advanced:
        """Find a proof that holds, or else say how far it got."""
        for besides in self.closures(units):
            if self.search.is_late:
                return self._late()
            proof = self.tried(besides)
            if proof.is_expected and not proof.holds:
                self.too_much = besides
                break
            done = self.shown(proof, besides) if proof.holds else None
            if done is not None:
                return done
        return self._with_needs() or self._not_shown()

    def closures(self, units: Units) -> Iterator[Units]:
        """The other units to try, as long as runs teach what the culprit needs, then all that its ties require."""
        consistency, core = self.search.consistency, self.core
        closed: dict[Units, None] = {}
        while len(closed) < _MOST_LESSONS and (besides := consistency.advanced_alone(core) - core) not in closed:
            closed[besides] = None
            yield besides
        for besides in (consistency.advanced(core) - core, consistency.advanced(units) - core):
            if besides not in closed:
                closed[besides] = None
                yield besides

    def _with_needs(self) -> Advanced | None:
        """Search the other units for those that the culprit needs; what makes the difference without it is left out."""
        search, others, alone = self.search, self.search.all - self.core, False
        for _ in range(_MOST_SEARCHES):
            if self.too_much and not alone:
                others, alone = self.too_much, True
                # Failed runs may have tied it to more than it needs.
                self.search = evolve(search, consistency=Consistency(search.edits, search.consistency.ties))
            needed = _needed(self.search, self.core, others - self.needless, alone=alone)
            self.runs += needed.runs
            besides = needed.units
            if needed.shown is None or besides <= self.needless:
                break
            claim = self._claim(besides)
            proof = self.search.trials.proof_by(needed.shown, claim.sentence, claim.probe, claim.expected)
            proof = counted_besides(proof, besides)
            if not proof.holds:
                self._fail(proof)
                self.too_much = besides if proof.is_expected else self.too_much
                if alone or not proof.is_expected:
                    break
                continue
            if (done := self.shown(proof, besides)) is not None:
                return done
        return None

    def tried(self, besides: Units) -> Proof:
        """The proof with these other units advanced, unless a warm run of it disagrees."""
        self.runs += 1

        def learn(run: Observation) -> None:
            _learn(self.search, self.core, besides, run)

        proof = counted_besides(self.search.trials.proof_if_likely(self._claim(besides), learn), besides)
        self.ran_alone = self.ran_alone or proof.verdict is self.search.sides.before.verdict
        if not proof.holds:
            self._fail(proof)
        return proof

    def _claim(self, besides: Units) -> Claim:
        probe = self.search.advanced(besides | self.core)
        return Claim(_sentence_forth(self.search, self.core, besides), probe, self.search.sides.after.verdict)

    def shown(self, proof: Proof, besides: Units) -> Advanced | None:
        """The result with a proof that holds; None if other units make the difference without the culprit, too.

        All other units may lack the culprit to run, so each that may be the culprit itself is tried with its own ties.
        """
        search, trials = self.search, self.search.trials
        likely = sorted(
            (unit for unit in besides if _may_be_it(search, unit)),
            key=lambda unit: (-search.weights.get(unit, 0.0), unit),
        )
        alone = (search.consistency.advanced_alone({unit}) for unit in likely[:_MOST_CONTROLS])
        parts = [*alone, besides] if likely else []
        for part in dict.fromkeys(parts):
            if not part.isdisjoint(self.core) or search.is_late:
                continue
            self.runs += 1
            sentence = exchanged_in_words(search.exchange.package.packages, search.names(part), newer_base=False)
            without = trials.control(Claim(sentence, search.advanced(part), search.sides.after.verdict))
            run = run_whole(search, search.consistency.reverted(part)) if without.holds else None
            if run is not None:
                return Advanced(proof, part, self.runs, self.ran_alone, instead=run)
            if without.holds:
                # The run that counts against the culprit takes the place of the proof.
                self._fail(evolve(without, expected=search.sides.before.verdict, besides=0), is_last=True)
                self.needless |= part
                return None
        return Advanced(proof, besides, self.runs, self.ran_alone)

    def _fail(self, proof: Proof, *, is_last: bool = False) -> None:
        """Keep a proof that does not hold, unless an earlier one says more: it had the verdict."""
        if self.failed is None or is_last or (proof.is_expected and not self.needless):
            self.failed = proof

    def _late(self) -> Advanced:
        sentence = _sentence_forth(self.search, self.core, frozenset())
        proof = self.failed or Proof(sentence, self.search.sides.after.verdict, Verdict.SKIP, LATE)
        return Advanced(proof, frozenset(), self.runs, self.ran_alone)

    def _not_shown(self) -> Advanced:
        """The result without a proof that holds: any of what was too much may make the difference itself."""
        search = self.search
        proof = self.failed or Proof("", search.sides.after.verdict, Verdict.SKIP, "not tried")
        if self.too_much and not search.is_late:
            done = self.shown(proof, self.too_much)
            if done is not None:
                return done
            proof = self.failed or proof
        if proof.is_expected:
            return Advanced(proof, frozenset(), self.runs, self.ran_alone)
        named = search.names(self.core)
        note = f"adding only {named} does not make the difference, and what else that needs was not found"
        return Advanced(proof, frozenset(), self.runs, self.ran_alone, notes=(note,))


def counted_besides(proof: Proof, besides: Units) -> Proof:
    """The proof with the number of changes beside the named ones; if they are too many, its reason says so."""
    counted = evolve(proof, besides=len(besides))
    if counted.holds or not counted.is_expected:
        return counted
    return evolve(
        counted, reason=f"{proof.verdict.word} with {len(besides)} other changes, any of which may be the cause"
    )


def advance(search: CodeSearch, core: Units) -> Claim:
    """The claim that the culprit makes the difference in the older environment, with what its ties require."""
    new = search.consistency.advanced(core)
    return Claim(_sentence_forth(search, core, new - core), search.advanced(new), search.sides.after.verdict)


def advanced_alone(search: CodeSearch, core: Units, units: Units) -> Advanced | None:
    """Prove that a part (`core`) of the found units makes the difference in the older environment without the rest.

    Returns None if it does not, or if its ties require more of the found units.
    """
    advancing = _Advancing(search, core)
    for besides in advancing.closures(core):
        if besides & units:
            return None
        proof = advancing.tried(besides)
        if proof.verdict is not Verdict.SKIP:
            shown = advancing.shown(proof, besides) if proof.holds else None
            return shown if shown is not None and shown.instead is None else None
    return None


def _may_be_it(search: CodeSearch, unit: Unit) -> bool:
    """Whether a unit may be the culprit itself: no comment, and no import that no evidence points to."""
    return unit in search.suspects or not search.edits.is_region(unit)


def added_first(search: CodeSearch, enough: Reduced) -> Reduced | None:
    """Search in the older environment for a part that makes the difference, then for what must be reverted with it.

    Where several changes show the bug, each of them alone, a search that reverts them finds a set that is far too
    large (`enough`), but adding any of them to the older environment shows it. Returns None if no likely part does.
    """
    # What one direction has taught may be too much for the other.
    older, newer = (evolve(search, consistency=Consistency(search.edits, search.consistency.ties)) for _ in range(2))
    forth = Choices(
        search.weights,
        older.advanced,
        lambda units: f"advanced: {search.names(units)}",
        closed=older.consistency.advanced,
        alone=older.consistency.advanced_alone,
        learn=lambda units, run: older.learn(units, run, reverting=False),
        parts=search.parts[:_MOST_CONTROLS],
    )
    added = Fewest(search.trials, search.sides.after.verdict, forth, until=search.until, only_in_parts=True).run()
    if added.shown is None or search.is_over:
        return None
    needs = {unit: older.consistency.advanced_alone({unit}) for unit in added.units}
    core = frozenset(unit for unit in needs if not any(unit in needs[other] for other in needs if other != unit))
    core, reverted = core or added.units, newer.consistency.reverted_alone
    if (run := run_whole(newer, reverted(core))) is not None:
        return evolve(added, units=reverted(core), shown=run, tried={})

    def closed(units: Units) -> Units:
        return reverted(units | core) - core

    likely = sorted(enough.units - core, key=lambda unit: (-search.weights[unit], unit))
    back = Choices(
        {unit: search.weights[unit] for unit in likely},
        lambda units: newer.reverted(units | core),
        lambda units: f"reverted: {search.names(core)} with {search.names(units)}",
        closed=closed,
        alone=closed,
        learn=lambda units, run: newer.learn(units | core, run, reverting=True),
        parts=[frozenset({unit}) for unit in likely[:_MOST_CONTROLS]],
    )
    rest = Fewest(search.trials, search.sides.before.verdict, back, until=search.until, together=True).run()
    if rest.shown is None:
        return None
    return evolve(rest, units=rest.units | core, runs=added.runs + rest.runs, tried={})


def run_whole(search: CodeSearch, units: Units) -> Observation | None:
    """The run with these units reverted; None if it does not remove the difference."""
    proof = search.trials.proof(reverted_in_words(search, units), search.reverted(units), search.sides.before.verdict)
    return proof.observation if proof.holds else None


def belongs(search: CodeSearch, core: Units, forth: Advanced) -> bool:
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


def _needed(search: CodeSearch, core: Units, among: Units, *, alone: bool) -> Reduced:
    """Search, in few runs, for the other units that must be advanced for the culprit to make the difference.

    With `alone`, without what their ties require: that was too much.
    """
    choices = _choices_of_needs(search, core, among, alone=alone)
    if not choices.weights:
        return Reduced(frozenset())
    return Fewest(search.trials, search.sides.after.verdict, choices, until=search.trials.until, together=True).run()


def _choices_of_needs(search: CodeSearch, core: Units, others: Units, *, alone: bool) -> Choices:
    """The other units that may have to be advanced with a culprit."""
    weights = {unit: _usefulness(search, core, unit) for unit in sorted(others)}
    with_core = search.consistency.advanced_alone if alone else search.consistency.advanced

    def closed(units: Units) -> Units:
        return with_core(units | core) - core

    own = {search.edits.path_of(unit) for unit in core}
    likely = sorted(others, key=lambda unit: (-weights[unit], -search.weights.get(unit, 1.0), unit))[:_LIKELY_NEEDS]
    folders = tuple(path.rpartition("/")[0] for path in own)
    beside = [unit for unit in others if search.edits.path_of(unit) in own]
    near = [unit for unit in others if search.edits.path_of(unit).rpartition("/")[0] in folders]
    compiled = [unit for unit in others if unit == COMPILED]  # may hide a Python file with its name
    wholes = (frozenset(group) for group in (beside, near, compiled) if group)
    return Choices(
        weights,
        lambda units: search.advanced(units | core),
        lambda units: f"advanced: {search.names(core)} with {search.names(units)}",
        closed=closed,
        alone=closed,
        learn=lambda units, run: _learn(search, core, units, run),
        parts=tuple(dict.fromkeys((*(frozenset({unit}) for unit in likely), *wholes))),
    )


def _learn(search: CodeSearch, core: Units, besides: Units, run: Observation) -> bool:
    """Learn what the culprit lacks from a run with it and other units that could not be judged; whether that is new."""
    raised = search.trials.judge.raised(run)
    return search.learn(besides | core, run, reverting=False) or (
        raised is not None and search.consistency.learn_function(besides | core, core, raised.frames)
    )


def _usefulness(search: CodeSearch, core: Units, unit: Unit) -> float:
    """How likely the culprit needs a unit: declarations in the same file and lines with the same names come first."""
    edits = search.edits
    weight = min(search.weights.get(unit, 1.0), _MOST_EVIDENCE)
    if not edits.is_region(unit):
        return weight
    path, function = edits.path_of(unit), edits.function(unit)
    if path in {edits.path_of(other) for other in core}:
        weight *= _SAME_FILE
    if not function or not edits.differences[path].is_function(function):
        weight *= _DECLARES
    if any(edits.words(unit) & edits.words(other) for other in core):
        weight *= 2
    return weight


def _sentence_forth(search: CodeSearch, core: Units, besides: Units) -> str:
    what = f"{search.names(core)} and, as it needs it, {search.names(besides)}" if besides else search.names(core)
    return exchanged_in_words(search.exchange.package.packages, what, newer_base=False)
