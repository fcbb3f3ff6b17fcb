"""The options of a question: each is one field of a frozen value, which says what it does not apply to.

What callers of the Python API pass is checked, so that a wrong value is one sentence that names the argument.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import Factory, field, fields, frozen
from attrs.validators import deep_iterable, instance_of, optional

from harness.errors import UserMistake

if TYPE_CHECKING:
    from attrs import Attribute


_T = TypeVar("_T")


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

    `not_for` are the traits of questions that it does not apply to, and for which it is refused. `unit` is that of a
    number, which lies `between` two bounds.
    """

    flag: str
    group: OptionGroup
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    shown_default: str | bool = False
    not_for: tuple[Trait, ...] = ()
    unit: str = ""
    between: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The flag that differs from the default."""
        return self.flag.rpartition("/")[2]

    def text_of(self, value: Any) -> str:
        """Return a value as it is typed; results are found from any folder."""
        if self.unit:
            return f"{value:g}{self.unit}"
        return str(value.absolute() if self.group is OptionGroup.RESULTS else value)


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


class Options:
    """A value whose fields are options."""

    __slots__ = ()

    def given(self) -> dict[Option, Any]:
        """Return the options whose fields differ from their defaults, with the values of these fields."""
        given: dict[Option, Any] = {}
        for part in fields(type(self)):  # type: ignore[arg-type]
            default = part.default.factory() if isinstance(part.default, Factory) else part.default  # type: ignore[arg-type]
            if "option" in part.metadata and getattr(self, part.name) != default:
                given[part.metadata["option"]] = getattr(self, part.name)
        return given

    def words_of_given(self, is_wanted: Callable[[Option], bool] = lambda _: True) -> tuple[str, ...]:
        """Return the words that give the wanted ones of these options their values, quoted for a shell."""
        words: list[str] = []
        for option, value in self.given().items():
            for item in (value if isinstance(value, tuple) else (value,)) if is_wanted(option) else ():
                words += [option.name] if isinstance(item, bool) else [option.name, option.text_of(item)]
        return tuple(map(shlex.quote, words))


_TEXT, _NUMBER, _WHOLE = instance_of(str), instance_of((int, float)), instance_of(int)
# How a value of each type is checked, and what it is called.
_KINDS: dict[str, tuple[Callable[[Any, Attribute[Any], Any], Any], str]] = {
    "bool": (instance_of(bool), "True or False"),
    "str": (_TEXT, "a text"),
    "str | None": (optional(_TEXT), "a text"),
    "int | None": (optional(_WHOLE), "a whole number"),
    "float": (_NUMBER, "a number"),
    "float | None": (optional(_NUMBER), "a number"),
    "tuple[str, ...]": (deep_iterable(_TEXT, instance_of(tuple)), "a list of texts"),
    "Path": (instance_of(Path), "a path"),
    "Path | None": (optional(instance_of(Path)), "a path"),
}


def with_types(kind: type, parts: list[Attribute[Any]]) -> list[Attribute[Any]]:
    """Let plain fields raise `UserMistake` for a wrong type or value; a `field_transformer` of attrs."""

    def check(instance: Any, attribute: Attribute[Any], value: Any) -> None:
        validate, words = _KINDS[str(attribute.type)]
        try:
            validate(instance, attribute, value)
        except TypeError as error:
            raise UserMistake(f"{kind.__name__}({attribute.name}=...) takes {words}, not {value!r}") from error
        option: Option | None = attribute.metadata.get("option")
        if option is not None and option.choices:
            check_choice(f"{kind.__name__}({attribute.name}=...)", value, option.choices)
        if option is not None and option.between is not None:
            check_between(f"{kind.__name__}({attribute.name}=...)", value, *option.between)

    return [part.evolve(validator=check) if str(part.type) in _KINDS else part for part in parts]


def documented(kind: type[_T]) -> type[_T]:
    """Complete a class of options, whose docstring then lists them, each with its type, its help and its flag.

    Its constructor raises `UserMistake` for an argument that it does not take.
    """
    parts, construct = fields(kind), kind.__init__  # type: ignore[arg-type]
    names, positions = [part.name for part in parts], [part.name for part in parts if not part.kw_only]

    @functools.wraps(construct)
    def constructed(self: _T, *values: Any, **named: Any) -> None:
        check_known(f"{kind.__name__}()", named, names)
        if len(values) > len(positions):
            raise UserMistake(f"{kind.__name__}() takes {_or(names)} by name")
        construct(self, *values, **named)

    kind.__init__ = constructed  # type: ignore[assignment, method-assign]
    lines = [_described(part) for part in parts if "option" in part.metadata]
    kind.__doc__ = "\n".join([inspect.cleandoc(kind.__doc__ or ""), "", "Attributes:", *lines, ""])
    return kind


def _described(part: Attribute[Any]) -> str:
    option: Option = part.metadata["option"]
    choices = f" One of {_or(map(repr, option.choices))}." if option.choices else ""
    return f"    {part.name} ({part.type}): {option.help}{choices} `{option.flag}`"


def check_kind(name: str, value: object, kind: type[Any] | tuple[type[Any], ...], words: str) -> None:
    """Check the type of an argument, which `words` name. Raises `UserMistake`."""
    if not isinstance(value, kind):
        raise UserMistake(f"{name} takes {words}, not {value!r}")


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
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {_or(known)}"
            raise UserMistake(f"{function} takes no argument {name!r}", hint=hint)


def as_tuple(value: Any) -> Any:
    """A list as a tuple; other values are unchanged, for the check to refuse."""
    return tuple(value) if isinstance(value, list) else value


def as_path(value: Any) -> Any:
    """A text as a path; other values are unchanged, for the check to refuse."""
    return Path(value) if isinstance(value, str) else value


def _or(words: Any) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)
