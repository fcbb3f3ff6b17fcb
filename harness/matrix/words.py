"""Parses a value of a package axis: a version, a word and a range that select releases, or a commit: `main`, `@REV`."""

from __future__ import annotations

import enum
import re

from attrs import field, frozen
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


class Word(enum.StrEnum):
    """Which releases of a project to select; a range without a word selects all of its releases."""

    LATEST = "latest"
    PRERELEASES = "prereleases"
    MONTHLY = "monthly"
    MINORS = "minors"
    EVERY = ""
    COMMIT = "@"


@frozen
class Selection:
    """A selection of releases: a word, a count (for `latest` only) and a range; or a commit by its `revision`."""

    word: Word
    count: int = 1
    within: SpecifierSet = field(factory=SpecifierSet)
    revision: str = ""

    @property
    def follows_the_index(self) -> bool:
        """Whether it depends on what is newest today."""
        return self.word in (Word.LATEST, Word.PRERELEASES)


def selection(project: str, value: str) -> Selection | None:
    """Parse a value into a selection; None if it is a plain version.

    Raises `ValueError` with a text to append to the value ("names peft, but ...").
    """
    if value[:1].isdigit():
        try:
            Version(value)
        except InvalidVersion:
            raise ValueError(_NEITHER) from None
        return None
    if (revision := _revision(value.strip())) is not None:
        return Selection(Word.COMMIT, revision=revision)
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
    "must be a version like 4.53.0, a range like >=4.53,<5, or latest, latest 5, prereleases, monthly or minors, "
    "optionally followed by a range; or a commit: main, @BRANCH, @TAG or @HASH"
)


def _revision(text: str) -> str | None:
    """Return the branch, tag or hash that a value names, None if it selects releases. Raises `ValueError`."""
    if text == "main":
        return text
    if not text.startswith("@"):
        return None
    if not re.fullmatch(r"@[\w.][\w./+-]*", text):
        raise ValueError(_NEITHER)
    return text[1:]


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
        raise ValueError("selects no release; the count must be at least 1")
    return int(found.group()), text[found.end() :].lstrip()
