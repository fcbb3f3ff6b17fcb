"""Reads tables of TOML that users write: each key has a reader, which checks its value and returns it.

A reader takes a value and where it stands ("subjects.peft.good"). It raises `ValueError` with one sentence that says
what to change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

Reader = Callable[[Any, str], Any]


def read_table(table: Any, where: str, readers: Mapping[str, Reader], needs: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of a table by the names of attributes ("as_of"); a key in `needs` is read even if missing."""
    given = with_known(table, where, readers)
    return {
        key.replace("-", "_"): read(given.get(key), f"{where}.{key}" if where else key)
        for key, read in readers.items()
        if key in given or key in needs
    }


def with_known(table: Any, where: str, keys: Collection[str]) -> dict[str, Any]:
    """Read a table that has no other keys than these."""
    if unknown := sorted(a_table(table, where).keys() - set(keys)):
        what = f"{where} has unknown keys" if where else "unknown keys"
        raise ValueError(f"{what}: {', '.join(unknown)}; known keys: {', '.join(sorted(keys))}")
    return dict(table)


def that(holds: Callable[[Any], bool], words: str) -> Reader:
    """Return a reader of values for which `holds` is true; `words` say what they are."""

    def read(value: Any, where: str) -> Any:
        if not holds(value):
            raise ValueError(f"{where} must be {words}, not {value!r}")
        return value

    return read


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


a_table = that(lambda value: isinstance(value, dict), "a table")
text = that(lambda value: isinstance(value, str), "a string in quotes")
filled = that(lambda value: isinstance(value, str) and bool(value.strip()), "a string in quotes")
switch = that(lambda value: isinstance(value, bool), "true or false")
number = that(is_number, "a number")


def one_of(*words: str) -> Reader:
    """Return a reader of one of these words."""
    return that(lambda value: value in words, f"one of {', '.join(words)}")


def matching(pattern: re.Pattern[str], words: str) -> Reader:
    """Return a reader of texts that match a pattern as a whole."""
    return that(lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None, words)


def list_of(holds: Callable[[str], bool], words: str) -> Reader:
    """Return a reader of a list of texts for each of which `holds` is true."""
    read = that(
        lambda value: isinstance(value, list) and all(isinstance(item, str) and holds(item) for item in value), words
    )
    return lambda value, where: tuple(read(value, where))


def table_of(read: Reader) -> Reader:
    """Return a reader of a table whose values are all read alike."""
    return lambda value, where: {key: read(item, f"{where}.{key}") for key, item in a_table(value, where).items()}


def parsed(parse: Callable[[str], object], words: str) -> Reader:
    """Return a reader of texts that `parse` takes; it raises `ValueError` for others."""

    def read(value: Any, where: str) -> str:
        try:
            parse(text(value, where))
        except ValueError as error:
            raise ValueError(f"{where} = {value!r} is not {words} ({error})") from error
        return str(value)

    return read


def requirements(value: Any, where: str) -> tuple[str, ...]:
    """Read a list of requirements (PEP 508)."""
    if not isinstance(value, list):
        raise ValueError(f"{where} must be a list of requirements")  # noqa: TRY004 - the caller reports all alike
    for requirement in value:
        try:
            Requirement(requirement)
        except (InvalidRequirement, TypeError) as error:
            raise ValueError(f"{where}: {requirement!r} is not a requirement: {str(error).splitlines()[0]}") from error
    return tuple(value)
