"""Which edits belong together: those that can't be reverted or added unless others are too. Pure.

Each tie is an implication: "if this edit is reverted, that one must be too". Reversed, it says what an edit needs to be
added to the older release, so one graph serves both directions. Ties come from imports between the changed files. What
a set lacks within a file is read from its mixed text: a syntax error, or a name that nothing defines. A function that
returns more or fewer values is tied to the lines that take them apart: half of that may pass by accident. A call that
passes a parameter by name is tied to a definition that has it only on one side, and a line with the name of a builtin
to what binds it only on one side. A failed run may tell of further ties.
"""

from __future__ import annotations

import builtins
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from harness.culprit.edits import UNCHANGED, WORD, Edits, Ranges, Unit, ranges_of
from harness.culprit.mentions import Place
from harness.culprit.regions import defines
from harness.culprit.syntax import Uses, names_in, outline_of
from harness.environment.workspace import module_of
from harness.model import Mixture, StackFrame

_MOST_PROVIDERS = 4
_MOST_REPAIRS = 12
_MOST_CHECKED = 6  # with more partly reverted files than this, undefined names are not checked
_MOST_REPAIRED = 40  # a part that needs more others is not tried alone
_MOST_ALONG = 8  # a part tied to more than that is tried with what its files can't lack


@frozen
class Ties:
    """The ties between units: `needs` maps a unit to those that must be reverted with it."""

    needs: Mapping[Unit, frozenset[Unit]] = field(factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[Unit, Unit]]) -> Ties:
        """Make ties from pairs "the first needs the second"."""
        needs: dict[Unit, set[Unit]] = {}
        for unit, other in pairs:
            if unit != other:
                needs.setdefault(unit, set()).add(other)
        return cls({unit: frozenset(others) for unit, others in needs.items()})

    def and_also(self, pairs: Iterable[tuple[Unit, Unit]]) -> Ties:
        """These ties and further pairs."""
        return Ties.of((*self.pairs, *pairs))

    @property
    def pairs(self) -> Iterator[tuple[Unit, Unit]]:
        """The pairs that the ties were made from."""
        return ((unit, other) for unit, others in self.needs.items() for other in others)

    def reversed(self) -> Ties:
        """The same ties for advancing: "if that edit is advanced, this one must be too"."""
        return Ties.of((other, unit) for unit, other in self.pairs)

    def closed(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """These units, and everything that they need, directly or indirectly."""
        closure = set(units)
        border = list(closure)
        while border:
            needed = self.needs.get(border.pop(), frozenset()) - closure
            closure |= needed
            border.extend(needed)
        return frozenset(closure)


@define
class Consistency:
    """The edits between two sides and their ties, and those that failed runs have taught (`learned`)."""

    edits: Edits
    ties: Ties
    learned: Ties = field(factory=Ties)
    _known: dict[tuple[bool, bool, frozenset[Unit]], frozenset[Unit]] = field(factory=dict)

    def reverted(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be reverted with them."""
        return self._complete(frozenset(units), reverting=True)

    def advanced(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be advanced with them."""
        return self._complete(frozenset(units), reverting=False)

    def reverted_alone(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and what must be reverted with them; if that is too much, only what they can't lack.

        Names tie what only looks alike, and what is tied to everything could never be tried.
        """
        return self._alone(frozenset(units), reverting=True)

    def advanced_alone(self, units: Collection[Unit]) -> frozenset[Unit]:
        """The same for advancing."""
        return self._alone(frozenset(units), reverting=False)

    def learn(self, moved: Collection[Unit], names: Mapping[str, Place], *, reverting: bool) -> bool:
        """Tie what a failed mixture lacks; returns whether any tie is new.

        `moved` are the units that were reverted or advanced, `names` those in the message of its failure, with the
        place that lacks each. A name that one side defines and the other does not comes with the unit that defines it.
        """
        pairs: set[tuple[Unit, Unit]] = set()
        units = frozenset(moved)
        old = units if reverting else self.edits.all - units
        for name, (file, line) in names.items():
            tied = set(_by_local(self.edits, units, name, self.edits.around(file, line, old))) if line else set()
            tied = tied or set(_by_failure(self.edits, units, name, file, reverting=reverting))
            # A file may import the name from another one with a star.
            pairs |= tied or set(_by_failure(self.edits, units, name, "", reverting=reverting))
        return self._learned(pairs, reverting=reverting)

    def learn_function(self, moved: Collection[Unit], core: Collection[Unit], failed: Sequence[StackFrame]) -> bool:
        """Tie the units in `core` to the innermost function of a traceback with units that were not advanced.

        A failed mixture may have passed it what only its newer code expects. Returns whether any tie is new.
        """
        for frame in reversed(failed):
            own = self.edits.around(frame.file, frame.line, self.edits.all - frozenset(moved)) - frozenset(moved)
            if own:
                pairs = itertools.product(core, own) if len(own) <= _MOST_ALONG else ()
                return self._learned(pairs, reverting=False)
        return False

    def _learned(self, pairs: Iterable[tuple[Unit, Unit]], *, reverting: bool) -> bool:
        wider = self.learned.and_also((unit, other) if reverting else (other, unit) for unit, other in pairs)
        if wider == self.learned:
            return False
        self.learned = wider
        self._known.clear()
        return True

    def _alone(self, units: frozenset[Unit], *, reverting: bool) -> frozenset[Unit]:
        tied = self._tied(units, reverting=reverting)
        if len(tied) <= len(units) + _MOST_ALONG:
            tied = self._complete(units, reverting=reverting)
            if len(tied) <= len(units) + _MOST_ALONG:
                return tied
        return self._complete(units, reverting=reverting, alone=True)

    def _tied(self, units: frozenset[Unit], *, reverting: bool, alone: bool = False) -> frozenset[Unit]:
        """Units with all that they are tied to; `alone`: by failed runs only."""
        ties = self.learned if alone else self.ties.and_also(self.learned.pairs) if self.learned.needs else self.ties
        return (ties if reverting else ties.reversed()).closed(units)

    def mixture(self, old: Collection[Unit], label: str, *, newer_base: bool) -> Mixture:
        """The mixture with the units in `old` from the older side and the others from the newer one.

        It is built from the environment of the newer side with `newer_base`, else from that of the older side.
        """
        return Mixture(self.edits.files(old, newer_base=newer_base), label, self._flaw(frozenset(old)))

    def _positions(self, path: str, old: frozenset[int]) -> list[tuple[int, int, int]]:
        """The first and last line of each region in the mixed text, counted from 1, and its number."""
        positions, shift = [], 0
        for number, (a, b, c, d) in enumerate(self.edits.differences[path].blocks):
            length = b - a if number in old else d - c
            positions.append((c + 1 + shift, c + length + shift, number))
            shift += length - (d - c)
        return positions

    def _complete(self, units: frozenset[Unit], *, reverting: bool, alone: bool = False) -> frozenset[Unit]:
        """Units with all that they are tied to, and with what invalid Python and undefined names need.

        `alone`: without what only their names tie; if even that is very much, the units as they are: their mixture is
        known to be flawed, and not run.
        """
        key = (reverting, alone, units)
        if key not in self._known:
            moved = self._tied(units, reverting=reverting, alone=alone)
            whole: dict[str, tuple[frozenset[int], bool]] = {}
            for _ in range(_MOST_REPAIRS):
                missing = self._missing(moved, whole, reverting=reverting)
                if missing <= moved:
                    break
                moved = self._tied(moved | missing, reverting=reverting, alone=alone)
                if alone and len(moved) > len(units) + _MOST_REPAIRED:
                    moved = units
                    break
            self._known[key] = moved
        return self._known[key]

    def _missing(
        self, moved: frozenset[Unit], whole: dict[str, tuple[frozenset[int], bool]], *, reverting: bool
    ) -> frozenset[Unit]:
        """Units that must move too because a mixed file is invalid Python or has undefined names.

        `whole` gets the files that lack nothing, with their moved regions and whether names were checked: parsing
        hundreds of files again takes longer than a run.
        """
        missing: set[Unit] = set()
        partly = self._partly(moved)
        are_names_checked = len(partly) <= _MOST_CHECKED
        for path, regions in partly.items():
            if whole.get(path) == (regions, are_names_checked):
                continue
            difference = self.edits.differences[path]
            numbers = regions if reverting else frozenset(range(len(difference.blocks))) - regions
            broken = names_in(difference.mixed(numbers)).error if path.endswith(".py") else None
            if broken is not None:
                others = [
                    (min(abs(broken - first), abs(broken - last)), number)
                    for first, last, number in self._positions(path, numbers)
                    if number not in regions
                ]
                missing |= {f"{path}#{number}" for _, number in sorted(others)[:1]}
            elif are_names_checked and difference.flaws(numbers):
                lacking = difference.lacking(numbers) if reverting else difference.flipped().lacking(regions)
                missing |= {f"{path}#{number}" for number in lacking}
            else:
                whole[path] = regions, are_names_checked
        return frozenset(missing)

    def _partly(self, units: frozenset[Unit]) -> dict[str, frozenset[int]]:
        """The numbers of the regions among these units, by file, of files with other regions."""
        by_file = self.edits.by_file(units)
        return {path: own for path, own in by_file.items() if len(own) < len(self.edits.differences[path].blocks)}

    def _flaw(self, old: frozenset[Unit]) -> str:
        partly = self._partly(old)
        if len(partly) > _MOST_CHECKED:
            return ""
        undefined = sorted({name for path, own in partly.items() for name in self.edits.differences[path].flaws(own)})
        return f"the mixture leaves names undefined: {', '.join(undefined)}" if undefined else ""


Symbol = tuple[str, str]  # a module by the path of its newer file, and a name in it; "" is the module itself


def ties_of(edits: Edits, idle: Collection[Unit] = ()) -> Ties:
    """The ties between edits, from what the changed files use of each other; `idle` units use nothing."""
    before, after = (_Names.of(edits, idle, is_newer=is_newer) for is_newer in (False, True))
    tied = (_by_names(before, after), _by_returns(before, after), _by_parameters(before, after), _by_builtins(edits))
    return Ties.of(itertools.chain.from_iterable(tied))


@define
class _Names:
    """The units that define and import names on one side. Unchanged lines belong to the unit `UNCHANGED`.

    `returns`, `unpacked` and `calls` have the units that return values from a function, take its result apart, and call
    it, by its name; the first two by the number of values, too. `accepts` and `passes` have the units that declare a
    parameter and that pass it by name; the parameter "**" takes any name.
    """

    defines: dict[Symbol, set[Unit]] = field(factory=dict)
    uses: dict[Symbol, set[Unit]] = field(factory=dict)
    returns: dict[str, dict[int, set[Unit]]] = field(factory=dict)
    unpacked: dict[str, dict[int, set[Unit]]] = field(factory=dict)
    calls: dict[str, set[Unit]] = field(factory=dict)
    accepts: dict[str, list[dict[str, set[Unit]]]] = field(factory=dict)
    passes: dict[str, dict[str, set[Unit]]] = field(factory=dict)

    @classmethod
    def of(cls, edits: Edits, idle: Collection[Unit], *, is_newer: bool) -> _Names:
        """Read all changed Python files of a side."""
        names = cls()
        texts = list(_texts(edits, is_newer=is_newer))
        modules = {module_of(path): key for key, path, _, _ in texts}
        for key, path, text, ranges in texts:
            outline = outline_of(text)
            for name, line in outline.bound:
                names.defines.setdefault((key, name), set()).add(ranges.at(line))
            if key in edits.wholes:
                names.defines.setdefault((key, ""), set()).add(key)
            else:
                names._read(outline.uses, ranges, idle)
            for statement in outline.imports:
                for _, origin, line in statement.names:
                    unit = ranges.at(line)
                    for symbol in _taken(origin, path, modules) if unit != UNCHANGED and unit not in idle else ():
                        names.uses.setdefault(symbol, set()).add(unit)
        return names

    def _read(self, uses: Uses, ranges: Ranges, idle: Collection[Unit]) -> None:
        """Read what functions accept and return, what statements take apart, and what calls pass."""
        for signature in uses.accepted:
            declared = {name: set(ranges.within(*span)) for name, span in signature.parameters}
            anything: dict[str, set[Unit]] = {"**": set()} if signature.takes_any else {}
            self.accepts.setdefault(signature.name, []).append(declared | anything)
        for table, rows in ((self.returns, uses.returned), (self.unpacked, uses.unpacked)):
            for name, size, span in rows:
                # Unchanged lines count, too: they say which numbers of values are returned on a side.
                table.setdefault(name, {}).setdefault(size, set()).update(ranges.within(*span))
        for call in uses.calls:
            if units := ranges.within(*call.span):
                self.calls.setdefault(call.name, set()).update(units)
            for name, span in call.keywords:
                if units := ranges.within(*span).difference(idle):
                    self.passes.setdefault(call.name, {}).setdefault(name, set()).update(units)


def _by_parameters(before: _Names, after: _Names) -> Iterator[tuple[Unit, Unit]]:
    """A call that passes a parameter by name needs a definition that has it."""
    for called in before.accepts.keys() & after.accepts.keys():
        older, newer = before.accepts[called], after.accepts[called]
        if called.startswith("__") or max(len(older), len(newer)) > _MOST_PROVIDERS:
            continue  # too common a name to tell whose it is
        for having, lacking, passes, is_newer in (
            (older, newer, before.passes.get(called, {}), False),
            (newer, older, after.passes.get(called, {}), True),
        ):
            known = {name for definition in lacking for name in definition}
            for name in passes.keys() - known if "**" not in known else ():
                for provider in {unit for definition in having for unit in definition.get(name, ())}:
                    yield from ((provider, user) if is_newer else (user, provider) for user in passes[name])


def _by_builtins(edits: Edits) -> Iterator[tuple[Unit, Unit]]:
    """A newer line with a name of a builtin needs what gives it its meaning in its file: the name is never missing."""
    for path, difference in edits.differences.items():
        texts = (difference.before, difference.after) if path.endswith(".py") else ()
        binders: dict[str, set[Unit]] = {}
        for text, is_newer in zip(texts, (False, True), strict=False):
            ranges = ranges_of(difference, is_newer=is_newer)
            for name, line in outline_of(text).bound:
                if name in vars(builtins):
                    binders.setdefault(name, set()).add(ranges.at(line))
        changed = {name: units for name, units in binders.items() if UNCHANGED not in units}
        for unit in (f"{path}#{number}" for number in range(len(difference.blocks)) if changed):
            used = frozenset(WORD.findall("".join(edits.lines(unit)[1])))
            yield from ((binder, unit) for name in used & changed.keys() for binder in changed[name])


def _by_returns(before: _Names, after: _Names) -> Iterator[tuple[Unit, Unit]]:
    for called in before.returns.keys() & after.returns.keys():
        older, newer = before.returns[called], after.returns[called]
        sides = (before.unpacked.get(called, {}), older), (after.unpacked.get(called, {}), newer)
        if any(1 in sizes and taken.keys() - sizes.keys() for taken, sizes in sides):
            continue  # what is returned is a variable that holds several values
        changed = {
            unit
            for having, lacking in ((older, newer), (newer, older))
            for size in having.keys() - lacking.keys()
            for unit in having[size]
        }
        for taken, sizes, callers, is_newer in (
            (after.unpacked, newer.keys() - older.keys(), before.calls, True),
            (before.unpacked, older.keys() - newer.keys(), after.calls, False),
        ):
            for user in {unit for size in sizes for unit in taken.get(called, {}).get(size, ())}:
                for unit in changed:
                    yield (unit, user) if is_newer else (user, unit)
                    if user in callers.get(called, ()):  # it takes another result on the other side: both ways
                        yield (user, unit) if is_newer else (unit, user)


def _by_local(
    edits: Edits, moved: Collection[Unit], name: str, inside: Collection[Unit]
) -> Iterator[tuple[Unit, Unit]]:
    """What a mixture lacks that failed because a local variable is missing in a function, with the regions `inside`."""
    using = re.compile(rf"\b{name}\b")
    others = [unit for unit in inside if unit not in moved and any(map(using.search, map("".join, edits.lines(unit))))]
    yield from itertools.product([unit for unit in inside if unit in moved], others)


def _by_failure(
    edits: Edits, moved: frozenset[Unit], name: str, file: str, *, reverting: bool
) -> Iterator[tuple[Unit, Unit]]:
    """What a mixture that failed because a name is missing lacks: pairs "the first, which was moved, needs the second".

    Moving the second would define the name, where lines of the first use it. Else the first has taken the name away,
    and lines of the second still use it. `file` lacks the name, "" is any.
    """
    texts = {
        f"{path}#{number}": pair if reverting else pair[::-1]
        for path, difference in edits.differences.items()
        if (not file or file in (path, edits.homes.get(path)))
        and (name in difference.before or name in difference.after)
        for number, pair in enumerate(difference.texts)
    }
    bring = {unit for unit, (come, gone) in texts.items() if defines(come, name) and not defines(gone, name)}
    take = {unit for unit, (come, gone) in texts.items() if defines(gone, name) and not defines(come, name)}
    using = re.compile(rf"(?<![\"'])\b{name}\b")  # a quoted annotation is not evaluated
    if providers := bring - moved:
        users = {unit for unit in moved & texts.keys() if using.search(texts[unit][0])} or moved
        if len(providers) <= _MOST_PROVIDERS and len(users) <= _MOST_ALONG:
            yield from itertools.product(users, providers)
        return
    keep = {unit for unit in texts.keys() - moved if using.search(texts[unit][1]) and not using.search(texts[unit][0])}
    if len(keep) <= _MOST_ALONG:
        yield from itertools.product(take & moved, keep)


def _texts(edits: Edits, *, is_newer: bool) -> Iterator[tuple[Unit, str, str, Ranges]]:
    """The changed Python files of a side: the unit of the file, its path there, its text, the units of its lines."""
    for key, difference in edits.differences.items():
        if key.endswith(".py"):
            path = key if is_newer else edits.homes.get(key, key)
            text = difference.after if is_newer else difference.before
            yield key, path, text, ranges_of(difference, is_newer=is_newer)
    files = edits.after if is_newer else edits.before
    for key, paths in edits.wholes.items():
        path = paths[-1] if is_newer else paths[0]
        if key.endswith(".py") and key not in edits.differences and path in files.digests:
            text = (files.read(path) or b"").decode(errors="replace")
            yield key, path, text, Ranges(((1, len(text) + 1, key),))


def _taken(origin: str, path: str, modules: Mapping[str, Unit]) -> Iterator[Symbol]:
    """What an import in the file at `path` needs of the changed files; `origin` is that of a name in an `Import`."""
    module, _, name = origin.partition(":")
    level = len(module) - len(module.lstrip("."))
    if level:
        package = path.split("/")[:-1]
        module = ".".join([*package[: len(package) - level + 1], *([module[level:]] if module[level:] else [])])
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        if (key := modules.get(".".join(parts[:end]))) is not None:
            yield key, ""
    if name and (key := modules.get(f"{module}.{name}")) is not None:
        yield key, ""
    elif name and (key := modules.get(module)) is not None:
        yield key, name


def _by_names(before: _Names, after: _Names) -> Iterator[tuple[Unit, Unit]]:
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
        elif older and newer:
            # It moved within the file: if the newer definition is reverted, the older one must be restored.
            yield from ((arrived, left) for arrived in newer for left in older)
