"""Reads the tracebacks in a report: of Python, IPython and rich, chained ones, and those in logs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from attrs import evolve

from harness.catalogue.known import LAST_SUSPECTS, project_of_file
from harness.model import RaisedException, StackFrame
from harness.model.text import plain

_PREFIX = re.compile(
    r"^(?: {0,3}>(?!>) ?"  # a quotation in Markdown; pytest marks a line of source so
    r"|\[(?:default|rank)?\d+\]:?[:|]?\s?(?:\[rank\d+\]:\s?)?"
    r"|\((?:\w+ )?(?:pid=|rank=)[^)]*\)\s"
    r"|[\w.-]+\s+\|\s(?=\s|\w)"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+(?:-\s+)?(?:\S+\s+-\s+)?(?:\[?(?:ERROR|CRITICAL|INFO|WARNING)\]?:?\s+)"
    r"(?:-\s+)?"
    r"|(?:ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\]\s"
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z\s?"
    r"|E {3,7}(?=\w))"
)
_BOX = re.compile(r"^\s*[│║]\s?(.*?)\s*[│|║╮╯]?\s*$")
_START = re.compile(r"Traceback \(most recent call last\)")
_FILE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$')
_IPYTHON = (
    re.compile(r"^\s*File (?P<file>[^\s\"][^\n]*?\.py[x]?):(?P<line>\d+)(?:, in (?P<function>[\w.<>]+).*)?$"),
    re.compile(r"^\s*\[?(?P<file>[~/\w][^\s()\]]*\.pyx?)(?:\]\([^)]*\))? in (?P<function>[\w.<>]+)\(?.*$"),
    re.compile(r"^\s*\[?(?P<file><?ipython-input-[^\s>\]]*>?)(?:\]\([^)]*\))? in (?P<function>[\w.<>]+).*$"),
    re.compile(r"^\s*(?P<file>(?:Cell )?In ?\s*\[\d+\])(?:, (?:in )?)?(?:line (?P<line>\d+)|(?P<function><[^>]+>)).*$"),
    re.compile(r"^\s*(?P<file>(?:/|~/|[A-Z]:\\)[^\s:]+\.py):(?P<line>\d+) in (?P<function>[\w.<>]+)\s*$"),  # rich
)
_PYTEST = re.compile(r"^(?P<file>[\w./-]+\.py):(?P<line>\d+): (?:in )?(?P<function>\w+)?\s*$")
_ARROW = re.compile(r"^\s*(?:-+>|❱)\s*(?P<line>\d+)\s(?P<source>.*)$")
_LISTED = re.compile(r"^\s*(?:-+>|❱)?\s*\d+(?:\s|$)")  # IPython and rich number the lines of the source
EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Exists|Failed|Failure)"
    r"|(?<=\.)[A-Z]\w+|Exception))(?::\s?(?P<message>.*))?$"
)
_INLINE = re.compile(
    r"(?<![\w.])(?P<type>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))(?::\s+|`:?\s*[`\"'])"
    r"(?P<message>(?:\[[^\]\n]*\]|[^\[\]`\n]){4,400})"
)
_OF_IMPORT = re.compile(r"cannot import name '[\w.]+' from '[\w.]+'|No module named '[\w.]+'")
_CHAIN = re.compile(r"(?:During handling of the above|The above exception was the direct cause)")
# Words of an exception that only wraps another.
_WRAPPER = re.compile(
    r"^(?:Failed to import|An error occurred while (?:generating|loading)|Could not import module|.*following error)",
    re.I,
)
_ABOVE_PACKAGE = re.compile(r".*(?:site|dist)-packages/|.*/src/(?=\w+/)")
_WORDS = re.compile(r"[A-Za-z_]{2,}")


def reason_of(raised: RaisedException) -> RaisedException:
    """Return the exception that says what went wrong: this one, or the cause that it only wraps."""
    wraps = _WRAPPER.match(raised.message) is not None or not raised.message
    return reason_of(raised.cause) if raised.cause is not None and wraps else raised


def frames_of(raised: RaisedException) -> tuple[StackFrame, ...]:
    """Return the frames of an exception and of its causes; the innermost of what went wrong last."""
    others = [frame for cause in reversed(list(raised.chain())[1:]) for frame in cause.frames]
    return (*raised.frames, *others) if reason_of(raised) is not raised else (*others, *raised.frames)


def frame_of(raised: RaisedException) -> StackFrame | None:
    """Return the innermost frame in an installed package that is not the usual end of every traceback, else any."""
    inside = [frame for frame in reversed(frames_of(raised)) if frame.package]
    return next((frame for frame in inside if frame.package not in LAST_SUSPECTS), next(iter(inside), None))


def tracebacks_of(text: str) -> tuple[RaisedException, ...]:
    """Return the exceptions in a text, each with its chain; the last of a chain stands for it.

    The `package` of a frame is its project; `line` is 0 and `text` "" if the text does not have them.
    """
    lines = [_stripped(line) for line in plain(text).splitlines()]
    exceptions: list[RaisedException] = []
    frames: list[StackFrame] = []
    is_open = is_linked = False
    for number, line in enumerate(lines, start=1):
        is_linked = is_linked or _CHAIN.search(line) is not None
        if _START.search(line):
            frames, is_open = [], True
            continue
        frame = _frame(line)
        if frame is not None:
            frames.append(frame)
            is_open = True
            continue
        if arrow := _ARROW.match(line):
            if frames and not frames[-1].line:
                frames[-1] = evolve(frames[-1], line=int(arrow["line"]), text=arrow["source"].strip())
            continue
        stripped = line.strip("* ")
        quoted = stripped[1:].partition("`")[0] if stripped.startswith("`") else stripped.strip("` ")
        match = EXCEPTION.match(quoted)
        if match is None:
            if frames and not frames[-1].text and line.startswith((" ", "\t")) and not _LISTED.match(line):
                frames[-1] = evolve(frames[-1], text=line.strip())
            continue
        if frames or is_open:
            message = "\n".join([match["message"] or "", *itertools.takewhile(_goes_on, lines[number : number + 11])])
            cause = exceptions.pop() if is_linked and exceptions else None
            exceptions.append(RaisedException(match["type"], message.strip(), frames=tuple(frames), cause=cause))
            frames, is_open, is_linked = [], False, False
        elif match["message"] and not any(exception.frames for exception in exceptions):
            below = [frame for line in lines[number : number + 40] if (frame := _frame(line)) is not None]
            exceptions.append(RaisedException(match["type"], match["message"], frames=tuple(below)))
    return tuple(exceptions) or tuple(_inline(text))


def best_traceback(candidates: Iterable[RaisedException], title: str) -> RaisedException | None:
    """Return the exception that a report is about: the one that its title names, else the one with most frames."""
    words = set(_WORDS.findall(title.lower()))

    def rank(raised: RaisedException) -> tuple[int, int]:
        reason = reason_of(raised)
        own = set(_WORDS.findall(f"{reason.name} {reason.message[:200]}".lower()))
        return len(own & words), len(frames_of(raised))

    return max(candidates, key=rank, default=None)


def first_line(message: str) -> str:
    """Return the first line of a message, which identifies an error; later lines are mostly advice and dumps."""
    return message.strip().partition("\n")[0].rstrip()


def suspects(raised: RaisedException | None) -> tuple[str, ...]:
    """Return the projects in a traceback, in order of suspicion: the innermost first, and those in every one last."""
    inner = [frame.package for frame in reversed(frames_of(raised))] if raised is not None else []
    names = [name for name in dict.fromkeys(inner) if name]
    return (*(n for n in names if n not in LAST_SUSPECTS), *(n for n in names if n in LAST_SUSPECTS))


def _stripped(line: str) -> str:
    for _ in range(3):
        line = _PREFIX.sub("", line)
    return _BOX.sub(r"\1", line)


def _frame(line: str) -> StackFrame | None:
    match = next(filter(None, (pattern.match(line) for pattern in (_FILE, *_IPYTHON, _PYTEST))), None)
    if match is None:
        return None
    parts = match.groupdict()
    package = project_of_file(parts["file"]) or ""
    file = parts["file"].replace("\\", "/")
    # Below site-packages, or a path that can't be one.
    file = _ABOVE_PACKAGE.sub("", file) if package or "-packages/" in file else f"/{file.lstrip('/')}"
    return StackFrame(file, int(parts.get("line") or 0), parts.get("function") or "<module>", package)


def _goes_on(line: str) -> bool:
    """Whether a line below the first one of a message continues it."""
    is_next = _START.search(line) or _CHAIN.search(line) or _frame(line) or EXCEPTION.match(line.strip())
    return bool(line.strip()) and not is_next and not line.startswith(("```", "#", "$ ", ">>> "))


def _inline(text: str) -> Iterator[RaisedException]:
    """Exceptions that a sentence names with their message, else those whose message tells what they are."""
    named = [RaisedException(match["type"], match["message"].strip(" `")) for match in _INLINE.finditer(text)]
    yield from named or [
        RaisedException("ImportError" if match[0].startswith("cannot") else "ModuleNotFoundError", match[0])
        for match in _OF_IMPORT.finditer(text)
    ]
