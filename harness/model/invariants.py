"""What is the same whenever a bug shows, or never does, so that a mixture that ends otherwise is not taken for either.

A signature ignores the numbers of a message, what the run printed and measured, and which line of the user's code
failed. They are learned from runs of releases: what is random, such as an address or a time, differs between these runs
and drops out. Modelled on likely invariants (Ernst et
al., "Dynamically Discovering Likely Program Invariants to Support Program Evolution", IEEE TSE 2001).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from attrs import field, frozen

from harness.model.observation import RaisedException
from harness.model.signature import NUMBER, with_sorted_sets, without_places
from harness.model.text import one_line

_TOLERANCE = 0.01  # of the larger number
_MOST_LINES = 1000  # the last ones
_SHOWN = 80
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\")(?!\w)")
_LINE_OF_FILE = re.compile(r"(?:<path>|\b[\w.-]+\.pyx?):\d+(?::\d+)?|\bline \d+")
_DURATION = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:[mnuµ]?s|sec(?:ond)?s?|min(?:ute)?s?)\b")
_MARK = re.compile("<number>")
_OF_PYTHON = re.compile(r"/lib/python")
_TRACEBACK = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_WARNING = re.compile(r"warn|deprecat", re.IGNORECASE)
_OF_PYTHON_WARNING = re.compile(r":\d+: \w*Warning:")
_WARNING_LINES = 20  # at most, of a message


@frozen
class Fact:
    """A value in a message, or a printed line: the text with a mark for each number, and the numbers."""

    text: str
    numbers: tuple[float, ...] = ()

    @classmethod
    def of(cls, text: str) -> Fact:
        """Take the numbers out of a text; what has more than one point is a version, and stays."""
        numbers: list[float] = []

        def marked(match: re.Match[str]) -> str:
            try:
                numbers.append(float(match[0]))
            except ValueError:
                return match[0]
            return "<number>"

        return cls(" ".join(NUMBER.sub(marked, text).split()), tuple(numbers))

    def agrees(self, other: Fact) -> bool:
        """Whether both have the same text, and numbers within one percent."""
        return self.text == other.text and all(map(_are_close, self.numbers, other.numbers))

    def __str__(self) -> str:
        numbers = iter(self.numbers)
        return one_line(_MARK.sub(lambda match: f"{next(numbers):g}" if self.numbers else match[0], self.text), _SHOWN)


Facts = tuple[Fact, ...]


@frozen
class Symptoms:
    """How one run ended: the values in its messages and the places in the user's code, by test ("" without tests).

    `lines` are those that it printed, `metrics` the numbers that it wrote.
    """

    values: Mapping[str, Facts] = field(factory=dict)
    places: Mapping[str, frozenset[str]] = field(factory=dict)
    lines: Facts = ()
    metrics: Mapping[str, float] = field(factory=dict)

    @classmethod
    def of(
        cls,
        failures: Mapping[str, RaisedException],
        printed: str = "",
        metrics: Mapping[str, float] | None = None,
        versions: frozenset[str] = frozenset(),
    ) -> Symptoms:
        """Read them. `versions` are those of packages that differ between the runs; a run may print them."""
        messages = {test: raised.message for test, raised in failures.items()}
        values = {test: tuple(_values(_masked(message, versions))) for test, message in messages.items()}
        known = {line.strip() for message in messages.values() for line in message.splitlines()}
        lines = (line for line in _own_lines(printed) if line.strip() not in known)
        return cls(
            values,
            {test: frozenset(_places(raised)) for test, raised in failures.items()},
            tuple(Fact.of(_masked(line, versions)) for line in lines),
            metrics or {},
        )


@frozen
class Invariants:
    """What is the same in all runs with a bug and in none without it, or the reverse."""

    values: Mapping[str, Facts] = field(factory=dict)
    places: Mapping[str, frozenset[str]] = field(factory=dict)
    lines: Facts = ()
    metrics: Mapping[str, float] = field(factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Symptoms], others: Sequence[Symptoms]) -> Invariants:
        """Learn them from two or more `runs`; of fewer nothing is known. None of the `others` has them."""
        if len(runs) < 2:
            return cls()
        tests = sorted({test for run in runs for test in run.values})
        places = {test: [run.places[test] for run in runs if test in run.places] for test in tests}
        printed = [line for run in others for line in run.lines]
        return cls(
            values={test: _common([run.values[test] for run in runs if test in run.values]) for test in tests},
            places={test: frozenset.intersection(*sets) for test, sets in places.items() if len(sets) > 1},
            lines=tuple(line for line in _common([run.lines for run in runs]) if not any(map(line.agrees, printed))),
            metrics=dict(_same_numbers([run.metrics for run in runs], [run.metrics for run in others])),
        )

    def missing_in(self, run: Symptoms) -> str:
        """Say what a run lacks, "" if nothing: of several tests that fail, one must have its values and places."""
        lacking = [list(self._lacking(test, run)) for test in run.values]
        if lacking and all(lacking):
            return lacking[0][0]
        absent = next((line for line in self.lines if not any(map(line.agrees, run.lines))), None)
        if absent is not None:
            return f'it did not print "{absent}"'
        other = (
            f"{name} is {run.metrics[name]:g}, not {number:g}" if name in run.metrics else f"it did not write {name}"
            for name, number in self.metrics.items()
            if name not in run.metrics or not _are_close(run.metrics[name], number)
        )
        return next(other, "")

    def _lacking(self, test: str, run: Symptoms) -> Iterator[str]:
        for value in self.values.get(test, ()):
            if not any(map(value.agrees, run.values[test])):
                yield f"its message has no {value}"
        for place in sorted(self.places.get(test, frozenset()) - run.places.get(test, frozenset())):
            yield f"it did not fail at {place}"


def _places(raised: RaisedException) -> Iterator[str]:
    """The lines of the user's code in a traceback: no installed package, nothing of Python itself, no made code."""
    for one in raised.chain():
        for frame in one.frames:
            if not frame.package and not frame.file.startswith("<") and not _OF_PYTHON.search(frame.file):
                yield f"{PurePath(frame.file).name}, line {frame.line}"


def _same_numbers(
    runs: Sequence[Mapping[str, float]], others: Sequence[Mapping[str, float]]
) -> Iterator[tuple[str, float]]:
    """The numbers that all runs wrote to the last digit, and no other one; a measured time differs in its digits."""
    for name, number in runs[0].items():
        is_same = all(name in run and _is_same(run[name], number) for run in runs)
        if is_same and not any(name in run and _are_close(run[name], number) for run in others):
            yield name, number


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _are_close(value: float, other: float) -> bool:
    return _is_same(value, other) or abs(value - other) <= _TOLERANCE * max(abs(value), abs(other))


def _common(runs: Sequence[Facts]) -> Facts:
    """The facts of the first run that all others have, too; none of a single run."""
    if len(runs) < 2:
        return ()
    first = dict.fromkeys(runs[0])
    return tuple(fact for fact in first if all(any(map(fact.agrees, facts)) for facts in runs[1:]))


def _masked(text: str, versions: frozenset[str]) -> str:
    """A text with marks for what mixtures of releases change: addresses, places in files, durations and versions.

    The order of sets changes, too: the hash seed of a run is that of its environment.
    """
    text = _DURATION.sub("<duration>", _LINE_OF_FILE.sub("<place>", without_places(with_sorted_sets(text))))
    names = "|".join(map(re.escape, sorted(versions)))
    return re.sub(rf"(?<![\w.])v?(?:{names})(?!\w|\.\d)", "<version>", text) if names else text


def _values(message: str) -> Iterator[Fact]:
    """The quoted texts of a message, then its other numbers."""
    yield from map(Fact.of, _QUOTED.findall(message))
    yield from (Fact("<number>", (number,)) for number in Fact.of(_QUOTED.sub(" ", message)).numbers)


def _own_lines(printed: str) -> Iterator[str]:
    """The last lines of a log, without tracebacks, warnings and the indented lines below them, and progress bars."""
    is_below = is_traceback = False
    whole = printed.replace("\r\n", "\n").split("\n")
    lines, end = [line for line in whole if "\r" not in line][-_MOST_LINES:], 0
    for number, line in enumerate(lines):
        if number < end or (is_below and (not line.strip() or line[0].isspace())):
            continue
        end = _end_of_warning(lines, number)
        is_exception, is_traceback = is_traceback, line.startswith(_TRACEBACK)
        is_below = is_traceback or _WARNING.search(line) is not None
        if line.strip() and not (is_below or is_exception or line.startswith(_CHAINED)):
            yield line


def _end_of_warning(lines: Sequence[str], start: int) -> int:
    """The number of the line of code that Python prints below a warning, whose message may have several lines.

    `start` if no warning starts there, or if no code is below it.
    """
    if _OF_PYTHON_WARNING.search(lines[start]) is None:
        return start
    for number in range(start + 1, min(start + _WARNING_LINES, len(lines))):
        if lines[number].startswith(_TRACEBACK):
            break
        if lines[number].startswith("  ") and lines[number].strip():
            return number
    return start
