"""Finds packages and versions in a report: those of its author's environment, and those that it calls good or bad."""

from __future__ import annotations

import enum
import itertools
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from packaging.version import Version

from harness.model import normalized_name, parsed_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.drafting.source import Block


# What a draft knows of this field: names of packages, columns of data sets, architectures of checkpoints.
FIELD: dict[str, Any] = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
KNOWN = frozenset(FIELD["packages"])
LAST_SUSPECTS = frozenset(FIELD["last-suspects"])
_PROJECTS: dict[str, str] = FIELD["modules"]
_SAID: dict[str, str] = FIELD["said"]

_ALIAS = "|".join(
    sorted(
        {re.escape(name).replace(r"\-", "[-_ ]?") for name in (*KNOWN, *_SAID, *map(normalized_name, _PROJECTS))},
        key=len,
        reverse=True,
    )
)
NAME = rf"(?<![\w/.@-])(?:hugging ?face )?(?P<name>{_ALIAS})(?![\w/]|-(?!\d))"


def project_named(text: str) -> str | None:
    """Return the project that a name in a list or a sentence means, None if it is not a known one."""
    name = normalized_name(text.strip("`*'\" ").replace(" ", "-"))
    said = {normalized_name(key.replace(" ", "-")): value for key, value in _SAID.items()}
    name = said.get(name, name)
    return name if name in KNOWN else None


def project_of_module(module: str) -> str | None:
    """Return the project that a top-level module belongs to, by name; None for the standard library."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top.startswith("_") or top in ("__main__", "google"):
        return None
    return _PROJECTS.get(top, normalized_name(top))


def project_of_file(path: str) -> str | None:
    """Return the project of a file in a traceback, None if it is not an installed one."""
    text = path.replace("\\", "/")
    match = re.search(r"(?:site|dist)-packages/([A-Za-z0-9_]+)(?:/|\.py|$)", text)
    if match is None:
        # An editable install, or a checkout: .../transformers/src/transformers/trainer.py
        match = re.search(r"/([A-Za-z0-9_]+)/src/\1/", text) or re.search(r"/src/([A-Za-z0-9_]+)/", text)
        if match is None or project_of_module(match[1]) not in KNOWN:
            return None
    return project_of_module(match[1])


_VERSION = (
    r"v?(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|alpha|beta|post|dev)\.?\d*)*(?:\+\w+(?:\.\w+)*)?)"
    r"(?![\w/%-]|\.\d| ?[GMK]i?B)"
)
_ANY_VERSION = re.compile(
    rf"(?<![\w./=<>~-]){_VERSION}|(?<=[=\s\w\]])(?<!>=)(?<!<=)=={_VERSION.replace('<version>', '<pinned>')}"
)
_PIN = re.compile(
    r"^\s*(?:\[(?:pip3?|conda)\]\s+)?(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?\s?={2,3}\s?(?P<version>[\w.+!-]+)\s*$"
)
_PINNED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?==(?P<version>\d[\w.+]*)")
_COLUMNS = re.compile(
    rf"^\s*(?:\[(?:pip3?|conda)\]\s+|[│|]\s*)?(?P<name>[A-Za-z][\w.-]*)\s*(?:\s|[│|])\s*{_VERSION}(?:\s+[\w.:-]+){{0,3}}\s*(?:[│|].*)?$"
)
_LISTED = re.compile(
    rf"^[\s>*•+-]*(?:\d+[.)]\s+)?[`*]*{NAME}[`*]*(?:\s+library)?(?:\s+[`*]*version[`*]*)?[`*]*(?:\s*\((?:GPU|CPU|with|acc)[^)]*\))?[`*]*"
    rf"\s*(?:[:=|@]|==|-|\u2014|\u2013|is)?\s*[`*|'\"]*\s*(?:version[:\s]\s*)?{_VERSION}",
    re.I,
)
_BANNER = re.compile(rf"{NAME}(?:\s+version)?\s*[:=]?\s+{_VERSION}", re.I)
_ATTRIBUTE = re.compile(rf"(?P<name>\w+)\.__version__\W+{_VERSION}")
_SHOWN = re.compile(rf"^Name:\s*(?P<name>[\w.-]+)\s*\nVersion:\s*{_VERSION}", re.M)
_PYTHON = re.compile(r"\bpython(?:\s*version)?[\s`*:=|(-]*v?(?P<version>3\.\d{1,2}(?:\.\d+)?)(?![\d.]*\d)", re.I)
_ALONE = re.compile(rf"\b(?:on|with|using|version)\s+{_VERSION}", re.I)
_PYTHON_FOLDER = re.compile(r"(?:python|Python)(?P<version>3\.\d{1,2})[/\\]")
_NO_RELEASE = re.compile(r"dev|git|\+(?!cu\d|cpu|rocm|xpu|pt\d|computecanada)")

_GOOD = re.compile(
    r"\b(?:work(?:s|ed|ing)?|fine|ok|okay|correct(?:ly)?|success\w*|passe[sd]"
    r"|no (?:such )?(?:problem|issue|error|crash)"
    r"|downgrad\w+|revert\w*|roll(?:ed|ing)? back|last (?:good|working)|before|prior to|previous(?:ly)?|until|pinn\w+"
    r"|everything (?:is|was)|as expected|as it did|good|earlier|older|went away|goes away|used to|trained|ran"
    r"|not (?:happen|occur|present|fail)\w*)\b",
    re.I,
)
_BAD = re.compile(
    r"\b(?:fail\w*|broke\w*|break\w*|crash\w*|error\w*|bug\w*|regress\w*|since|start(?:s|ed|ing) (?:with|from|in)"
    r"|as of|introduced|(?:after )?(?:upgrad|updat)\w+|bump\w*|raise[sd]?|throw\w*|wrong|bad|incorrect"
    r"|nan|slow\w*|hang\w*"
    r"|stop(?:s|ped) working|no longer|latest|newer?|onwards?|(?:first|only) (?:seen|appear\w*|happen\w*))\b",
    re.I,
)
_NOT_GOOD = re.compile(
    r"\b(?:not|n't|never|no longer|stop(?:s|ped)|nor)\s+(?:\w+\s+){0,2}"
    r"(?:work\w*|fine|ok|correct\w*|success\w*|pass\w*)\b"
    r"|n't work|\bused to work\b.{0,40}\bbut\b",
    re.I,
)
_NOT_BAD = re.compile(
    r"\b(?:not|n't|never|without|no|no longer|before)\s+(?:\w+\s+){0,2}"
    r"(?:fail|broke|break|crash|error|bug|regress|happen|occur|reproduc|present|affect|raise"
    r"|the (?:error|bug|issue|problem))",
    re.I,
)
_FIXED = re.compile(r"\b(?:fixed|resolved|solved)\s+(?:in|by|with|since)\b", re.I)
_STEP = re.compile(
    rf"(?:from\s+)?(?:{NAME}\s*(?:==|@|:)?\s*)?v?(?P<old>\d+(?:\.\d+)+[\w.]*?)\s*(?:->|→|=>|-->|➜|to|vs\.?|up to)\s*"
    rf"(?:{NAME.replace('<name>', '<again>')}\s*(?:==|@|:)?\s*)?v?(?P<new>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post)\d+)?)",
    re.I,
)
_SET_UP = re.compile(r"\W*(?:workaround\W+)?(?:(?:uv\s+)?pip3?\s+install|uv\s+add|with|using|on)\s", re.I)
_CLAUSE = re.compile(r"(?<=[;!?])\s+|(?<=\w)\.\s+|,\s+|\s+(?:but|while|whereas|however|yet)\s+|\n", re.I)
_WEIGHTS = {"freeze": 3, "list": 4, "shown": 4, "attribute": 3, "banner": 2, "prose": 1}


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
        if not bads and project in self.installed and goods:
            bads = [Version(self.installed[project])]
        if not bads and project in self.installed and fixes:
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
    prose = [title]
    for block in blocks:
        for name, version, kind in _versions(block):
            found.setdefault(name, Counter())[version] += _WEIGHTS[kind]
        for pattern, weight in ((_PYTHON, 3), (_PYTHON_FOLDER, 1)):
            pythons.update({match["version"]: weight for match in pattern.finditer(block.text)})
        if not block.is_code or not _looks_listed(block.text):
            prose.append(block.text if not block.is_code else "")
    best = {name: _best(counts) for name, counts in found.items()}
    installed = {name: version for name, version in best.items() if not _NO_RELEASE.search(version)}
    claims: dict[str, dict[str, VersionClaim]] = {}
    for text in (*prose, *comments):
        for name, version, claim in _claims(text, best, home):
            claims.setdefault(name, {}).setdefault(version, claim)
    for name, said in claims.items():
        _prefer_environment(installed, name, said)
    alone = next((match["version"] for text in prose if (match := _ALONE.search(text))), None)
    if home is not None and home not in best and alone is not None and alone not in claims.get(home, {}):
        installed.setdefault(home, alone)
    return Told(
        {name: _public(version) for name, version in installed.items()},
        {name: version for name, version in best.items() if name not in installed},
        claims,
        pythons.most_common(1)[0][0] if pythons else None,
    )


def _prefer_environment(installed: dict[str, str], name: str, said: dict[str, VersionClaim]) -> None:
    """Take the bad version as the environment's if the list is of the good one, or there is none."""
    bad = [version for version, claim in said.items() if claim is VersionClaim.BAD]
    if bad and (name not in installed or said.get(_public(installed[name])) is VersionClaim.GOOD):
        installed[name] = min(bad, key=Version)


def _versions(block: Block) -> Iterator[tuple[str, str, str]]:
    """Yield projects with their versions and the kind of the place."""
    for match in _SHOWN.finditer(block.text):
        yield normalized_name(match["name"]), match["version"], "shown"
    for match in _ATTRIBUTE.finditer(block.text):
        if name := project_named(match["name"]):
            yield name, match["version"], "attribute"
    for line in block.text.splitlines():
        yield from _of_line(line, block)


def _of_line(line: str, block: Block) -> Iterator[tuple[str, str, str]]:
    """Yield what one line tells: a pin, an entry of a list, or a version after a name."""
    pins = [_PIN.match(line)] if _PIN.match(line) else list(_PINNED.finditer(line))
    if pins and (block.is_code or "install" in line or len(pins) > 1 or _PIN.match(line)):
        found = [(pin["name"], pin["version"].rstrip(".")) for pin in pins if pin is not None]
        yield from ((normalized_name(name), version, "freeze") for name, version in found if _is_version(version))
        return
    listed = _LISTED.match(line)
    name = project_named(listed["name"]) if listed is not None else None
    if listed is not None and name is not None:
        is_list = len(line) < 100 and (block.is_code or line.lstrip()[:1] in "-*•+`|>" or _is_short(line, listed))
        yield name, listed["version"], "list" if is_list else "prose"
        if is_list:
            yield from _after_names(line[listed.end() :], "list")
            return
    elif listed is None and (row := _COLUMNS.match(line)) is not None:
        name = project_named(row["name"])
        if name is not None:
            yield name, row["version"], "list"
            return
    if not (block.is_code and block.language in ("python", "py")):
        is_banner = block.is_code or ("unsloth" in line.lower() and "==" in line)
        yield from _after_names(line, "banner" if is_banner else "prose")


def _after_names(text: str, kind: str) -> Iterator[tuple[str, str, str]]:
    for match in _BANNER.finditer(text):
        if name := project_named(match["name"]):
            yield name, match["version"], kind


def _is_short(line: str, match: re.Match[str]) -> bool:
    return len(line[match.end() :].strip()) < 40 and not re.search(r"\b(?:work|fail|broke|since|but)\w*", line, re.I)


def _claims(text: str, installed: dict[str, str], home: str | None) -> Iterator[tuple[str, str, VersionClaim]]:
    """Yield each project, version and claim in the sentences of a text."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*•\d#|])|\n(?=[A-Z])", text):
        if len(paragraph) > 3000 or re.match(r"^\s*[-*•|`]*\s*\S+ version", paragraph):
            continue
        for sentence in re.split(r"(?<=[a-z`)\d])[.!?]\s+(?=[A-Z])", paragraph):
            yield from _claims_of_sentence(sentence, installed, home)


def _claims_of_sentence(
    sentence: str, installed: dict[str, str], home: str | None
) -> Iterator[tuple[str, str, VersionClaim]]:
    if re.match(r"\W*python\b", sentence, re.I):
        return
    named = [(m.start(), name) for m in re.finditer(NAME, sentence, re.I) if (name := project_named(m["name"]))]
    spans: list[tuple[int, int]] = []
    for match in _STEP.finditer(sentence):
        context = sentence[max(0, match.start() - 60) : match.end() + 60]
        project = _project_at(match.start("old"), named, match["new"], installed, home)
        if project is None or not (_is_version(match["old"]) and _is_version(match["new"])):
            continue
        is_against = Version(match["old"]) > Version(match["new"]) and re.search(
            r"regress|broke|slower", sentence, re.I
        )
        if is_against and " vs" in match[0]:
            yield project, _public(match["new"]), VersionClaim.GOOD
            yield project, _public(match["old"]), VersionClaim.BAD
            continue
        if Version(match["old"]) >= Version(match["new"]) and not re.search(r"downgrad|revert|roll", context, re.I):
            continue
        old, new = match["old"], match["new"]
        if re.search(r"downgrad\w*|revert\w*|roll\w* back", context, re.I):
            old, new = new, old
        elif not (_BAD.search(sentence) or _GOOD.search(sentence) or re.search(r"->|→|=>|➜", match[0])):
            continue
        spans.append(match.span())
        yield project, _public(old), VersionClaim.GOOD
        yield project, _public(new), VersionClaim.BAD
    for begin, clause, claim in _claims_of_clauses(sentence):
        for match in _ANY_VERSION.finditer(clause):
            at, version = begin + match.start(), match["version"] or match["pinned"]
            if any(first <= at < last for first, last in spans) or not _is_version(version):
                continue
            project = _project_at(at, named, version, installed, home)
            if project is not None and not _is_python(sentence, at):
                yield project, _public(version), claim


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
    if _NOT_BAD.search(clause):
        return VersionClaim.GOOD
    good, bad = _GOOD.search(clause), _BAD.search(clause)
    if good and bad:
        # "the error goes away after downgrading to 4.51": what is done to the version decides.
        strong = re.search(
            r"downgrad|revert|roll\w* back|goes away|went away|work(?:s|ed)|fine|before|prior to|used to", clause, re.I
        )
        return VersionClaim.GOOD if strong else VersionClaim.BAD
    return VersionClaim.GOOD if good else VersionClaim.BAD if bad else None


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
    return name if name is not None and _is_near(version, installed.get(name)) else None


def _is_near(version: str, installed: str | None) -> bool:
    """Whether a number without a name can be a version of a project whose installed version is known."""
    if installed is None or not (_is_version(installed) and _is_version(version)):
        return installed is None
    return abs(Version(version).major - Version(installed).major) <= 1


def _is_python(sentence: str, at: int) -> bool:
    return (
        re.search(
            r"(?:python|cuda|driver|ubuntu|cudnn|rocm|windows|macos|gcc|glibc)\W*(?:version)?\W*v?$",
            sentence[:at],
            re.I,
        )
        is not None
    )


def _looks_listed(text: str) -> bool:
    return len(re.findall(r"==\d", text)) > 3


def _best(counts: Counter[str]) -> str:
    return max(counts, key=lambda version: (counts[version], -list(counts).index(version)))


def _is_version(text: str) -> bool:
    return "." in text and parsed_version(text) is not None


def _public(text: str) -> str:
    return Version(text).public
