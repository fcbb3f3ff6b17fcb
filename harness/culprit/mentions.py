"""Reads the message of an exception: the names in it, what it says about them, and the advice that it gives. Pure.

The patterns match CPython's own messages, and the phrases that projects use to announce a removal.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import RaisedException, StackFrame

_ADVICE = re.compile(r"\b(use|using|instead|moved|renamed|replaced?|install|see|pass|call|import)\b", re.IGNORECASE)
_WHERE_TO = re.compile(r"\b(moved|renamed) to\b|\breplaced (by|with)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"\buse\b|\binstead\b", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:^|[,;.:] )(?:please )?(use [^,;]{1,120}? instead)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")
_LITERAL = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\S*\d\S*|[<\[({][^>\])}]*[>\])}]")


class About(enum.Enum):
    """What a message says about a name."""

    NAME = "name"  # it does not exist
    MODULE = "module"  # it does not exist
    MEMBER = "member"  # the class or its instances lack it
    CALL = "call"  # it does not accept these arguments


@frozen
class Mention:
    """A name in a message. `name` is dotted as in the message; `argument` is a parameter of it, "" if none is named."""

    about: About
    name: str
    argument: str = ""


_PATTERNS: tuple[tuple[re.Pattern[str], About, str, str], ...] = (
    (re.compile(r"module '(?P<a>[\w.]+)' has no attribute '(?P<b>\w+)'"), About.NAME, "{a}.{b}", ""),
    (re.compile(r"cannot import name '(?P<b>\w+)' from (?:partially initialized module )?'(?P<a>[\w.]+)'"), About.NAME,
     "{a}.{b}", ""),
    (re.compile(r"No module named '(?P<a>\w+(?:\.\w+)*)'"), About.MODULE, "{a}", ""),
    (re.compile(r"type object '(?P<a>[\w.]+)' has no attribute '(?P<b>\w+)'"), About.MEMBER, "{a}.{b}", ""),
    (re.compile(r"'(?P<a>[\w.]+)' object has no attribute '(?P<b>\w+)'"), About.MEMBER, "{a}.{b}", ""),
    (re.compile(r"[`'\"](?P<b>\w+)(?:\(\))?[`'\"] (?:was|has been) removed from (?:the )?(?:class )?"
                r"[`'\"]?(?P<a>[A-Za-z_][\w.]*)"), About.MEMBER, "{a}.{b}", ""),
    (re.compile(r"(?P<a>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<arg>\w+)'"), About.CALL, "{a}", "arg"),
    (re.compile(r"(?P<a>[\w.<>]+)\(\) got some positional-only arguments passed as keyword"), About.CALL, "{a}", ""),
    (re.compile(r"(?P<a>[\w.<>]+)\(\) missing \d+ required [\w-]+ arguments?: '(?P<arg>\w+)'"), About.CALL,
     "{a}", "arg"),
    (re.compile(r"(?P<a>[\w.<>]+)\(\) takes (?:from \d+ to |at most |exactly )?\d+ positional arguments?"), About.CALL,
     "{a}", ""),
    (re.compile(r"(?P<a>[\w.<>]+)\(\) takes no (?:keyword )?arguments"), About.CALL, "{a}", ""),
    (re.compile(r"[`'\"](?P<a>[\w.]+)(?:\(\))?[`'\"] (?:was|is|has been|have been|are)(?: now)? "
                r"(?:removed|moved|renamed|replaced|expired|gone|no longer)"), About.NAME, "{a}", ""),
    (re.compile(r"\b(?P<a>\w+(?:\.\w+)+)(?:\(\))? (?:was|has been|is)(?: now)? (?:removed|moved|renamed|replaced)"),
     About.NAME, "{a}", ""),
)  # fmt: skip


_UNNAMED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def mentions(raised: RaisedException | None) -> tuple[Mention, ...]:
    """The names in the messages of an exception and its causes; those of the exception itself first."""
    mentioned: dict[Mention, None] = {}
    for exception in raised.chain() if raised is not None else ():
        for pattern, about, name, argument in _PATTERNS:
            for match in pattern.finditer(exception.message):
                parts = match.groupdict()
                dotted = name.format(**parts).replace("<locals>.", "").strip(".")
                mentioned[Mention(about, dotted, parts.get(argument) or "")] = None
        # A decorator that checks the arguments with `inspect.signature` does not say whose they are.
        if (unnamed := _UNNAMED.match(exception.message)) and (called := _called_with(unnamed[1], exception.frames)):
            mentioned[Mention(About.CALL, called, unnamed[1])] = None
        # A module's own `__getattr__` may raise with the name alone.
        bare = exception.message.strip("'\"")
        if exception.frames and exception.frames[-1].function == "__getattr__" and bare.isidentifier():
            module = exception.frames[-1].file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            mentioned[Mention(About.NAME, f"{module}.{bare}")] = None
    return tuple(mentioned)


_ABOUT_NAMES = ("AttributeError", "ImportError", "NameError", "TypeError")
_NAME = re.compile(r"\b(?!__\w+__\b)[A-Za-z_]\w{2,}")  # many classes define `__init__`
# The words of the interpreter's own messages about names, which a variable may have as its name, too.
_WORDS = re.compile(
    "accessed|and|another|arguments?|associated|attribute|bool|callable|cannot|circular|class|could|defined|did|dict|does|"
    "due|expected|float|for|found|free|from|function|given|got|had|has|import|imported|initialized|instance|int|invalid|"
    "iterable|its|keyword|likely|list|local|mean|method|missing|module|most|multiple|must|name|named|none|not|object|"
    "optional|partially|passed|positional|property|required|self|set|some|str|support|takes|that|the|this|tuple|type|"
    "unexpected|values?|variable|was|were|where|with|you",
    re.IGNORECASE,
)


Place = tuple[str, int]  # a file, as in `StackFrame.file`, and a line of a function; "" is any file, 0 any function


def names_of(raised: RaisedException | None) -> dict[str, Place]:
    """The names in the messages of an exception and its causes that are about names, whoever worded them.

    Each has the place that lacks it: a missing variable belongs to the file that uses it, a local one to the function.
    """
    return {
        name: _place_of(exception)
        for exception in (raised.chain() if raised is not None else ())
        if _is_one_of(exception, *_ABOUT_NAMES)
        for name in _NAME.findall(exception.message)
        if not _WORDS.fullmatch(name)
    }


def _place_of(raised: RaisedException) -> Place:
    if not raised.frames or not _is_one_of(raised, "NameError"):
        return "", 0
    last = raised.frames[-1]
    return last.file, last.line if _is_one_of(raised, "UnboundLocalError") else 0


def _is_one_of(raised: RaisedException, *names: str) -> bool:
    return any(name.rpartition(".")[2] in names for name in (raised.type, *raised.bases))


def _called_with(argument: str, frames: Sequence[StackFrame]) -> str:
    """The function that the innermost line with such a call passes an argument to by name, "" if there is none."""
    call = re.compile(rf"([A-Za-z_]\w*)\((?:[^()]|\([^()]*\))*?\b{argument}\s*=(?!=)")
    lines = (match[1] for frame in reversed(frames) if (match := call.search(frame.text)))
    name = next(lines, "")
    return f"{name}.__init__" if name[:1].isupper() else name


def advice(raised: RaisedException | None) -> str:
    """The advice in the message of an exception or of one of its causes, up to two sentences; "" if there is none."""
    for exception in raised.chain() if raised is not None else ():
        sentences = SENTENCE_END.split(" ".join(exception.message[:2000].split()))
        chosen = [sentence for sentence in sentences[:1] if _WHERE_TO.search(sentence)]
        chosen += [sentence for sentence in sentences[1:] if _ADVICE.search(sentence)]
        if chosen and mentions(exception):
            return ended_once(" ".join(chosen[:2]))
    return ""


def clause_with_advice(raised: RaisedException) -> str:
    """The part of a message that says what to use instead, for example after "please"; "" if there is none."""
    match = _CLAUSE.search(" ".join(raised.message[:2000].split()))
    return f"{match[1][:1].upper()}{match[1][1:]}." if match is not None else ""


def says_where_to(text: str) -> bool:
    """Whether a piece of advice names a new location or a replacement."""
    return _WHERE_TO.search(text) is not None


def says_what_instead(text: str) -> bool:
    """Whether a piece of advice names what to use instead."""
    return _INSTEAD.search(text) is not None


def literal_part(raised: RaisedException | None) -> str:
    """The longest part of the root cause's message that probably is a literal in the sources; "" if all are short."""
    last = list(raised.chain() if raised is not None else ())[-1:]
    if not last:
        return ""
    lines = last[0].message.splitlines()[:3]
    parts = [part.strip(" .,:;") for line in lines for part in _LITERAL.split(line)]
    longest = max(parts, key=len, default="")
    return longest if len(longest) >= 20 and " " in longest else ""


def ended_once(text: str) -> str:
    """A sentence with one full stop at its end, where a template adds another."""
    return f"{text[:-2]}." if text.endswith("..") and not text.endswith("...") else text
