"""A signature: how to recognise one bug among other failures.

Modelled on the crash signatures of Mozilla: the parts that stay the same when paths, addresses and numbers change.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from harness.model.observation import Observation, Outcome, RaisedException
from harness.model.text import one_line

_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.+@~-]+){2,}[\\/]?")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_UUID_PATTERN = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_HASH = re.compile(rf"\b(?:{_UUID_PATTERN}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{12,}})\b")
_STRING_PATTERN = r"(?:'[^'\n]*'|\"[^\"\n]*\")"
_STRING = re.compile(_STRING_PATTERN)
_SET = re.compile(rf"\{{{_STRING_PATTERN}(?:,\s*{_STRING_PATTERN})+\}}")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?\b")
_SEARCH_S = 5.0
_SHOWN = 160
_CAPTURED = 500  # characters of a message; the rest is mostly values
_EXCEPTION_LINE = re.compile(
    r"^(?:E\s+)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning))(?::\s*(.*))?$", re.M
)


class TooSlow(Exception):
    """Matching a pattern against a log takes too long."""


def check_pattern(pattern: str) -> None:
    """Raise `ValueError` if a text is not a regular expression."""
    import regex  # type: ignore[import-untyped,import-not-found,unused-ignore]

    for compile_with in (re.compile, regex.compile):
        try:
            compile_with(pattern)
        except (re.error, regex.error, RecursionError, OverflowError) as error:
            raise ValueError(str(error)) from error


def normalized_message(message: str) -> str:
    """A message with placeholders for paths, addresses, hashes, numbers and white space, and sets of strings sorted."""
    words = NUMBER.sub("<number>", _HASH.sub("<hash>", without_places(message))).split()
    return with_sorted_sets(" ".join(words))


def with_sorted_sets(text: str) -> str:
    """A text with the strings of each printed set, whose order differs between runs, in the order of the alphabet."""
    return _SET.sub(lambda match: f"{{{', '.join(sorted(_STRING.findall(match[0])))}}}", text)


def without_places(message: str) -> str:
    """A message with paths and addresses replaced by placeholders."""
    return _PATH.sub("<path>", _ADDRESS.sub("<address>", message))


def without_end(message: str) -> str:
    """A message without the full stop at its end, which one release may have and the next may not."""
    return message.rstrip(" .")


FINITE = sys.float_info.max, -sys.float_info.max  # `above` and `below` of a metric that only has to be finite
_OWN = {"seconds": "duration_s", "peak_memory": "peak_memory_mib"}
_ESCAPE = re.compile(r"\\[A-Za-z]")
_WORD = re.compile(r"[A-Za-z_]\w*(?:/\w+)*")
_WORDS = 3
_COST = re.compile(
    r"time|second|duration|latency|memory|alloc|bytes|calls|(?:^|_)(?:[mnu]?s|secs?|[kmg]i?b|rss)(?:_|$)", re.IGNORECASE
)


@frozen
class Signature:
    """How the bug is recognised. At least one part must be given; every given part must match.

    `exception` is the name of the exception's type or of one of its bases, with or without module; `message` is a part
    of its text, compared after normalising both; `frame` is a part of "file:function" of any frame; `metric` is a
    number that is `above` or `below` a bound (NaN matches): one that the run wrote, its `seconds` or `peak_memory`
    (MiB), or the last match of a regular expression with a group in the log; `output` is a regular expression searched
    in the log; `hang` is a run past its time limit; `crash` is a process killed by a signal; `exit_code` is that of the
    process. `captured` means that the signature was captured from the bad end, not given.
    """

    exception: str | None = None
    message: str | None = None
    frame: str | None = None
    metric: str | None = None
    above: float | None = None
    below: float | None = None
    output: str | None = None
    hang: bool = False
    exit_code: int | None = None
    crash: bool = False
    captured: bool = False

    def match(self, observation: Observation, log: str = "") -> str | None:
        """Return why the observation shows the bug, "" if it does not, None if the metric was not written.

        Raises `TooSlow` if matching its pattern against the log takes too long.
        """
        reasons: list[str] = []
        for reason in self._matched(observation, log):
            if not reason:
                return reason
            reasons.append(reason)
        return "; ".join(reasons)

    def _matched(self, observation: Observation, log: str) -> Iterator[str | None]:
        """Yield for each given part what `match` returns for it alone."""
        detail = observation.detail
        if self.hang:
            yield (detail or "ran past its time limit") if observation.outcome is Outcome.TIMED_OUT else ""
        if self.crash:
            yield (detail or "crashed") if observation.outcome is Outcome.CRASHED else ""
        if self.exit_code is not None:
            yield f"exit code {self.exit_code}" if observation.exit_code == self.exit_code else ""
        if self.exception is not None or self.message is not None or self.frame is not None:
            chain = observation.exception.chain() if observation.exception is not None else ()
            raised = next(filter(self._is_this, chain), None)
            words = f": {one_line(raised.message, _SHOWN)}" if raised is not None and raised.message else ""
            yield f"{raised.name}{words}" if raised is not None else ""
        if self.metric is not None:
            yield self._measured(observation, log)
        if self.output is not None:
            line = _first_match(self.output, log)
            yield f"printed {one_line(line, _SHOWN)!r}" if line is not None else ""

    def value(self, observation: Observation, log: str = "") -> float | None:
        """The metric of a run; None if there is none, or it was not written.

        What the harness itself measures or finds in the log counts only if the run ended well. Raises `TooSlow`.
        """
        if self.metric is None or self.metric in observation.metrics:
            return observation.metrics.get(self.metric or "")
        if observation.outcome is not Outcome.COMPLETED:
            return None
        if self.is_pattern:
            return _last_number(self.metric, log)
        return observation.measured.get(_OWN.get(self.metric, self.metric))

    def excess(self, value: float) -> float:
        """How far a value of the metric is outside its bounds, 0 or less if inside; NaN is infinitely far outside."""
        if math.isnan(value):
            return math.inf
        past = [value - self.above] if self.above is not None else []
        past += [self.below - value] if self.below is not None else []
        return max(past, default=-math.inf)

    def describe_good(self, observation: Observation, log: str = "") -> str:
        """Describe a run without the bug."""
        if (value := self.value(observation, log)) is not None:
            return f"{self.measure} = {value:g}"
        return "ran to its end"

    def __str__(self) -> str:
        parts = []
        if self.exception is not None:
            parts.append(self.exception)
        if self.message is not None:
            parts.append(f'"{self.message}"')
        if self.frame is not None:
            parts.append(f"in {self.frame}")
        if self.metric is not None:
            parts.append(f"{self.measure} {self.bounds}".rstrip())
        if self.output is not None:
            parts.append(f'output "{_readable(self.output)}"' if self.captured else f"output matching /{self.output}/")
        if self.hang:
            parts.append("a run past its time limit")
        if self.crash:
            parts.append("a crash by a signal")
        if self.exit_code is not None:
            parts.append(f"exit code {self.exit_code}")
        return ", ".join(parts)

    def _measured(self, observation: Observation, log: str) -> str | None:
        value = self.value(observation, log)
        if value is None:
            return None if observation.outcome is Outcome.COMPLETED else ""
        is_out = self._is_out_of_bounds(value)
        return ", ".join(filter(None, (f"{self.measure} = {value:g}", self.bounds))) if is_out else ""

    def _is_this(self, raised: RaisedException) -> bool:
        if self.exception is not None:
            names = (raised.type, *raised.bases)
            if not any(name == self.exception or name.endswith(f".{self.exception}") for name in names):
                return False
        message = without_end(normalized_message(self.message or ""))
        if message not in normalized_message(raised.message) and (self.message or "") not in raised.message:
            return False
        return self.frame is None or any(self.frame in f"{frame.file}:{frame.function}" for frame in raised.frames)

    def _is_out_of_bounds(self, value: float) -> bool:
        if self.is_unbounded:
            return False
        if math.isnan(value):
            return True
        return (self.above is not None and value > self.above) or (self.below is not None and value < self.below)

    @property
    def is_own(self) -> bool:
        """Whether the metric is measured by the harness, for the whole process."""
        return self.metric in _OWN

    @property
    def is_written(self) -> bool:
        """Whether the metric is one that the run writes to a file."""
        return self.metric is not None and not self.is_own and not self.is_pattern

    @property
    def needs_log(self) -> bool:
        """Whether the log of a run is needed to judge it."""
        return self.output is not None or self.is_pattern

    @property
    def is_cost(self) -> bool:
        """Whether the metric is a time or an amount of memory, as far as its name says."""
        return self.metric is not None and _COST.search(self.metric) is not None

    @property
    def is_timed(self) -> bool:
        """Whether a verdict by it may depend on how fast a run is: on a number, or on a hang."""
        return self.hang or self.metric is not None

    @property
    def is_unbounded(self) -> bool:
        """Whether it names a metric without saying which values are the bug, so that both ends have to be measured."""
        return self.metric is not None and self.above is None and self.below is None

    @property
    def is_pattern(self) -> bool:
        """Whether the metric is a regular expression with a group, to be searched in the log."""
        try:
            return self.metric is not None and "(" in self.metric and re.compile(self.metric).groups > 0
        except re.error:  # the name of a parametrised benchmark
            return False

    @property
    def measure(self) -> str:
        """The metric in words: its name, or of a regular expression the words before the number."""
        if not self.is_pattern:
            return self.metric or ""
        words = _WORD.findall(_ESCAPE.sub(" ", (self.metric or "").partition("(")[0]))
        return " ".join(words[-_WORDS:]) or "the number"

    @property
    def bounds(self) -> str:
        """The bounds of the metric in words."""
        if (self.above, self.below) == FINITE:
            return "not a finite number"
        above = [f"above {self.above:g}"] if self.above is not None else []
        below = [f"below {self.below:g}"] if self.below is not None else []
        return " or ".join((*above, *below))


def capture_signature(observation: Observation, log: str = "") -> Signature | None:
    """Return a signature for this failure, or None if it is none, or nothing in it can be recognised again."""
    captured = Signature(captured=True)
    raised = observation.exception
    if observation.mistake:
        return None
    match observation.outcome:
        case Outcome.RAISED if raised is not None:
            return evolve(captured, exception=raised.name, message=_first_line(raised.message) or None)
        case Outcome.EXITED:
            return evolve(captured, exit_code=observation.exit_code, output=_last_exception_line(log))
        case Outcome.TIMED_OUT:
            return evolve(captured, hang=True)
        case Outcome.CRASHED:
            return evolve(captured, crash=True)
        case _:
            return None


def last_exception(log: str) -> RaisedException | None:
    """The exception in the last line of a log that looks like one, or None."""
    last = next(iter(reversed(list(_EXCEPTION_LINE.finditer(log)))), None)
    return RaisedException(last.group(1), last.group(2) or "") if last is not None else None


def given_parts(signature: Signature | None) -> dict[str, Any] | None:
    """The parts of a signature that are given, by name; None for no signature."""
    if signature is None:
        return None
    return {name: value for name, value in asdict(signature).items() if value not in (None, False)}


def pattern_of(signature: Signature | None) -> str:
    """Return a failure in words that do not change from run to run, to compare it; "" without a signature."""
    if signature is None:
        return ""
    parts = given_parts(signature) or {}
    for name in ("captured", "frame"):
        parts.pop(name, None)
    if signature.exception is not None:
        parts["exception"] = signature.exception.rpartition(".")[2]
    if signature.message is not None:
        parts["message"] = normalized_message(signature.message)
    return json.dumps(parts)


def _first_match(pattern: str, log: str) -> str | None:
    """The first match in a log, or None. Raises `TooSlow`."""
    # The standard library's engine has no timeout, and some patterns backtrack exponentially.
    import regex  # type: ignore[import-untyped,import-not-found,unused-ignore]

    try:
        match = regex.search(pattern, log, regex.MULTILINE, timeout=_SEARCH_S)
    except TimeoutError:
        raise TooSlow(f"the signature's pattern takes longer than {_SEARCH_S:g} s on the log") from None
    return str(match[0]) if match is not None else None


def _last_number(pattern: str, log: str) -> float | None:
    """The number in the first group of the last match in a log, None without one. Raises `TooSlow`."""
    import regex  # type: ignore[import-untyped,import-not-found,unused-ignore]

    last = None
    try:
        for match in regex.finditer(pattern, log, regex.MULTILINE, timeout=_SEARCH_S):
            with contextlib.suppress(ValueError, TypeError):
                last = float(match[1].replace(",", ""))
    except TimeoutError:
        raise TooSlow(f"the pattern {pattern} takes longer than {_SEARCH_S:g} s on the log") from None
    return last


def _first_line(message: str) -> str:
    """The first line, which identifies an error; later lines are mostly advice and dumps."""
    return next((normalized_message(line) for line in message.strip().splitlines() if line.strip()), "")


# A message may have the placeholder itself.
_ADDRESS_PATTERN = r"(?:<address>|0x[0-9a-fA-F]+)"
_PATH_PATTERN = r"(?:<path>|(?:[A-Za-z]:)?[\\/][\w.+@~\\/-]*)"
_HASH_PATTERN = rf"(?:<hash>|{_UUID_PATTERN}|[0-9a-f]{{12,}})"
_IN_SET = r"[^{}\n]*"
_SET_PATTERN = re.compile(rf"\\\{{(?:\(\?=.*?\))+{re.escape(_IN_SET)}\\\}}")
_NUMBER_PATTERN = r"(?:<number>|[-+]?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?)"


def _readable(pattern: str) -> str:
    """A captured pattern as the line that it stands for."""
    for part in (_ADDRESS_PATTERN, _PATH_PATTERN, _HASH_PATTERN, _NUMBER_PATTERN):
        pattern = pattern.replace(part, "...")
    pattern = _SET_PATTERN.sub("{...}", pattern)
    pattern = pattern.replace(r"\b", "").replace(r":\s*", ": ").replace(r"\s+", " ")
    return re.sub(r"\\(.)", r"\1", pattern)


def _last_exception_line(log: str) -> str | None:
    """A pattern for the last line that reads like a Python exception, or None."""
    last = last_exception(log)
    if last is None:
        return None
    name, message = last.type, without_end(normalized_message(last.message[:_CAPTURED]))
    pattern = "".join(_pattern_parts(message)).replace("<address>", _ADDRESS_PATTERN).replace(r"\ ", r"\s+")
    # Two placeholders that match the same text would backtrack exponentially, so they must not overlap.
    pattern = pattern.replace("<path>", _PATH_PATTERN).replace("<number>", _NUMBER_PATTERN)
    pattern = pattern.replace("<hash>", _HASH_PATTERN)
    return rf"\b{re.escape(name)}\b" + (rf":\s*{pattern}" if pattern else "")


def _pattern_parts(message: str) -> Iterator[str]:
    """Patterns for the parts of a message; that for a set of strings matches them in any order."""
    begin = 0
    for match in _SET.finditer(message):
        yield re.escape(message[begin : match.start()])
        anywhere = (rf"(?={_IN_SET}{re.escape(string)})" for string in _STRING.findall(match[0]))
        yield "".join((r"\{", *anywhere, _IN_SET, r"\}"))
        begin = match.end()
    yield re.escape(message[begin:])
