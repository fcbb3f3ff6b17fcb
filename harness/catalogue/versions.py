"""Finds packages and their versions in a report: in lists, tables, commands that install, and paths of files.

Sentences are not read: they tell what somebody tried and what came of it, and either may be meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import field, frozen
from packaging.version import Version

from harness.catalogue.blocks import Block
from harness.catalogue.known import NAME, project_named
from harness.model import normalized_name, parsed_version

_VERSION = (
    r"v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|alpha|beta|post|dev)\.?\d*)*(?:\+\w+(?:\.\w+)*)?)"
    r"(?![\w/%-]|\.\d| ?[GMK]i?B)"
)
_DIGITS = re.compile(r"\d\.\d")
_ANY_VERSION = re.compile(rf"(?<![\w./<>~-])(?<!>=)(?<!<=){_VERSION}")
_PINNED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?\s?={2,3}\s?v?(?P<version>\d[\w.+!]*)")
# What stands between a name and its version in lists and tables.
_BETWEEN = r"(?:[\s`*'\"|│:=@(\u2013\u2014-]|(?:\.__)?version_*\b|library\b|\((?:GPU|CPU|with|acc)[^)]*\)){1,80}?"
_NAMED = re.compile(rf"{NAME}{_BETWEEN}{_VERSION}", re.I)
_PYTHON = re.compile(
    r"\b(?P<name>python)(?:\s*version)?[\s`*:=|(-]*v?(?P<version>3\.\d{1,2}(?:\.\d+)?)(?![\d.]*\d)", re.I
)
_SHOWN = re.compile(rf"^Name:\s*(?P<name>[\w.-]+)\s*\nVersion:\s*{_VERSION}", re.M)
_DIST_INFO = re.compile(rf"/(?P<name>\w[\w.]*)-{_VERSION}\.dist-info", re.I)
_PYTHON_FOLDER = re.compile(r"(?:python|Python)(3\.\d{1,2})[/\\]")
_NO_RELEASE = re.compile(r"dev|git|\+(?!cu\d|cpu|rocm|xpu|pt\d|computecanada)")
# Marks of lists and quotations, a question of a template, and where a package comes from.
_MARK = re.compile(
    r"[\s>*•+`|│\"'#-]*(?:\d+[.)]\s+)?(?:(?:which|what)\b[^?]*\?)?[\s`*]*(?:\[(?:pip3?|conda)\]\s+)?", re.I
)
_INSTALL = re.compile(r"[$!%]?\s*(?:python3? -m )?(?:(?:uv )?pip3? install|conda install|uv add)\b")
_TOOLS = re.compile(
    r"\b(?:cuda|cudnn|driver|rocm|ubuntu|debian|linux|windows|macos|gcc|glibc)\W*(?:version\W*)?v?\d[\w.]*", re.I
)
_WORD = re.compile(r"(?!(?:and|with|on|using|versions?)\b)\b[A-Za-z]{2,}", re.I)
_IN_LIST = re.compile(r"\s*(?:[-*•+|│#>]|\d+[.)])\s|[^:]{1,60}:(?:\s|$)")  # an item, a row, a heading, or "key: value"


@frozen
class Versions:
    """The versions that a report lists.

    `installed` maps projects to releases, `unreleased` those whose version is no release, `several` those that are
    listed with more than one. `python` is "3.12" or "3.12.4", None if it is not listed or not one.
    """

    installed: dict[str, str] = field(factory=dict)
    unreleased: dict[str, str] = field(factory=dict)
    several: dict[str, tuple[str, ...]] = field(factory=dict)
    python: str | None = None


def versions_in(blocks: Iterable[Block]) -> Versions:
    """Return the versions that the lists, tables, commands and paths of a report name."""
    blocks = tuple(blocks)
    listed: dict[str, dict[Version, str]] = {}
    for name, text in (pair for block in blocks for pair in _versions(block)):
        if "." in text and (version := parsed_version(text)) is not None:
            listed.setdefault(name, {}).setdefault(Version(version.public), text)
    pythons = {f"{version.major}.{version.minor}": text for version, text in listed.pop("python", {}).items()}
    pythons = pythons or {text: text for block in blocks for text in _PYTHON_FOLDER.findall(block.text)}
    single = {name: next(iter(of.items())) for name, of in listed.items() if len(of) == 1}
    return Versions(
        {name: str(version) for name, (version, text) in single.items() if not _NO_RELEASE.search(text)},
        {name: text for name, (_, text) in single.items() if _NO_RELEASE.search(text)},
        {name: tuple(map(str, sorted(of))) for name, of in listed.items() if len(of) > 1},
        next(iter(pythons.values())) if len(pythons) == 1 else None,
    )


def _versions(block: Block) -> Iterator[tuple[str, str]]:
    for pattern in (_SHOWN, _DIST_INFO):
        for match in pattern.finditer(block.text):
            yield normalized_name(match["name"]), match["version"]
    for paragraph in block.text.splitlines() if block.is_code else re.split(r"\n\s*\n", block.text):
        lines = [(line, _listed(line), _IN_LIST.match(line)) for line in paragraph.splitlines() if line.strip()]
        is_list = all(versions or mark for _, versions, mark in lines)
        yield from (pair for _, versions, mark in lines if is_list or block.is_code or mark for pair in versions)


def _listed(line: str) -> list[tuple[str, str]]:
    """Return the projects and versions of a line that has nothing else; of a command that installs, those pinned."""
    if _DIGITS.search(line) is None:
        return []
    rest = _MARK.sub("", line, count=1)
    is_install = _INSTALL.match(rest)
    pairs: list[tuple[str, str]] = []
    for pattern in (_PINNED,) if is_install else (_PINNED, _NAMED, _PYTHON):
        for match in pattern.finditer(rest):
            name = project_named(match["name"]) or normalized_name(match["name"])
            pairs.append((name, match["version"].rstrip(".")))
        rest = pattern.sub("\0", rest)
    if is_install or not pairs:
        return pairs
    rest = _TOOLS.sub("", re.sub(r"\([^()]*\)|\[[^\[\]]*\]|;.*", "", rest))
    others = [match["version"] for match in _ANY_VERSION.finditer(rest)]
    if _WORD.search(re.sub(r"(?:\s{2,}|\t).*", "", rest)) or (others and len(pairs) != 1):
        return []
    return pairs + [(name, version) for name, _ in pairs for version in others]  # a table of two sides
