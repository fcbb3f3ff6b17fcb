"""Ranks the packages that changed, the likeliest culprit first, which decides only how soon it is found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness.model import Change, RaisedException, normalized_name

# Tools that run and measure tests rarely break them.
_TEST_TOOL = re.compile(r"^(pytest.*|pluggy|iniconfig|coverage|exceptiongroup|tox)$")
_RAISES_FOR_OTHERS = ("_pytest", "pytest", "pluggy")
_NO_FIXTURE = "FixtureLookupError"
_FOR_TESTS = ("AssertionError", "Failed", "Exited", _NO_FIXTURE)  # how pytest reports a failure of something else
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z]")


def ranked(
    changes: Mapping[str, Change], exceptions: Sequence[RaisedException], log: str, requested: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of the changed packages, the most likely culprit first.

    In this order: named by an exception or an error line of the log, in the traceback or in a path of the log, not a
    test tool, present at both ends, requested, a larger version step.
    """

    def rank(name: str) -> tuple[object, ...]:
        change = changes[name]
        is_new = change.before is None or change.after is None
        return (_TEST_TOOL.match(name) is not None, is_new, name not in requested, change.step, name)

    order = sorted(changes, key=rank)
    return tuple(dict.fromkeys([*named_in(exceptions, order, log), *order]))


def named_in(exceptions: Sequence[RaisedException], order: Sequence[str], log: str = "") -> tuple[str, ...]:
    """Return the packages of `order` that exceptions or error lines of a log name, then those in their tracebacks.

    Those in a traceback are ordered from its innermost frame.
    """
    errors = [f"{_type(raised)} {raised.message}" for raised in exceptions]
    errors += [line for line in log.splitlines() if "Error" in line or line.startswith("E ")]
    words = _projects(" ".join(errors)) | _plugins(exceptions, order)
    places = [*packages_of_frames(exceptions), *sorted(packages_of_log(log))]
    named = [name for name in order if name in words]
    return tuple(dict.fromkeys([*named, *(name for name in places if name in order)]))


def _type(raised: RaisedException) -> str:
    """Return the type of an exception, "" for those that pytest raises to report a failure of something else."""
    return "" if raised.name in ("Failed", _NO_FIXTURE) else raised.type


def packages_of_frames(exceptions: Sequence[RaisedException]) -> list[str]:
    """Return the packages in the tracebacks of exceptions, the innermost first, without pytest and pluggy.

    They run every test, so they only count where they raised an error of their own.
    """
    names: list[str] = []
    for raised in exceptions:
        packages = [frame.package for frame in reversed(raised.frames)]
        if packages[:1] and packages[0] in _RAISES_FOR_OTHERS and raised.name not in _FOR_TESTS:
            names.append("pytest")
        names += [normalized_name(name) for name in packages if name and name not in _RAISES_FOR_OTHERS]
    return names


def packages_of_log(log: str) -> frozenset[str]:
    """Return the packages in the paths of a log."""
    return _projects(" ".join(re.findall(r"site-packages/([A-Za-z0-9_]+)", log)))


def _plugins(exceptions: Sequence[RaisedException], names: Iterable[str]) -> frozenset[str]:
    """Return the pytest plugins among some packages if a fixture is missing, which one of them may provide."""
    if not any(raised.name == _NO_FIXTURE for raised in exceptions):
        return frozenset()
    return frozenset(name for name in names if name.startswith("pytest-"))


def _projects(text: str) -> frozenset[str]:
    """Return the words of a text as project names, and the first part of each dotted name."""
    words = set(_WORD.findall(text))
    return frozenset(normalized_name(part) for word in words for part in (word, word.split(".")[0]))
