"""Estimates how likely each package and each edit is the culprit: from runs, exceptions, names and the API. Pure.

The weights only decide how soon the culprit is found, never what it is: no edit is left out because of its weight. A
weight is a product of factors, and each factor can save a few bisection steps.
"""

from __future__ import annotations

import contextlib
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from harness.culprit.api_evidence import api_evidence
from harness.culprit.edits import Edits, Unit, Units
from harness.culprit.mentions import names_of
from harness.culprit.regions import used_names
from harness.culprit.sides import METADATA, Sides
from harness.model import Observation, RaisedException, StackFrame, Trace, Verdict
from harness.model.culprit import Evidence

if TYPE_CHECKING:
    from harness.culprit.sides import Exchange


_QUIET = 0.02  # comments, docstrings, layout, imports
_RAN, _CALLED, _NEVER_CALLED, _AT_IMPORT, _UNKNOWN = 12.0, 3.0, 0.4, 2.0, 3.0
_FEW_UNITS = 100
_LATE = 2.0  # without this and _DEFINES_USED, planted_lines.py takes a seventh more runs
_RAISED_HERE, _IN_TRACEBACK = 20.0, 8.0
_POINTED_TO = 20.0
_DEFINES_USED = 2.0  # a file that defines a name used in the repro
_EXTRA_CALLS = 50.0  # a function that makes all calls that only the slow side has
_SPOKEN_OF = 16.0  # a region with a word that the failure says and no other region has
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_PROSE = ("are", "does", "expected", "got", "has", "have", "instead", "must", "self", "should", "that", "the", "this")
_DEFINED = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)

_FUNCTION, _FILE = 0.5, 0.1  # the likelihood of a whole, relative to its likeliest region
_BEFORE_GROUPS = 8  # likely parts that come before the groups of files
_MANY_PARTS = 40  # with more than that, whole folders are tried before the rest, and whole files before their lines
_SEVERAL, _AT_A_TIME = 4, 16  # parts of a file that one run may clear
_MOST_FOLDERS = 12
LEAST = 0.1  # regions below are comments, layout and imports

_NEW_MESSAGE, _CHANGED_PARAMETERS, _REMOVED = "new-message", "changed-parameters", "removed-name"


@frozen
class Pointers:
    """Suspect lines of the older and newer release (file, and line from 1), and functions by their dotted names.

    `gone_from_stubs` are the removed names that the older release declares in a stub only.
    """

    older: frozenset[tuple[str, int]] = frozenset()
    newer: frozenset[tuple[str, int]] = frozenset()
    functions: frozenset[str] = frozenset()
    gone_from_stubs: tuple[Evidence, ...] = ()

    @classmethod
    def of(cls, exchange: Exchange, sides: Sides) -> Pointers:
        """Read the sources of both sides for evidence on the exception of the failing side."""
        older: set[tuple[str, int]] = set()
        newer: set[tuple[str, int]] = set()
        functions: set[str] = set()
        gone: list[Evidence] = []
        for change in exchange.package.packages:
            places = (change.before or "", exchange.before.packages), (change.after or "", exchange.after.packages)
            with contextlib.suppress(OSError):  # the environment was removed in the meantime
                for evidence in api_evidence(failure_of(sides), change.name, older=places[0], newer=places[1]):
                    (newer if evidence.kind == _NEW_MESSAGE else older).add((evidence.file, evidence.line))
                    if evidence.kind == _CHANGED_PARAMETERS:
                        functions.add(evidence.name)
                    if evidence.kind == _REMOVED and evidence.file.endswith(".pyi"):
                        gone.append(evidence)
        return cls(frozenset(older), frozenset(newer), frozenset(functions), tuple(gone))

    @property
    def files(self) -> frozenset[str]:
        """The files of the lines, of either release."""
        return frozenset(file for file, _ in self.older | self.newer)

    def point_to(self, edits: Edits, region: Unit) -> bool:
        """Whether the pointers name a line of a region, or the function around it."""
        path, function = edits.path_of(region), edits.function(region)
        home, (a, b, c, d) = edits.homes.get(path, path), edits.block(region)
        if any(file == home and a < line <= b for file, line in self.older):
            return True
        if any(file == path and c < line <= d for file, line in self.newer):
            return True
        return bool(function) and any(name.endswith(f".{function}") for name in self.functions)


@frozen
class Clues:
    """What is known before the search: both sides, the source of the repro, pointers, and traces if available."""

    sides: Sides
    source: str
    before: Trace | None = None
    after: Trace | None = None
    pointers: Pointers = field(factory=Pointers)

    def weights(self, edits: Edits) -> dict[Unit, float]:
        """The likelihood of each edit, relative to a changed line without any evidence."""
        frames = _frames(self.sides)
        quiet = edits.quiet()
        last = _last_rank(self.before), _last_rank(self.after)
        wanted = used_names(self.source)
        defining = {
            path
            for path, difference in edits.differences.items()
            if not wanted.isdisjoint(_DEFINED.findall(difference.after))
        }
        spoken_of = _rarity(edits, _words_of(self.sides))
        named = edits.defining(names_of(failure_of(self.sides)))
        scale = _Scale(self, edits, frames, last, frozenset(defining), spoken_of, self._extra_calls(edits), named)
        return {unit: scale.weight(unit) * (_QUIET if unit in quiet else 1.0) for unit in sorted(edits.all)}

    def _extra_calls(self, edits: Edits) -> dict[tuple[str, str], float]:
        """The share of each function, by file and name, in the calls that only the failing side has.

        A function that is called more often makes more calls, too. Only those count that it makes more at each call.
        """
        if self.before is None or self.after is None:
            return {}
        older = {edits.homes.get(path, path): path for path in edits.differences}
        counts = [
            {(path, name): row for file, rows in trace.counts.items() for name, row in rows.items()
             if (path := names.get(file)) is not None}
            for trace, names in ((self.before, older), (self.after, {path: path for path in edits.differences}))
        ]  # fmt: skip
        slow, quick = counts if self.sides.before.verdict is Verdict.BAD else counts[::-1]
        extra: dict[tuple[str, str], float] = {}
        for place, (calls, made) in slow.items():
            was_called, had_made = quick.get(place, (0, 0))
            extra[place] = max(0.0, made - calls * had_made / max(was_called, 1))
        total = sum(extra.values())
        return {place: number / total for place, number in extra.items() if number}

    def idle(self, edits: Edits) -> frozenset[Unit]:
        """The regions in functions that neither side called; none of files that were not traced on both sides."""
        before, after = self.before, self.after
        if before is None or after is None:
            return frozenset()
        units = set()
        for unit in filter(edits.is_region, edits.all):
            path, function = edits.path_of(unit), edits.function(unit)
            home = edits.homes.get(path, path)
            is_traced = home in before.lines and path in after.lines
            if not is_traced or not function or not edits.differences[path].is_function(function):
                continue
            if function not in before.called.get(home, {}) and function not in after.called.get(path, {}):
                units.add(unit)
        return frozenset(units)


@frozen
class _Scale:
    clues: Clues
    edits: Edits
    frames: tuple[StackFrame, ...]
    last: tuple[int, int]
    defining: frozenset[str]
    spoken_of: Mapping[Unit, float]
    extra_calls: Mapping[tuple[str, str], float]
    named: frozenset[Unit]

    def weight(self, unit: Unit) -> float:
        if not self.edits.is_region(unit):
            return self._of_whole(unit)
        path, function = self.edits.path_of(unit), self.edits.function(unit)
        a, b, c, d = self.edits.block(unit)
        weight = self._by_run(path, function, (a + 1, b), (c + 1, d))
        if weight > _NEVER_CALLED:
            weight *= 1 + _SPOKEN_OF * self.spoken_of.get(unit, 0.0)
        weight *= self._by_frames(path, function, (a + 1, b), (c + 1, d))
        if unit in self.named or self.clues.pointers.point_to(self.edits, unit):
            weight *= _POINTED_TO
        if path in self.defining:
            weight *= _DEFINES_USED
        weight *= 1 + _EXTRA_CALLS * self.extra_calls.get((path, function), 0.0)
        # Without this and the depth of frames, `harness bisect transformers` tries 22 sets for its lines instead of 2.
        return weight * (1 + 0.2 * math.log2(1 + b - a + d - c))

    def _of_whole(self, unit: Unit) -> float:
        if unit.startswith(METADATA) or unit not in self.edits.wholes[unit]:
            return 0.3
        if unit in self.edits.homes:
            return 0.5
        in_traceback = any(frame.file in self.edits.wholes[unit] for frame in self.frames)
        pointed_to = self.clues.pointers.files & frozenset(self.edits.wholes[unit])
        return _UNKNOWN * (_IN_TRACEBACK if in_traceback else 1.0) * (_POINTED_TO**2 if pointed_to else 1.0)

    def _by_run(self, path: str, function: str, old: tuple[int, int], new: tuple[int, int]) -> float:
        before, after = self.clues.before, self.clues.after
        if before is None and after is None:
            return _UNKNOWN
        home = self.edits.homes.get(path, path)
        ran = _any_within(before.lines.get(home, ()) if before else (), old)
        ran = ran or _any_within(after.lines.get(path, ()) if after else (), new)
        called = [
            trace.called[file][function] / (last or 1)
            for trace, file, last in ((before, home, self.last[0]), (after, path, self.last[1]))
            if trace is not None and function in trace.called.get(file, {})
        ]
        if not function or not self.edits.differences[path].is_function(function):
            return _AT_IMPORT
        # Code that runs at import is called first, and code that fails is called last.
        late = max(called, default=0.0)
        return (_RAN if ran else _CALLED if called else _NEVER_CALLED) * (1 + _LATE * late)

    def _by_frames(self, path: str, function: str, old: tuple[int, int], new: tuple[int, int]) -> float:
        newer_failed = self.clues.sides.after.observation.exception is not None
        lines = new if newer_failed else old
        name = function.rpartition(".")[2]
        best = 1.0
        for depth, frame in enumerate(self.frames):
            if frame.file == path or frame.file == self.edits.homes.get(path):
                if lines[0] <= frame.line <= lines[1]:
                    best = max(best, _RAISED_HERE / (1 + 0.2 * depth))
                elif frame.function == name:
                    best = max(best, _IN_TRACEBACK / (1 + 0.2 * depth))
        return best


def _words_of(sides: Sides) -> frozenset[str]:
    """The words of the failure, if the user's own code raised it, and of the user's own lines in its traceback.

    What a package raises speaks of much else.
    """
    raised = failure_of(sides)
    chain = [
        exception
        for exception in (raised.chain() if raised is not None else ())
        if exception.frames and not exception.frames[-1].package
    ]
    texts = [exception.message for exception in chain] + [
        frame.text for exception in chain for frame in exception.frames if not frame.package
    ]
    return frozenset(_WORD.findall("\n".join(texts)))


def _rarity(edits: Edits, spoken: frozenset[str]) -> dict[Unit, float]:
    """How rare, from 0 to 1, the rarest of these words is that a region has in its lines.

    The measure is the square of the inverse document frequency (Sparck Jones, 1972), which also localises bugs from
    reports (Zhou, Zhang and Lo, 2012).
    """
    wanted = spoken.difference(keyword.kwlist, _PROSE)
    regions = [unit for unit in edits.all if edits.is_region(unit)]
    words = {unit: wanted & edits.words(unit) for unit in regions} if wanted else {}
    counts = Counter(word for own in words.values() for word in own)
    most = math.log(max(len(regions), 2))
    rarest = {unit: min(counts[word] for word in own) for unit, own in words.items() if own}
    return {unit: (1 - math.log(count) / most) ** 2 for unit, count in rarest.items()}


def _last_rank(trace: Trace | None) -> int:
    """The highest rank of a call in a trace, 0 if there is none."""
    called = trace.called.values() if trace is not None else ()
    return max((rank for functions in called for rank in functions.values()), default=0)


def _any_within(lines: Iterable[int], ends: tuple[int, int]) -> bool:
    return any(ends[0] <= line <= ends[1] for line in lines)


def parts_of(edits: Edits, weights: Mapping[Unit, float]) -> tuple[Units, ...]:
    """The sets of units to try alone, the likeliest first; the unlikeliest units only within their files."""
    scores: dict[Units, float] = {}
    wholes: dict[tuple[str, str], set[Unit]] = {}
    for unit, weight in weights.items():
        if not edits.is_region(unit):
            scores[frozenset({unit})] = weight
            if unit in edits.wholes[unit]:
                wholes[unit, ""] = {unit}
            continue
        path, function = edits.path_of(unit), edits.function(unit)
        wholes.setdefault((path, ""), set()).add(unit)
        if function and edits.differences[path].is_function(function):
            wholes.setdefault((path, function), set()).add(unit)
        if weight >= LEAST:
            scores[frozenset({unit})] = weight
    for (_, function), units in wholes.items():
        share = _FUNCTION if function else _FILE
        likeliest = max(weights[unit] for unit in units)
        if likeliest >= LEAST:
            scores.setdefault(frozenset(units), share * likeliest)
    order = sorted(scores, key=lambda part: -scores[part])
    # One run each clears all files that the run did not import, all compiled ones, and those of a folder.
    groups = [part for part in order if any(unit in edits.wholes and unit not in edits.wholes[unit] for unit in part)]
    singles = [part for part in order if part not in groups]
    if len(singles) > _MANY_PARTS:
        groups += _folders(wholes, scores)
        late = _together_first(edits, singles[_MANY_PARTS:], wholes)
        singles = list(dict.fromkeys((*singles[:_MANY_PARTS], *late)))
    return (*singles[:_BEFORE_GROUPS], *groups, *singles[_BEFORE_GROUPS:])


def _together_first(
    edits: Edits, parts: Sequence[Units], wholes: Mapping[tuple[str, str], set[Unit]]
) -> Iterator[Units]:
    """Parts in their order, but before the first of several in a file, the whole file and some of them at a time.

    One run may clear them all. Where a whole file can't run, most of it often can.
    """
    inside: dict[str, list[Units]] = {}
    for part in parts:
        inside.setdefault(edits.path_of(next(iter(part))), []).append(part)
    for part in parts:
        path = edits.path_of(next(iter(part)))
        whole = frozenset(wholes.get((path, ""), ()))
        beside = [smaller for smaller in inside.pop(path, []) if smaller < whole]
        if len(beside) >= _SEVERAL:
            yield whole
            for at in range(0, len(beside), _AT_A_TIME):
                yield frozenset[Unit]().union(*beside[at : at + _AT_A_TIME])
        yield part


def _folders(wholes: Mapping[tuple[str, str], set[Unit]], scores: Mapping[Units, float]) -> list[Units]:
    """All regions of the files in each folder, those with the most parts to try alone first."""
    folders: dict[str, set[Unit]] = {}
    counts: Counter[str] = Counter()
    for (path, function), units in wholes.items():
        if not function:
            folder = path.rpartition("/")[0]
            folders.setdefault(folder, set()).update(units)
            counts[folder] += sum(frozenset({unit}) in scores for unit in units)
    several = [folder for folder, count in counts.most_common(_MOST_FOLDERS) if count > 1]
    return [frozenset(folders[folder]) for folder in several] if len(folders) > 1 else []


def used_units(units: Mapping[Unit, tuple[str, ...]], sides: Sides) -> frozenset[Unit]:
    """The units with a file that a side used, and all metadata, which any start of an interpreter may read.

    Some runs, such as commands, don't report their files: then all units count if there are at most 100.
    """
    used = {
        path for side in (sides.before, sides.after) for files in side.observation.loaded.values() for path in files
    }
    if not used and len(units) <= _FEW_UNITS:
        return frozenset(units)
    return frozenset(unit for unit, paths in units.items() if unit.startswith(METADATA) or not used.isdisjoint(paths))


def files_to_trace(exchange: Exchange, used: frozenset[Unit]) -> frozenset[str]:
    """The used Python files to trace on both sides; empty if a trace would not help because there is only one edit."""
    if len(exchange.units) == 1 and not _has_regions(exchange):
        return frozenset()
    return frozenset(path for unit in used for path in exchange.units[unit] if path.endswith(".py"))


def _has_regions(exchange: Exchange) -> bool:
    """Whether the one file that differs has more than one region."""
    edits = Edits.of(exchange.units, exchange.before, exchange.after, exchange.units)
    return len(edits.all) > 1


def failure_of(sides: Sides) -> RaisedException | None:
    """The exception of the failing side; None if no side has one."""
    return _failing(sides).exception


def message_of(sides: Sides) -> str:
    """The messages of the exception of the failing side and of its causes; "" if no side has one."""
    raised = failure_of(sides)
    return "\n".join(exception.message for exception in raised.chain()) if raised is not None else ""


def _failing(sides: Sides) -> Observation:
    return next(
        (side.observation for side in (sides.after, sides.before) if side.observation.exception is not None),
        sides.after.observation,
    )


def _frames(sides: Sides) -> tuple[StackFrame, ...]:
    """The frames of the failing side, the innermost first; those of the causes come before those of the exception."""
    raised = failure_of(sides)
    frames = [frame for exception in (raised.chain() if raised is not None else ()) for frame in exception.frames]
    return tuple(reversed(frames))
