"""What one value of a package axis asks for: a version as it stands, or releases by a word and a range."""

from __future__ import annotations

import enum
import re

from attrs import field, frozen
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


class Word(enum.StrEnum):
    """Which of a project's releases are meant; a range without a word means every release in it."""

    LATEST = "latest"
    PRERELEASES = "prereleases"
    MONTHLY = "monthly"
    MINORS = "minors"
    EVERY = ""


@frozen
class Selection:
    """Releases of one project: a word, how many (of `latest` alone), and the range that they must lie in."""

    word: Word
    count: int = 1
    within: SpecifierSet = field(factory=SpecifierSet)

    @property
    def follows_the_index(self) -> bool:
        """Whether it means what is newest on the day that it is asked."""
        return self.word in (Word.LATEST, Word.PRERELEASES)


def selection(project: str, value: str) -> Selection | None:
    """What a value asks for; None: it is one version, taken as it stands.

    Raises `ValueError`, whose text goes on after the value ("names peft, but ...").
    """
    if value[:1].isdigit():
        try:
            Version(value)
        except InvalidVersion:
            raise ValueError(_NEITHER) from None
        return None
    word, rest = _word(value.strip())
    count, rest = _count(word, rest)
    named = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", rest)
    if named is not None:
        if canonicalize_name(named.group()) != canonicalize_name(project):
            raise ValueError(
                _NEITHER if word is Word.EVERY else f"names {named.group()}, but this axis is of {project}"
            )
        rest = rest[named.end() :]
    try:
        within = SpecifierSet(rest)
    except InvalidSpecifier:
        raise ValueError(_NEITHER) from None
    if word is Word.EVERY and not within:
        raise ValueError(_NEITHER)
    return Selection(word, count, within)


_NEITHER = (
    "is neither a version such as 4.53.0, nor a range such as >=4.53,<5, nor latest, latest 5, prereleases, monthly or "
    "minors, which may be followed by a range"
)


def _word(text: str) -> tuple[Word, str]:
    first = re.match(r"[a-z]+(?=\s|$|[<>=!~])", text)
    try:
        word = Word(first.group() if first else "")
    except ValueError:  # it is the name of the project
        return Word.EVERY, text
    return word, text[len(word) :].lstrip()


def _count(word: Word, text: str) -> tuple[int, str]:
    found = re.match(r"(-?\d+)(?=\s|$|[<>=!~])", text)
    if found is None:
        return 1, text
    if word is not Word.LATEST:
        raise ValueError(_NEITHER)
    if int(found.group()) < 1:
        raise ValueError("asks for no release; give 1 or more")
    return int(found.group()), text[found.end() :].lstrip()
