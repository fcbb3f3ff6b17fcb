"""The options of a question: each is one field of a frozen value, which says what it does not apply to.

What callers of the Python API pass is checked, so that a wrong value is one sentence that names the argument.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from attrs.validators import deep_iterable, instance_of, optional

from harness.errors import UserMistake

if TYPE_CHECKING:
    from attrs import Attribute


class OptionGroup(enum.Enum):
    """Which commands have an option: those with one question, those that run probes, those that run many, or all."""

    QUESTION = enum.auto()
    RUNS = enum.auto()
    LIMITS = enum.auto()
    LANES = enum.auto()
    RESULTS = enum.auto()
    SEARCH = enum.auto()
    PROJECT = enum.auto()


class Trait(enum.StrEnum):
    """What a question may be, so that an option does not apply to it."""

    RELEASES = "releases of one package"
    PACKAGES = "two sets of packages"
    COMMITS = "commits"
    PYTHONS = "Pythons"
    SCRIPT = "a repro"
    COMMAND = "a command"
    MADE = "--made"
    ASK = "--ask"
    CERTAIN = "a question without --flaky"
    TO_RELEASE = "--depth release"
    TO_PACKAGE = "--depth package"


@frozen
class Option:
    """The command-line option of a field; `shown_default` describes the default.

    `not_for` are the traits of questions that it does not apply to, and for which it is refused.
    """

    flag: str
    group: OptionGroup
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    shown_default: str | bool = False
    not_for: tuple[Trait, ...] = ()

    @property
    def name(self) -> str:
        """The flag that differs from the default."""
        return self.flag.rpartition("/")[2]


def option_field(
    default: Any,
    flag: str,
    help: str,  # noqa: A002
    *,
    group: OptionGroup,
    converter: Callable[[Any], Any] | None = None,
    **details: Any,
) -> Any:
    """Return a field of a frozen value with its option; `details` are fields of `Option`."""
    converter = converter or (as_path if group is OptionGroup.RESULTS else as_tuple if default == () else None)
    return field(default=default, converter=converter, metadata={"option": Option(flag, group, help, **details)})


_TEXT, _NUMBER, _WHOLE = instance_of(str), instance_of((int, float)), instance_of(int)
_VALIDATORS: dict[str, Callable[[Any, Attribute[Any], Any], Any]] = {
    "bool": instance_of(bool),
    "str": _TEXT,
    "str | None": optional(_TEXT),
    "int | None": optional(_WHOLE),
    "float": _NUMBER,
    "float | None": optional(_NUMBER),
    "tuple[str, ...]": deep_iterable(_TEXT, instance_of(tuple)),
    "Path": instance_of(Path),
    "Path | None": optional(instance_of(Path)),
}


def with_types(kind: type, fields: list[Attribute[Any]]) -> list[Attribute[Any]]:
    """Let plain fields raise `UserMistake` for a value of a wrong type; a `field_transformer` of attrs."""

    def check(instance: Any, attribute: Attribute[Any], value: Any) -> None:
        try:
            _VALIDATORS[str(attribute.type)](instance, attribute, value)
        except TypeError as error:
            raise UserMistake(f"{kind.__name__}: {error.args[0]}") from error

    return [part.evolve(validator=check) if str(part.type) in _VALIDATORS else part for part in fields]


def check_between(name: str, value: float | None, low: float, high: float = float("inf")) -> None:
    """Check that a number, if there is one, lies between two bounds. Raises `UserMistake`."""
    if value is not None and not low <= value <= high:
        range_in_words = f"at least {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
        raise UserMistake(f"{name} is {range_in_words}, not {value!r}")


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Check that a text, if there is one, is one of the choices. Raises `UserMistake`."""
    if value is not None and value not in choices:
        raise UserMistake(f"{name} takes {_or(map(repr, choices))}, not {value!r}")


def check_known(function: str, given: Collection[str], known: Collection[str]) -> None:
    """Check the names of further arguments. Raises `UserMistake`, which names one that the function does not take."""
    for name in given:
        if name not in known:
            raise UserMistake(f"{function} takes no argument {name!r}", hint=f"it takes {_or(known)}")


def as_tuple(value: Any) -> Any:
    """A list as a tuple; other values are unchanged, for the check to refuse."""
    return tuple(value) if isinstance(value, list) else value


def as_path(value: Any) -> Any:
    """A text as a path; other values are unchanged, for the check to refuse."""
    return Path(value) if isinstance(value, str) else value


def _or(words: Any) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)
