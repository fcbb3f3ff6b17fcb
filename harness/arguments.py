"""Checks what callers of the Python API pass, so that a wrong value is one sentence that names the argument."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar, Union

from attrs import fields

from harness.errors import UserMistake
from harness.model.text import one_line

_WIDTH = 80  # of a wrong value in a message
_Made = TypeVar("_Made", bound=Callable[..., Any])
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path",
    type(None): "None",
}


def check_fields(value: Any) -> None:
    """Check the fields of an attrs value, as `__attrs_post_init__`. Raises `UserMistake`, which names the field."""
    kind = type(value)
    for one in fields(kind):
        _check(f"{kind.__name__}({one.name}=...)", getattr(value, one.name), _hint(one.type, kind.__module__))


def check_between(name: str, value: float | None, low: float, high: float = float("inf")) -> None:
    """Check that a number, if there is one, lies between two bounds. Raises `UserMistake`."""
    if value is not None and not low <= value <= high:
        told = f"at least {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
        raise UserMistake(f"{name} is {told}, not {value!r}")


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Check that a text, if there is one, is one of the choices. Raises `UserMistake`."""
    if value is not None and value not in choices:
        raise UserMistake(f"{name} takes {_or(map(repr, choices))}, not {value!r}")


def check_known(function: str, given: Collection[str], known: Collection[str]) -> None:
    """Check the names of further arguments. Raises `UserMistake`, which names one that the function does not take."""
    for name in given:
        if name not in known:
            raise UserMistake(f"{function} takes no argument {name!r}", hint=f"it takes {_or(known)}")


def checked(function: _Made) -> _Made:
    """Check the arguments of a public function before it runs. Raises `UserMistake`, which names the argument."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*arguments: Any, **more: Any) -> Any:
        bound = signature.bind(*arguments, **more)
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            hint = _hint(parameter.annotation, function.__module__)
            values = value if parameter.kind is inspect.Parameter.VAR_POSITIONAL else (value,)
            for one in values if parameter.kind is not inspect.Parameter.VAR_KEYWORD else ():
                _check(f"{function.__name__}({name}=...)", one, hint)
        return function(*arguments, **more)

    return typing.cast("_Made", called)


def as_tuple(value: Any) -> Any:
    """A list as a tuple; other values are unchanged, for the check to refuse."""
    return tuple(value) if isinstance(value, list) else value


def as_path(value: Any) -> Any:
    """A text as a path; other values are unchanged, for the check to refuse."""
    return Path(value) if isinstance(value, str) else value


def _check(name: str, value: Any, hint: Any) -> None:
    if hint is not None and not _fits(value, hint):
        raise UserMistake(f"{name} takes {_in_words(hint)}, not {one_line(repr(value), _WIDTH)}")


def _hint(annotation: Any, module: str) -> Any:
    """The type that an annotation means; None if its names are only imported for type checkers."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, vars(sys.modules[module]))  # noqa: S307 - the annotation of our own code
    except NameError:
        return None


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or getattr(hint, "_is_protocol", False):  # whatever has its methods
        return True
    if kind in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(one, parts[0]) for one in value)
    if kind is not None:
        return isinstance(value, kind)
    if hint is None:
        return value is None
    if hint in (int, float):
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _in_words(hint: Any) -> str:
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind in (Union, types.UnionType):
        return _or(map(_in_words, parts))
    if kind is tuple:
        return f"a tuple or list of {_in_words(parts[0]).removeprefix('a ')}s"
    if kind is not None and issubclass(kind, Mapping):
        return "a dict"
    return _WORDS.get(hint, f"a {getattr(hint, '__name__', hint)}")


def _or(words: Any) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else str(last)
