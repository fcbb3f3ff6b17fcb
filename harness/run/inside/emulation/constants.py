"""Replacements that need neither torch nor a card: functions that do nothing or return a fixed value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .gaps import gap_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing: the work of the emulated card is always finished, and its memory is never used."""


def fixed(value: Any) -> Any:
    """Return a function that accepts any arguments and returns this value."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def constants(values: Mapping[str, Any], doing_nothing: Iterable[str], gaps: Iterable[str]) -> dict[str, Any]:
    """Return functions by name: those that return a fixed value, those that do nothing, and those that raise a gap."""
    return {
        **{name: fixed(value) for name, value in values.items()},
        **dict.fromkeys(doing_nothing, nothing),
        **{name: gap_function(f"torch.{name}") for name in gaps},
    }
