"""Finds packages and versions in a report: those of its author's environment, and those that it calls good or bad."""

from __future__ import annotations

import enum
import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.version import Version

from harness.drafting.known import FIELD, NAME, project_named
from harness.model import normalized_name, parsed_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.drafting.source import Block


_VERSION = (
    r"v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|alpha|beta|post|dev)\.?\d*)*(?:\+\w+(?:\.\w+)*)?)"
    r"(?![\w/%-]|\.\d| ?[GMK]i?B)"
)
_ANY_VERSION = re.compile(rf"(?<![\w./<>~-])(?<!>=)(?<!<=){_VERSION}")
_PINNED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?\s?={2,3}\s?(?P<version>\d[\w.+!-]*)")
# What stands between a name and its version in lists, tables and sentences.
_BETWEEN = r"(?:[\s`*'\"|│:=@(\u2013\u2014-]|(?:\.__)?version_*\b|library\b|is\b|\((?:GPU|CPU|with|acc)[^)]*\)){1,80}?"
_NAMED = re.compile(rf"{NAME}{_BETWEEN}{_VERSION}", re.I)
_SHOWN = re.compile(rf"^Name:\s*(?P<name>[\w.-]+)\s*\nVersion:\s*{_VERSION}", re.M)
_DIST_INFO = re.compile(rf"/(?P<name>\w[\w.]*)-{_VERSION}\.dist-info", re.I)
_PYTHON = re.compile(r"\bpython(?:\s*version)?[\s`*:=|(-]*v?(?P<version>3\.\d{1,2}(?:\.\d+)?)(?![\d.]*\d)", re.I)
_ALONE = re.compile(rf"\b(?:on|with|using|version)\s+{_VERSION}", re.I)
_PYTHON_FOLDER = re.compile(r"(?:python|Python)(?P<version>3\.\d{1,2})[/\\]")
_NO_RELEASE = re.compile(r"dev|git|\+(?!cu\d|cpu|rocm|xpu|pt\d|computecanada)")
_LIST_MARK = re.compile(r"[\s>*•+`|│-]*(?:\d+[.)]\s+)?[`*]*(?:\[(?:pip3?|conda)\]\s+)?$")


def one_of(words: str, before: str = r"\b", after: str = r"\b") -> re.Pattern[str]:
    """Return a pattern for any of these words of known.toml."""
    return re.compile(rf"{before}(?:{'|'.join(FIELD[words])}){after}", re.I)


_GOOD, _BAD, _SURELY_GOOD = one_of("good-words"), one_of("bad-words"), one_of("surely-good-words", after="")
_NOT_GOOD = one_of("good-words", r"(?:\b(?:not|never|stop(?:s|ped)|nor)|n't|no longer)\s+(?:\w+\s+){0,2}")
_NOT_BAD = one_of("bad-words", r"(?:\b(?:not|never|without|no|before)|n't|no longer)\s+(?:\w+\s+){0,2}", "")
_FIXED = re.compile(r"\b(?:fixed|resolved|solved)\s+(?:in|by|with|since)\b", re.I)
_STEP = re.compile(
    rf"(?:from\s+)?(?:{NAME}\s*(?:==|@|:)?\s*)?v?(?P<old>\d+(?:\.\d+)+[\w.]*?)\s*(?:->|→|=>|-->|➜|to|vs\.?|up to)\s*"
    rf"(?:{NAME.replace('<name>', '<again>')}\s*(?:==|@|:)?\s*)?v?(?P<new>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post)\d+)?)",
    re.I,
)
_SET_UP = re.compile(r"\W*(?:workaround\W+)?(?:(?:uv\s+)?pip3?\s+install|uv\s+add|with|using|on)\s", re.I)
_OTHER_THINGS = re.compile(
    r"(?:python|cuda|driver|ubuntu|cudnn|rocm|windows|macos|gcc|glibc)\W*(?:version)?\W*v?$", re.I
)
_CLAUSE = re.compile(r"(?<=[;!?])\s+|(?<=\w)\.\s+|,\s+|\s+(?:but|while|whereas|however|yet)\s+|\n", re.I)
_IN_LIST = 4


class VersionClaim(enum.Enum):
    """What a report says of a version."""

    GOOD = "good"
    BAD = "bad"
    FIXED = "fixed"


@frozen
class Told:
    """The versions that a report tells.

    `installed` maps projects to the versions of the author's environment; `unreleased` those whose version is no
    release. `claims` maps a project to versions and what is said of them. `python` is "3.12" or "3.12.4".
    """

    installed: dict[str, str] = field(factory=dict)
    unreleased: dict[str, str] = field(factory=dict)
    claims: dict[str, dict[str, VersionClaim]] = field(factory=dict)
    python: str | None = None

    def bounds(self, project: str) -> tuple[str | None, str | None]:
        """Return the good and the bad version of a project that the text gives; the closest ones of several."""
        said = self.claims.get(project, {})

        def having(claim: VersionClaim) -> list[Version]:
            return sorted({Version(text) for text, one in said.items() if one is claim})

        goods, bads, fixes = having(VersionClaim.GOOD), having(VersionClaim.BAD), having(VersionClaim.FIXED)
        if not bads and project in self.installed and (goods or fixes):
            bads = [Version(self.installed[project])]
        older = [good for good in goods if not bads or good < bads[0]]
        if older or not (goods or fixes):
            return str(older[-1]) if older else None, str(bads[0]) if bads else None
        newer = [one for one in (*fixes, *goods) if not bads or one > bads[-1]]
        return (str(min(newer)) if newer else None), (str(bads[-1]) if bads else None)


def versions_in(blocks: Iterable[Block], title: str, comments: Iterable[str] = (), home: str | None = None) -> Told:
    """Return what a report tells about versions; `home` is the project of its tracker.

    What is said in comments counts only as a claim, because others have other environments.
    """
    found: dict[str, Counter[str]] = {}
    pythons: Counter[str] = Counter()
    blocks = tuple(blocks)
    prose = [title, *(block.text for block in blocks if not block.is_code)]
    for block in blocks:
        for name, version, weight in _versions(block):
            found.setdefault(name, Counter())[version] += weight
        for pattern, weight in ((_PYTHON, 3), (_PYTHON_FOLDER, 1)):
            pythons.update({match["version"]: weight for match in pattern.finditer(block.text)})
    best = {name: counts.most_common(1)[0][0] for name, counts in found.items()}
    installed = {name: version for name, version in best.items() if not _NO_RELEASE.search(version)}
    claims: dict[str, dict[str, VersionClaim]] = {}
    for text in (*prose, *comments):
        for name, version, claim in _claims(text, best, home):
            claims.setdefault(name, {}).setdefault(version, claim)
    for name, said in claims.items():
        # The bad version is that of the environment if the list is of the good one, or there is none.
        bad = [version for version, claim in said.items() if claim is VersionClaim.BAD]
        if bad and (name not in installed or said.get(_public(installed[name])) is VersionClaim.GOOD):
            installed[name] = min(bad, key=Version)
    alone = next((match["version"] for text in prose if (match := _ALONE.search(text))), None)
    if home is not None and home not in best and alone is not None and alone not in claims.get(home, {}):
        installed.setdefault(home, alone)
    return Told(
        {name: _public(version) for name, version in installed.items()},
        {name: version for name, version in best.items() if name not in installed},
        claims,
        next((version for version, _ in pythons.most_common(1)), None),
    )


def _versions(block: Block) -> Iterator[tuple[str, str, int]]:
    """Yield projects with their versions and a weight: entries of a list count more than words in a sentence."""
    for match in _SHOWN.finditer(block.text):
        yield normalized_name(match["name"]), match["version"], _IN_LIST
    for line in block.text.splitlines():
        for match in _DIST_INFO.finditer(line):
            yield normalized_name(match["name"]), match["version"], _IN_LIST
        pins = list(_PINNED.finditer(line))
        for pin in pins:
            if _is_version(version := pin["version"].rstrip(".")):
                yield normalized_name(pin["name"]), version, _IN_LIST
        for match in () if pins else _NAMED.finditer(line):
            if name := project_named(match["name"]):
                yield name, match["version"], _IN_LIST if _LIST_MARK.match(line[: match.start()]) else 1


def _claims(text: str, installed: dict[str, str], home: str | None) -> Iterator[tuple[str, str, VersionClaim]]:
    """Yield each project, version and claim in the sentences of a text."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*•\d#|])|\n(?=[A-Z])", text):
        if len(paragraph) > 3000 or re.match(r"^\s*[-*•|`]*\s*\S+ version", paragraph):
            continue
        for sentence in re.split(r"(?<=[a-z`)\d])[.!?]\s+(?=[A-Z])", paragraph):
            if not re.match(r"\W*python\b", sentence, re.I):
                yield from _claims_of_sentence(sentence, installed, home)


def _claims_of_sentence(
    sentence: str, installed: dict[str, str], home: str | None
) -> Iterator[tuple[str, str, VersionClaim]]:
    named = [(m.start(), name) for m in re.finditer(NAME, sentence, re.I) if (name := project_named(m["name"]))]
    steps = [(step, said) for step in _STEP.finditer(sentence) if (said := _claims_of_step(step, sentence))]
    # Where it stands, a version that tells which project is meant, the version, and the claim.
    told = [(step.start("old"), step["new"], *one) for step, said in steps for one in said.items()]
    for begin, clause, claim in _claims_of_clauses(sentence):
        for match in _ANY_VERSION.finditer(clause):
            at, version = begin + match.start(), match["version"]
            is_other = _OTHER_THINGS.search(sentence[:at]) or any(one.start() <= at < one.end() for one, _ in steps)
            if not is_other and _is_version(version):
                told.append((at, version, version, claim))
    for at, near, version, claim in told:
        project = _project_at(at, named, near, installed, home)
        if project is not None:
            yield project, _public(version), claim


def _claims_of_step(match: re.Match[str], sentence: str) -> dict[str, VersionClaim]:
    """Return what a step from one version to another says of both; nothing if it says nothing."""
    old, new = match["old"], match["new"]
    if not (_is_version(old) and _is_version(new)):
        return {}
    if not (_BAD.search(sentence) or _GOOD.search(sentence) or ">" in match[0]):
        return {}
    older, newer = sorted((old, new), key=Version)
    return {older: VersionClaim.GOOD, newer: VersionClaim.BAD}


def _claims_of_clauses(sentence: str) -> Iterator[tuple[int, str, VersionClaim]]:
    """Yield where each clause begins that claims something, the clause, and the claim."""
    carried: VersionClaim | None = None
    start = 0
    clauses = _CLAUSE.split(sentence)
    for clause, after in itertools.zip_longest(clauses, clauses[1:], fillvalue=""):
        begin = sentence.find(clause, start)
        start = begin + len(clause)
        claim = _claim(clause) or (None if re.search(NAME, clause, re.I) else carried)
        if claim is None and _SET_UP.match(clause) and not _ANY_VERSION.search(after):
            claim = _claim(after)  # "with 4.51.3", and what came of it
        if claim is not None:
            yield begin, clause, claim
        carried = claim


def _claim(clause: str) -> VersionClaim | None:
    if _FIXED.search(clause):
        return VersionClaim.FIXED
    if _NOT_GOOD.search(clause):
        return VersionClaim.BAD
    # "the error goes away after downgrading to 4.51": what is done to the version decides.
    if _NOT_BAD.search(clause) or _SURELY_GOOD.search(clause):
        return VersionClaim.GOOD
    return VersionClaim.BAD if _BAD.search(clause) else VersionClaim.GOOD if _GOOD.search(clause) else None


def _project_at(
    at: int, named: list[tuple[int, str]], version: str, installed: dict[str, str], home: str | None
) -> str | None:
    """Return the project of a version in a sentence: the last one named before it, else one that fits."""
    before = [name for start, name in named if start <= at]
    if before:
        return before[-1]
    with_it = [name for name, own in installed.items() if _is_version(own) and _public(own) == _public(version)]
    if len(with_it) == 1:
        return with_it[0]
    name = named[0][1] if named else home
    known = parsed_version(installed.get(name or ""))
    is_near = known is None or abs(Version(version).major - known.major) <= 1
    return name if is_near else None


def _is_version(text: str) -> bool:
    return "." in text and parsed_version(text) is not None


def _public(text: str) -> str:
    return Version(text).public
