"""Trims a traceback to the repro, the culprit's package and the innermost frame, and counts the rest."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from harness.model import RaisedException, StackFrame

_LONGEST_RUN = 12  # shown frames of one package in a row: the outermost and the innermost half
_MESSAGE_LINES = 12
_WIDTH = 400


def trimmed_traceback(raised: RaisedException, packages: Collection[str], repro_file: str) -> str:
    """Return a traceback with the frames of `packages` and of the repro; causes come first, as in Python."""
    blocks = []
    one: RaisedException | None = raised
    while one is not None:
        blocks.append("\n".join(_block(one, packages, repro_file)))
        one = one.cause
    return "\n\nThe above exception was the direct cause of the following exception:\n\n".join(reversed(blocks))


def _block(raised: RaisedException, packages: Collection[str], repro_file: str) -> Iterator[str]:
    yield "Traceback (most recent call last):"
    last = len(raised.frames) - 1
    kept = [
        index == last or frame.package in packages or frame.file == repro_file
        for index, frame in enumerate(raised.frames)
    ]
    for shown, run in groupby(zip(kept, raised.frames, strict=True), key=lambda pair: pair[0]):
        frames = [frame for _, frame in run]
        if not shown:
            yield _counted(frames)
            continue
        half = _LONGEST_RUN // 2
        middle = frames[half:-half] if len(frames) > _LONGEST_RUN else []
        for frame in frames[:half] if middle else frames:
            yield from _lines(frame)
        if middle:
            yield _counted(middle)
            for frame in frames[-half:]:
                yield from _lines(frame)
    yield from _message(raised)


def _lines(frame: StackFrame) -> Iterator[str]:
    yield f'  File "{frame.file}", line {frame.line}, in {frame.function}'
    if frame.text:
        yield f"    {_cut(frame.text)}"


def _counted(frames: list[StackFrame]) -> str:
    owners = Counter(frame.package or "Python itself" for frame in frames)
    named = ", ".join(f"{owner} {count}" for owner, count in owners.items()) if len(owners) > 1 else next(iter(owners))
    return f"  ... {len(frames)} {'frame' if len(frames) == 1 else 'frames'} of {named}"


def _message(raised: RaisedException) -> Iterator[str]:
    lines = raised.message.splitlines() or [""]
    yield f"{raised.name}: {_cut(lines[0])}" if raised.message else raised.name
    yield from map(_cut, lines[1:_MESSAGE_LINES])
    if len(lines) > _MESSAGE_LINES:
        yield f"... {len(lines) - _MESSAGE_LINES} more lines"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
