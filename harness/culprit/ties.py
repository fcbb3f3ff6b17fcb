"""Ties between edits: finds which of them can't be reverted unless others are reverted too. Pure.

Each tie is an implication: "if this edit is reverted, that one must be too". Reversed, it says what an edit needs to be
added to the older release, so one graph serves both directions. Its connected components are change sets, usually the
changes of one pull request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from attrs import define, evolve, field, frozen

from harness.culprit.facts import Arity, Call, Facts, Signature, Symbol

Unit = str
UNCHANGED: Unit = ""  # all lines that are equal on both sides

_MOST_PROVIDERS = 4
_INSTANCE_CALLS = ("forward", "__call__")


@frozen
class Ties:
    """The ties between units: `needs` maps a unit to those that must be reverted with it."""

    needs: Mapping[Unit, frozenset[Unit]] = field(factory=dict)

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

    def change_sets(self, units: Iterable[Unit]) -> tuple[frozenset[Unit], ...]:
        """The connected components of these units, in the order of their first units."""
        ordered = list(dict.fromkeys(units))
        inside = frozenset(ordered)
        near: dict[Unit, set[Unit]] = {}
        for one, others in self.needs.items():
            for other in others:
                near.setdefault(one, set()).add(other)
                near.setdefault(other, set()).add(one)
        found: list[frozenset[Unit]] = []
        seen: set[Unit] = set()
        for unit in ordered:
            if unit not in seen:
                group, border = {unit}, [unit]
                while border:
                    more = (near.get(border.pop(), set()) & inside) - group
                    group |= more
                    border.extend(more)
                seen |= group
                found.append(frozenset(group))
        return tuple(found)


@define
class SideFacts:
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


@frozen
class Ranges:
    """The lines of a text that belong to units: first line, last line (both from 1) and unit, in order."""

    rows: tuple[tuple[int, int, Unit], ...]
    _lasts: list[int] = field(init=False, eq=False, repr=False)

    @_lasts.default
    def _last_lines(self) -> list[int]:
        return [last for _, last, _ in self.rows]

    def touches(self, first: int, last: int) -> bool:
        """Whether any of these lines, from `first` to `last`, both included, belongs to a unit."""
        index = bisect_left(self._lasts, first)
        return index < len(self.rows) and self.rows[index][0] <= last

    def at(self, line: int) -> Unit:
        """The unit that a line belongs to, or `UNCHANGED`."""
        return next(iter(self.within(line, line)), UNCHANGED)

    def within(self, first: int, last: int) -> frozenset[Unit]:
        """The units that have any of these lines, from `first` to `last`, both included."""
        index = bisect_left(self._lasts, first)
        found = set()
        while index < len(self.rows) and self.rows[index][0] <= last:
            found.add(self.rows[index][2])
            index += 1
        return frozenset(found)


def tied(before: SideFacts, after: SideFacts) -> Iterator[tuple[Unit, Unit]]:
    """Pairs "reverting the first requires reverting the second", from the facts of both sides."""
    yield from _by_names(before, after)
    yield from _by_signatures(before, after)
    yield from _by_returns(before, after)


def _by_names(before: SideFacts, after: SideFacts) -> Iterator[tuple[Unit, Unit]]:
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


def _by_signatures(before: SideFacts, after: SideFacts) -> Iterator[tuple[Unit, Unit]]:
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
    name = signature.qualname.rpartition(".")[2]
    if name == "__init__":
        return signature.called, "super"
    return (signature.called, "an instance") if name in _INSTANCE_CALLS else (signature.called,)


def _asked(call: Call, known: set[str]) -> str:
    """The name that identifies the called function; a name without a definition may be a variable with an instance."""
    return call.called if call.called in known or call.called == "super" else "an instance"


def _is_meant(call: Call, older: Signature, newer: Signature, known: set[str]) -> bool:
    """Whether a call is of this function: a call of an instance or a parent must name an added or removed parameter."""
    if call.called in known and call.called != "super":
        return True
    names = {*older.takes.positional, *older.takes.keyword_only} ^ {*newer.takes.positional, *newer.takes.keyword_only}
    return not call.keywords.isdisjoint(names)


def _by_returns(before: SideFacts, after: SideFacts) -> Iterator[tuple[Unit, Unit]]:
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


def _callers(facts: SideFacts, called: str) -> frozenset[Unit]:
    return frozenset(unit for call, units in facts.calls if call.called == called for unit in units)
