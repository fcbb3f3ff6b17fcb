"""Keeps mixtures consistent: finds what must move with some edits, from ties, from syntax, and from skipped runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from attrs import define, field

from harness.culprit.edits import Edits
from harness.culprit.names import error_line
from harness.culprit.ties import Ties, Unit
from harness.model import Mixture, Observation

_MOST_REPAIRS = 12
_MOST_CHECKED = 6  # with more partly reverted files than this, undefined names are not checked
_MOST_TAUGHT = 4

_QUOTED = re.compile(r"['\"`]([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)['\"`]")
_CALLED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(\)")
_ASKED_OF = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_UNPACK = "values to unpack"


@define
class Consistency:
    """The edits between two sides and their ties; `learn` adds ties, and `lessons` counts how often it added any."""

    edits: Edits
    ties: Ties
    lessons: int = 0
    _known: dict[tuple[bool, frozenset[Unit]], frozenset[Unit]] = field(factory=dict)

    def reverted(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be reverted with them."""
        return self._complete(frozenset(units), reverting=True)

    def advanced(self, units: Collection[Unit]) -> frozenset[Unit]:
        """These units, and all that must be advanced with them."""
        return self._complete(frozenset(units), reverting=False)

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
        """The ties that a skipped run suggests: by its message and last frame, or else by partly moved functions.

        `moved` are the units that were reverted (`reverting`) or advanced.
        """
        pairs = self._named(moved, observation, reverting=reverting) or self._cut_functions(moved)
        return pairs if reverting else [(other, own) for own, other in pairs]

    def raised_in(self, moved: frozenset[Unit], observation: Observation, *, reverting: bool) -> Unit | None:
        """The moved edit whose lines raised the exception of a skipped run; None if other lines did."""
        frames = observation.exception.frames if observation.exception is not None else ()
        unit = self._at(frames[-1].file, frames[-1].line, moved, reverting=reverting) if frames else None
        return unit if unit in moved else None

    def _cut_functions(self, moved: frozenset[Unit]) -> list[tuple[Unit, Unit]]:
        """Pairs of a moved edit and an edit of the same function that was not moved.

        A failure that points to no edit usually comes from a partly moved function, such as a loop that never runs.
        """
        pairs: list[tuple[Unit, Unit]] = []
        for path in {self.edits.path_of(unit) for unit in moved if self.edits.is_region(unit)}:
            difference = self.edits.differences[path]
            for function, numbers in difference.groups().items():
                units = [f"{path}#{number}" for number in numbers]
                own = [unit for unit in units if unit in moved]
                if function and difference.is_function(function) and len(own) < len(units):
                    pairs += [(one, other) for one in own for other in units if other not in moved]
        return sorted(pairs)

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
        words -= {"self", "forward", "__init__", "object", "module"}
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
            ties = self.ties if reverting else self.ties.reversed()
            moved = ties.closed(units)
            for _ in range(_MOST_REPAIRS):
                missing = self._missing(moved, reverting=reverting)
                if missing <= moved:
                    break
                moved = ties.closed(moved | missing)
            self._known[key] = moved
        return self._known[key]

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
