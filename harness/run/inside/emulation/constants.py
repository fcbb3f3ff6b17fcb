"""Answers that need neither torch nor a card: functions that do nothing, and functions that return one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .gaps import gap_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def nothing(*_: Any, **__: Any) -> None:
    """Nothing to do: the work of the emulated card is always finished, and its memory is never used."""


def fixed(value: Any) -> Any:
    """A function that returns this value, whatever its arguments are."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def constants(values: Mapping[str, Any], doing_nothing: Iterable[str], gaps: Iterable[str]) -> dict[str, Any]:
    """Functions by name: those with a fixed value, those that do nothing, and those without an answer."""
    return {
        **{name: fixed(value) for name, value in values.items()},
        **dict.fromkeys(doing_nothing, nothing),
        **{name: gap_function(f"torch.{name}") for name in gaps},
    }
