"""Which edits belong together: those that can't be reverted or added unless others are too. Pure.

Each tie is an implication: "if this edit is reverted, that one must be too". Reversed, it says what an edit needs to be
added to the older release, so one graph serves both directions. Ties come from the sources of both sides, from syntax,
and from skipped runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from attrs import define, evolve, field, frozen

from harness.culprit.edits import UNCHANGED, Edits, Ranges, Unit, ranges_of
from harness.culprit.facts import Arity, Call, Facts, Signature, Symbol, module_of, read_facts
from harness.culprit.regions import moved_together
from harness.culprit.syntax import error_line
from harness.model import Mixture, Observation

_MOST_PROVIDERS = 4
_MOST_REPAIRS = 12
_MOST_CHECKED = 6  # with more partly reverted files than this, undefined names are not checked
_MOST_TAUGHT = 4
_MOST_HAVING = 60  # a word of a message that more edits have says nothing
_MOST_ALONG = 8  # a part tied to more than that is tried with what its files can't lack

_QUOTED = re.compile(r"['\"`]([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)['\"`]")
_CALLED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(\)")
_ASKED_OF = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_UNPACK = "values to unpack"


@frozen
class Ties:
    """The ties between units: `needs` maps a unit to those that must be reverted with it.

    `whole` has only the ties of units that share a statement.
    """

    needs: Mapping[Unit, frozenset[Unit]] = field(factory=dict)
    whole: Mapping[Unit, frozenset[Unit]] = field(factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Unit, Unit]]) -> Ties:
        """Make ties from pairs "the first needs the second"."""
        needs: dict[Unit, set[Unit]] = {}
        for one, other in pairs:
            if one != other:
                needs.setdefault(one, set()).add(other)
        return cls({one: frozenset(others) for one, others in needs.items()})

    def and_also(self, pairs: Iterable[tuple[Unit, Unit]]) -> Ties:
        """These ties and further pairs."""
        more = Ties.of(pairs).needs
        joined = {one: self.needs.get(one, frozenset()) | more.get(one, frozenset()) for one in {*self.needs, *more}}
        return evolve(self, needs=joined)

    def reversed(self) -> Ties:
        """The same ties for advancing: "if that edit is advanced, this one must be too"."""
        return Ties.of((other, one) for one, others in self.needs.items() for other in others)

    def closed(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """These units, and everything that they need, directly or indirectly."""
        found = set(units)
        border = list(found)
        while border:
            more = self.needs.get(border.pop(), frozenset()) - found
            found |= more
            border.extend(more)
        return frozenset(found)


@define
class Consistency:
    """The edits between two sides and their ties; `learn` adds ties, and `lessons` counts how often it added any."""

    edits: Edits
    ties: Ties
    lessons: int = 0
    _known: dict[tuple[bool | None, frozenset[Unit]], frozenset[Unit]] = field(factory=dict)

    def reverted(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be reverted with them."""
        return self._complete(frozenset(units), reverting=True)

    def advanced(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be advanced with them."""
        return self._complete(frozenset(units), reverting=False)

    def reverted_alone(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and what must be reverted with them; if that is too much, only what their files can't lack.

        Names tie what only looks alike, and what is tied to everything could never be tried.
        """
        asked = frozenset(units)
        tied = self.ties.closed(asked)
        if len(tied) <= len(asked) + _MOST_ALONG:
            tied = self.reverted(asked)
            if len(tied) <= len(asked) + _MOST_ALONG:
                return tied
        key = (None, asked)
        if key not in self._known:
            self._known[key] = self._repaired(asked, Ties(self.ties.whole), reverting=True)
        return self._known[key]

    def learn(self, pairs: Iterable[tuple[Unit, Unit]]) -> bool:
        """Add ties "reverting the first requires reverting the second"; returns whether any of them is new."""
        fresh = [(one, other) for one, other in pairs if one != other and other not in self.ties.needs.get(one, ())]
        if fresh:
            self.ties = self.ties.and_also(fresh)
            self.lessons += 1
            self._known.clear()
        return bool(fresh)

    def mixture(self, old: Collection[Unit], label: str, *, newer_base: bool) -> Mixture:
        """The mixture with the units in `old` from the older side and the others from the newer one.

        It is built from the environment of the newer side with `newer_base`, else from that of the older side.
        """
        return Mixture(self.edits.files(old, newer_base=newer_base), label, self._flaw(frozenset(old)))

    def taught(self, moved: frozenset[Unit], observation: Observation, *, reverting: bool) -> list[tuple[Unit, Unit]]:
        """The ties that a skipped run suggests, by its message and last frame.

        `moved` are the units that were reverted (`reverting`) or advanced.
        """
        pairs = self._named(moved, observation, reverting=reverting)
        return pairs if reverting else [(other, own) for own, other in pairs]

    def _named(self, moved: frozenset[Unit], observation: Observation, *, reverting: bool) -> list[tuple[Unit, Unit]]:
        """Pairs of a moved edit and an edit that it needs according to the message and the frames of the exception."""
        raised = observation.exception
        if raised is None:
            return []
        words = {
            part
            for name in (*_QUOTED.findall(raised.message), *_CALLED.findall(raised.message))
            for part in name.split(".")
        }
        frames = list(reversed(raised.frames))
        if _UNPACK in raised.message and frames:
            words |= set(_ASKED_OF.findall(frames[0].text))
        words -= {"self", "__init__", "object", "module"}
        having = Counter(word for unit in self.edits.all for word in words & self._mentioned(unit)) if words else {}
        words = {word for word, count in having.items() if count <= _MOST_HAVING}
        at_fault = self._at(frames[0].file, frames[0].line, moved, reverting=reverting) if frames else None
        files = {frame.file for frame in frames}
        ranked: list[tuple[int, Unit]] = []
        for unit in self.edits.all - moved:
            mentions = bool(words & self._mentioned(unit))
            if unit == at_fault:
                ranked.append((0 if mentions else 3, unit))
            elif mentions:
                ranked.append((1 if self.edits.path_of(unit) in files else 2, unit))
        if not ranked:
            return []
        best = min(rank for rank, _ in ranked)
        missing = [unit for rank, unit in sorted(ranked) if rank == best][:_MOST_TAUGHT]
        functions = {(frame.file, frame.function) for frame in frames}
        owners = [unit for unit in sorted(moved) if words & self._mentioned(unit)]
        owners = owners or [unit for unit in sorted(moved) if self._place(unit) in functions]
        owners = owners or (
            sorted(moved) if len(moved) == 1 or (at_fault in missing and len(moved) <= _MOST_TAUGHT) else []
        )
        owners = owners[:_MOST_TAUGHT]
        return [(own, other) for own in owners for other in missing]

    def _place(self, unit: Unit) -> tuple[str, str]:
        """The file of an edit and the unqualified name of the function around it, as in a stack frame."""
        return self.edits.path_of(unit), self.edits.function(unit).rpartition(".")[2]

    def _mentioned(self, unit: Unit) -> frozenset[str]:
        return self.edits.words(unit) | frozenset(self.edits.function(unit).split("."))

    def _at(self, file: str, line: int, moved: frozenset[Unit], *, reverting: bool) -> Unit | None:
        """The edit at a line (from 1) of a mixed file, None if the line is unchanged."""
        path = next((path for path, home in self.edits.homes.items() if home == file), file)
        if path not in self.edits.differences:
            return path if path in self.edits.wholes else None
        old = moved if reverting else self.edits.all - moved
        for first, last, number in self._positions(path, self.edits.numbers(old, path)):
            if first <= line <= last:
                return f"{path}#{number}"
        return None

    def _positions(self, path: str, old: frozenset[int]) -> list[tuple[int, int, int]]:
        """The first and last line of each region in the mixed text, counted from 1, and its number."""
        found, shift = [], 0
        for number, (a, b, c, d) in enumerate(self.edits.differences[path].blocks):
            length = b - a if number in old else d - c
            found.append((c + 1 + shift, c + length + shift, number))
            shift += length - (d - c)
        return found

    def _complete(self, units: frozenset[Unit], *, reverting: bool) -> frozenset[Unit]:
        key = (reverting, units)
        if key not in self._known:
            self._known[key] = self._repaired(
                units, self.ties if reverting else self.ties.reversed(), reverting=reverting
            )
        return self._known[key]

    def _repaired(self, units: frozenset[Unit], ties: Ties, *, reverting: bool) -> frozenset[Unit]:
        """Units with all that they are tied to, and with what invalid Python and undefined names need."""
        moved = ties.closed(units)
        for _ in range(_MOST_REPAIRS):
            missing = self._missing(moved, reverting=reverting)
            if missing <= moved:
                break
            moved = ties.closed(moved | missing)
        return moved

    def _missing(self, moved: frozenset[Unit], *, reverting: bool) -> frozenset[Unit]:
        """Units that must move too because a mixed file is invalid Python or has undefined names."""
        old = moved if reverting else self.edits.all - moved
        by_file = self.edits.by_file(moved)
        partly = [path for path, found in by_file.items() if len(found) < len(self.edits.differences[path].blocks)]
        missing: set[Unit] = set()
        for path in partly:
            if not path.endswith(".py"):
                continue
            difference = self.edits.differences[path]
            numbers = self.edits.numbers(old, path)
            broken = error_line(difference.mixed(numbers))
            if broken is not None:
                others = [
                    (min(abs(broken - first), abs(broken - last)), number)
                    for first, last, number in self._positions(path, numbers)
                    if f"{path}#{number}" not in moved
                ]
                missing |= {f"{path}#{number}" for _, number in sorted(others)[:1]}
            elif len(partly) <= _MOST_CHECKED and difference.flaws(numbers):
                lacking = difference.lacking(numbers) if reverting else difference.flipped().lacking(by_file[path])
                missing |= {f"{path}#{number}" for number in lacking}
        return frozenset(missing)

    def _flaw(self, old: frozenset[Unit]) -> str:
        by_file = self.edits.by_file(old)
        partly = [path for path, found in by_file.items() if len(found) < len(self.edits.differences[path].blocks)]
        if len(partly) > _MOST_CHECKED:
            return ""
        undefined = sorted({name for path in partly for name in self.edits.differences[path].flaws(by_file[path])})
        return f"the mixture leaves names undefined: {', '.join(undefined)}" if undefined else ""


def ties_of(edits: Edits) -> Ties:
    """The ties between edits, from the sources of both sides."""
    before, after = _SideFacts(), _SideFacts()
    pairs: list[tuple[Unit, Unit]] = []
    for path, difference in edits.differences.items():
        for one, other in moved_together(difference) if path.endswith(".py") else ():
            pairs += [(f"{path}#{one}", f"{path}#{other}"), (f"{path}#{other}", f"{path}#{one}")]
    for is_newer, facts in ((False, before), (True, after)):
        pairs += _SideReader(edits, is_newer, facts).read()
    whole = Ties.of(pairs).needs
    pairs += [*_by_names(before, after), *_by_signatures(before, after), *_by_returns(before, after)]
    return evolve(Ties.of(pairs), whole=whole)


@define
class _SideFacts:
    """The definitions and uses on one side, by unit. Definitions on unchanged lines belong to the unit `UNCHANGED`."""

    defines: dict[Symbol, set[Unit]] = field(factory=dict)
    uses: dict[Symbol, set[Unit]] = field(factory=dict)
    signatures: dict[tuple[str, str], tuple[Signature, frozenset[Unit]]] = field(factory=dict)
    calls: list[tuple[Call, frozenset[Unit]]] = field(factory=list)
    returns: dict[str, list[tuple[Arity, frozenset[Unit]]]] = field(factory=dict)
    unpackings: dict[str, list[tuple[Arity, frozenset[Unit]]]] = field(factory=dict)
    called: set[str] = field(factory=set)

    def add(self, path: str, facts: Facts, ranges: Ranges) -> None:
        """Add the facts of one text; `ranges` says which lines belong to which unit."""
        for symbol, line in facts.defines:
            self.defines.setdefault(symbol, set()).add(ranges.at(line))
        for symbol, line in facts.uses:
            if (unit := ranges.at(line)) != UNCHANGED:
                self.uses.setdefault(symbol, set()).add(unit)
        for signature in facts.signatures:
            self.called.add(signature.called)
            self.signatures[(path, signature.qualname)] = (signature, ranges.within(signature.first, signature.last))
        self.calls += [(one, units) for one in facts.calls if (units := ranges.within(one.first, one.last))]
        for kept, found in ((self.returns, facts.returns), (self.unpackings, facts.unpackings)):
            for one in found:
                if units := ranges.within(one.first, one.last):
                    kept.setdefault(one.called, []).append((one, units))


def _by_names(before: _SideFacts, after: _SideFacts) -> Iterator[tuple[Unit, Unit]]:
    for symbol in before.defines.keys() | after.defines.keys():
        older, newer = before.defines.get(symbol, set()), after.defines.get(symbol, set())
        if UNCHANGED in older or UNCHANGED in newer or older & newer or len(older) + len(newer) > 2 * _MOST_PROVIDERS:
            continue
        users_before, users_after = before.uses.get(symbol, set()), after.uses.get(symbol, set())
        # A unit that uses its own definition needs no other unit.
        if newer and not older and not users_before:
            yield from ((provider, user) for provider in newer for user in users_after - newer)
        elif older and not newer and not users_after:
            yield from ((user, provider) for provider in older for user in users_before - older)
        elif older and newer and (symbol[0] not in ("attribute", "own") or len(older) == len(newer) == 1):
            # It moved: if the newer definition is reverted, the older one must be restored.
            yield from ((arrived, left) for arrived in newer for left in older)


def _by_signatures(before: _SideFacts, after: _SideFacts) -> Iterator[tuple[Unit, Unit]]:
    changed: dict[str, list[tuple[Signature, Signature, frozenset[Unit]]]] = {}
    for key in before.signatures.keys() & after.signatures.keys():
        (older, units_before), (newer, units_after) = before.signatures[key], after.signatures[key]
        if older.takes != newer.takes and (units := units_before | units_after):
            for called in _callable_as(newer):
                changed.setdefault(called, []).append((older, newer, units))
    known = before.called | after.called
    for call, users in after.calls:
        for older, newer, headers in changed.get(_asked(call, known), ()):
            if newer.takes.accepts(call) and not older.takes.accepts(call) and _is_meant(call, older, newer, known):
                yield from ((header, user) for header in headers for user in users)
    for call, users in before.calls:
        for older, newer, headers in changed.get(_asked(call, known), ()):
            if older.takes.accepts(call) and not newer.takes.accepts(call) and _is_meant(call, older, newer, known):
                yield from ((user, header) for header in headers for user in users)


def _callable_as(signature: Signature) -> tuple[str, ...]:
    owner, _, name = signature.qualname.rpartition(".")
    if name == "__init__":
        return signature.called, "super"
    return (signature.called, "an instance") if owner else (signature.called,)  # a framework may call any method


def _asked(call: Call, known: set[str]) -> str:
    """The name that identifies the called function; a name without a definition may be a variable with an instance."""
    return call.called if call.called in known or call.called == "super" else "an instance"


def _is_meant(call: Call, older: Signature, newer: Signature, known: set[str]) -> bool:
    """Whether a call is of this function: a call of an instance or a parent must name an added or removed parameter."""
    if call.called in known and call.called != "super":
        return True
    names = {*older.takes.positional, *older.takes.keyword_only} ^ {*newer.takes.positional, *newer.takes.keyword_only}
    return not call.keywords.isdisjoint(names)


def _by_returns(before: _SideFacts, after: _SideFacts) -> Iterator[tuple[Unit, Unit]]:
    for called in before.returns.keys() & after.returns.keys():
        older = {one.size for one, _ in before.returns[called]}
        newer = {one.size for one, _ in after.returns[called]}
        if older == newer:
            continue
        leaving = {unit for one, units in before.returns[called] if one.size not in newer for unit in units}
        coming = {unit for one, units in after.returns[called] if one.size not in older for unit in units}
        # A caller that unpacks the result on one side only gets another result on the other: it moves both ways.
        callers_before, callers_after = _callers(before, called), _callers(after, called)
        for one, users in after.unpackings.get(called, ()):
            if one.size in newer - older:
                yield from ((unit, user) for unit in leaving | coming for user in users)
                yield from ((user, unit) for unit in leaving | coming for user in users & callers_before)
        for one, users in before.unpackings.get(called, ()):
            if one.size in older - newer:
                yield from ((user, unit) for unit in leaving | coming for user in users)
                yield from ((unit, user) for unit in leaving | coming for user in users & callers_after)


def _callers(facts: _SideFacts, called: str) -> frozenset[Unit]:
    return frozenset(unit for call, units in facts.calls if call.called == called for unit in units)


@define
class _SideReader:
    """Collects the facts of one side in `facts`."""

    edits: Edits
    is_newer: bool
    facts: _SideFacts
    _keys: dict[str, str] = field(factory=dict)  # dotted module name -> its path in symbols

    def read(self) -> list[tuple[Unit, Unit]]:
        """Read all Python files; returns pairs of units that share a statement and must move together."""
        texts = self._texts()
        self._keys = {module_of(path): key for key, (path, _, _) in texts.items()}
        pairs: list[tuple[Unit, Unit]] = []
        for key, (path, text, ranges) in texts.items():
            known = self.edits.facts.get(key)
            found = known[self.is_newer] if known is not None else read_facts(path, text, ranges.touches)
            if found is None or not ranges.rows:
                continue
            found = self._translated(found, path, key)
            self.facts.add(key, found, ranges)
            for first, last in found.statements:
                sharing = sorted(ranges.within(first, last))
                pairs += [pair for one, other in pairwise(sharing) for pair in ((one, other), (other, one))]
        for unit in self.edits.wholes:
            for path in self._paths(unit):
                if path.endswith(".py"):
                    self.facts.defines.setdefault(("module", module_of(path)), set()).add(unit)
        return pairs

    def _paths(self, unit: Unit) -> tuple[str, ...]:
        """The paths on this side of a unit that is not a region."""
        if unit in self.edits.homes:
            return (unit,) if self.is_newer else (self.edits.homes[unit],)
        if unit not in self.edits.wholes[unit]:  # one unit for many files, such as all compiled ones
            return ()
        here = self.edits.after if self.is_newer else self.edits.before
        return tuple(path for path in self.edits.wholes[unit] if path in here.digests)

    def _texts(self) -> dict[str, tuple[str, str, Ranges]]:
        """Map each Python file to its path on this side, its text, and the units of its lines."""
        found: dict[str, tuple[str, str, Ranges]] = {}
        for path, difference in self.edits.differences.items():
            if path.endswith(".py"):
                ranges = ranges_of(difference, is_newer=self.is_newer)
                here = path if self.is_newer else self.edits.homes.get(path, path)
                found[path] = (here, difference.after if self.is_newer else difference.before, ranges)
        files = self.edits.after if self.is_newer else self.edits.before
        for unit in self.edits.wholes:
            for path in self._paths(unit):
                if path.endswith(".py") and path not in found and unit not in self.edits.differences:
                    text = (files.read(path) or b"").decode(errors="replace")
                    found[path] = (path, text, Ranges(((1, len(text) + 1, unit),)))
        return found

    def _translated(self, facts: Facts, path: str, key: str) -> Facts:
        """Give symbols the same names on both sides; an import from a module becomes a name in it, or a submodule."""

        def named(symbol: Symbol) -> Symbol:
            if symbol[0] == "taken":
                _, module, name = symbol
                below = f"{module}.{name}"
                if below in self._keys or module not in self._keys:
                    return ("module", below)
                return ("name", self._keys[module], name)
            return (symbol[0], key, *symbol[2:]) if len(symbol) > 2 and symbol[1] == path else symbol

        return evolve(
            facts,
            defines=[(named(symbol), line) for symbol, line in facts.defines],
            uses=[(named(symbol), line) for symbol, line in facts.uses],
        )
