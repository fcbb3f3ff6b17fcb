"""What replaces a function of the driver: a fixed value, nothing, or an emulation gap.

A gap is a call that only a real GPU can carry out. A separate exception distinguishes it from a bug. If torch or
another library reaches the driver in a way that the stand-in does not know, the harness recognises the message (see
harness/run/devices/cpu.py).
"""

from __future__ import annotations

import re
from typing import Any

# The dispatcher's messages for an operator that only has a kernel for CUDA.
_ONLY_ON_THE_CARD = re.compile(
    r"with arguments from the ('CUDA' backend|'CPU' backend.*\[(?:\w+, )*CUDA[,\]])", re.DOTALL
)


class EmulationGap(RuntimeError):
    """The stand-in for CUDA cannot carry out this call; only a GPU can."""


class AttributeEmulationGap(EmulationGap, AttributeError):
    """A missing attribute that only a GPU has: `hasattr` and `getattr` with a default still work."""


class Incomplete:
    """Base class of stand-ins for driver objects: a missing attribute is a gap."""

    def __getattr__(self, name: str) -> Any:
        what = f"{type(self).__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(what)
        raise AttributeEmulationGap(_sentence(what))


def gap(what: str) -> EmulationGap:
    """Return the gap to raise for a call named `what`."""
    return EmulationGap(_sentence(what))


def _sentence(what: str) -> str:
    return f"{what} needs a real GPU: the stand-in for CUDA has no answer to it"


def needs_the_card(error: NotImplementedError) -> bool:
    """Whether an operator failed because it has no kernel for the CPU."""
    return _ONLY_ON_THE_CARD.search(str(error)) is not None


def gap_function(name: str) -> Any:
    """Return a function that raises the gap of this name."""

    def missing(*_: Any, **__: Any) -> Any:
        raise gap(name)

    missing.__name__ = missing.__qualname__ = name.rpartition(".")[2]
    return missing


def gap_class(name: str) -> Any:
    """Return a class that raises the gap of this name when it is called; annotations may still use it."""

    def new(_cls: type, *_: Any, **__: Any) -> Any:
        raise gap(name)

    return type(name.rpartition(".")[2], (), {"__new__": new})


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing: the work of the emulated card is always finished, and its memory is never used."""


def fixed(value: Any) -> Any:
    """Return a function that accepts any arguments and returns this value."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer
