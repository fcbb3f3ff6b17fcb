"""What a run left behind, as short as a page can show: the end of its log, its traceback, the files it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, groupby

from harness.model import RaisedException, StackFrame
from harness.model.release import version_order
from harness.model.text import counted, in_environment, plain

_LOG_LINES = 200
_LOG_WIDTH = 2000
_FRAMES = 12  # of one package in a row: the outermost and the innermost half
_MESSAGE_LINES = 12
_WIDTH = 400
_FILES = 20


def tail(log: str) -> str:
    """Return the last 200 lines as plain text, without colours and redrawn progress bars; long lines are cut."""
    lines = plain(log).rstrip().split("\n")
    shown = [_cut(line, _LOG_WIDTH) for line in lines[-_LOG_LINES:]]
    left = len(lines) - len(shown)
    return "\n".join([f"... {left} lines before these", *shown] if left else shown)


def trimmed_traceback(raised: RaisedException, packages: Collection[str], repro_file: str) -> str:
    """Return a traceback with the frames of `packages` and of the repro; causes come first, as in Python.

    The other frames are counted, except the innermost one.
    """
    blocks = ["\n".join(_block(exception, packages, repro_file)) for exception in raised.chain()]
    text = "\n\nThe above exception was the direct cause of the following exception:\n\n".join(reversed(blocks))
    return plain(text)


def _block(raised: RaisedException, packages: Collection[str], repro_file: str) -> Iterator[str]:
    yield "Traceback (most recent call last):"
    last = len(raised.frames) - 1
    visible = [
        index == last or frame.package in packages or frame.file == repro_file
        for index, frame in enumerate(raised.frames)
    ]
    for shown, run in groupby(zip(visible, raised.frames, strict=True), key=lambda pair: pair[0]):
        frames = [frame for _, frame in run]
        if not shown:
            yield _counted(frames)
            continue
        half = _FRAMES // 2 if len(frames) > _FRAMES else len(frames)
        yield from chain.from_iterable(map(_lines, frames[:half]))
        if half < len(frames):
            yield _counted(frames[half:-half])
            yield from chain.from_iterable(map(_lines, frames[-half:]))
    lines = raised.message.splitlines() or [""]
    yield f"{raised.name}: {_cut(lines[0])}" if raised.message else raised.name
    yield from map(_cut, lines[1:_MESSAGE_LINES])
    if len(lines) > _MESSAGE_LINES:
        yield f"... {len(lines) - _MESSAGE_LINES} more lines"


def _lines(frame: StackFrame) -> Iterator[str]:
    yield f'  File "{frame.file}", line {frame.line}, in {frame.function}'
    if frame.text:
        yield f"    {_cut(frame.text)}"


def _counted(frames: list[StackFrame]) -> str:
    owners = Counter(frame.package or "Python itself" for frame in frames)
    named = ", ".join(f"{owner} {count}" for owner, count in owners.items()) if len(owners) > 1 else next(iter(owners))
    return f"  ... {counted(len(frames), 'frame')} of {named}"


def _cut(line: str, width: int = _WIDTH) -> str:
    return line if len(line) <= width else f"{line[:width]}…"


def altered_rows(altered: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, tuple[str, ...], int], ...]:
    """Return each release, the oldest first, with the first files that its run changed and the number of the others.

    Paths are relative to site-packages if possible.
    """
    return tuple(
        (release, tuple(map(in_environment, files[:_FILES])), max(0, len(files) - _FILES))
        for release, files in sorted(altered.items(), key=lambda pair: version_order(pair[0]))
    )
