"""Finds the public names in the message of an exception. Pure.

The patterns match CPython's own messages, and the phrases that projects use to announce a removal.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from harness.model import RaisedException

_ADVICE = re.compile(r"\b(use|using|instead|moved|renamed|replaced?|install|see|pass|call|import)\b", re.IGNORECASE)
_WHERE_TO = re.compile(r"\b(moved|renamed) to\b|\breplaced (by|with)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"])")
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
    (re.compile(r"No module named '(?P<a>\w+(?:\.\w+)+)'"), About.MODULE, "{a}", ""),
    (re.compile(r"type object '(?P<a>[\w.]+)' has no attribute '(?P<b>\w+)'"), About.MEMBER, "{a}.{b}", ""),
    (re.compile(r"'(?P<a>[\w.]+)' object has no attribute '(?P<b>\w+)'"), About.MEMBER, "{a}.{b}", ""),
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


def mentions(raised: RaisedException | None) -> tuple[Mention, ...]:
    """The names in the messages of an exception and its causes; those of the exception itself first."""
    found: dict[Mention, None] = {}
    for one in raised.chain() if raised is not None else ():
        for pattern, about, name, argument in _PATTERNS:
            for match in pattern.finditer(one.message):
                parts = match.groupdict()
                told = name.format(**parts).replace("<locals>.", "").strip(".")
                found[Mention(about, told, parts.get(argument) or "")] = None
    return tuple(found)


def advice(raised: RaisedException | None) -> str:
    """The advice in the message of an exception or of one of its causes, up to two sentences; "" if there is none."""
    for one in raised.chain() if raised is not None else ():
        sentences = _SENTENCE_END.split(" ".join(one.message[:2000].split()))
        told = [sentence for sentence in sentences[:1] if _WHERE_TO.search(sentence)]
        told += [sentence for sentence in sentences[1:] if _ADVICE.search(sentence)]
        if told and mentions(one):
            return " ".join(told[:2])
    return ""


def says_where_to(told: str) -> bool:
    """Whether a piece of advice names a new location or a replacement."""
    return _WHERE_TO.search(told) is not None


def literal_part(raised: RaisedException | None) -> str:
    """The longest part of the root cause's message that probably is a literal in the sources; "" if all are short."""
    last = list(raised.chain() if raised is not None else ())[-1:]
    if not last:
        return ""
    lines = last[0].message.splitlines()[:3]
    parts = [part.strip(" .,:;") for line in lines for part in _LITERAL.split(line)]
    longest = max(parts, key=len, default="")
    return longest if len(longest) >= 20 and " " in longest else ""
