"""Writes a repro from a report: metadata with what the report tells, its script, and a mark at every gap."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from packaging.version import Version

from harness.drafting.known import FIELD, KNOWN, LAST_SUSPECTS, project_named, project_of_module
from harness.drafting.scripts import Script, installs_in, script_of
from harness.drafting.source import Block, blocks_of
from harness.drafting.stand_ins import StandIns, with_stand_ins
from harness.drafting.tracebacks import best_traceback, first_line, frame_of, reason_of, suspects, tracebacks_of
from harness.drafting.versions import Told, VersionClaim, versions_in
from harness.model import RaisedException
from harness.model.repro import parse_repro
from harness.model.text import one_line
from harness.redact import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.drafting.source import Report


MARK = "FILL IN"
_MOST_SUBJECTS = 5
_ON_GPU = re.compile(r"\.cuda\(|[\"']cuda(?::\d+)?[\"']|\bFastLanguageModel\b|\bFastModel\b|load_in_[48]bit\s*=\s*True")
_MAYBE_GPU = re.compile(r"cuda\.is_available\(\)")
_LACKING = re.compile(
    r"cannot import name .* from '(\w+)|No module named '(?=\w+\.)(\w+)|module '(\w+)[\w.]*' has no attribute"
)
_PLACEHOLDER = re.compile(
    r"<(?:your|my|path|insert|model|dataset)[^>\n]{0,40}>|[\"'](?:path/to|/path/to|your[-_ ])[^\"'\n]*[\"']", re.I
)
_OLDEST_PYTHON = Version("3.9")


@frozen
class Gap:
    """Something that the report does not tell: `what`, and what to do about it."""

    what: str
    todo: str


@frozen
class Draft:
    """A drafted repro: its `source`, and what was read of the `report`."""

    report: Report
    told: Told
    raised: RaisedException | None
    script: Script
    stand_ins: StandIns
    name: str = ""
    source: str = ""
    subjects: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()

    def line_of(self, gap: Gap) -> int:
        """Return the line of a gap's mark in the source, from 1."""
        lines = enumerate(self.source.splitlines(), 1)
        return next((number for number, line in lines if gap.what in line and MARK in line), 1)


def draft(report: Report, name: str = "") -> Draft:
    """Draft a repro from a report. Models and data of a hub are replaced. Nothing of it is run."""
    report = evolve(report, text=hide_secrets(report.text), comments=tuple(map(hide_secrets, report.comments)))
    blocks = blocks_of(report.text)
    comments = [block for text in report.comments for block in blocks_of(text)]
    home = project_named(report.repository.rpartition("/")[2])
    others = (one for text in (report.title, *report.comments) for one in tracebacks_of(text))
    raised = best_traceback(tracebacks_of(report.text), report.title) or best_traceback(others, report.title)
    told = versions_in(blocks, report.title, report.comments, home or next(iter(suspects(raised)), _lacking(raised)))
    script = script_of(blocks, raised, comments)
    made = with_stand_ins(script.code) if script.wrong_line is None else StandIns(script.code)
    found = Draft(report, told, raised, script, made)
    found = evolve(found, subjects=_subjects(found, home))
    found = evolve(found, dependencies=_dependencies(found, blocks), name=name or _name(report, found.subjects))
    found = evolve(found, gaps=tuple(_gaps(found)))
    found = evolve(found, source=_source(found))
    parse_repro(found.source, name=found.name)  # what it writes can be read
    return found


def _subjects(parts: Draft, home: str | None) -> tuple[str, ...]:
    """Return the projects to bisect over, in order of suspicion.

    First those that the text itself calls good in one version and bad in another, or that it calls bad and that lack
    what could not be imported, then those of the traceback, the innermost first, then the tracker's own and what the
    script imports: what the error names before the rest, and the library of data last if they are generated. What is
    in every traceback comes last.
    """
    told, installed = parts.told, parts.told.installed
    claimed = [name for name in told.claims if all(told.bounds(name))]
    lacking = _lacking(parts.raised)
    if lacking is not None and VersionClaim.BAD in told.claims.get(lacking, {}).values():
        claimed.append(lacking)
    imported = [*([home] if home else []), *_imported(parts)]
    framed = list(suspects(parts.raised))
    found = [name for name in dict.fromkeys((*claimed, *framed, *imported)) if name in KNOWN or name in framed]
    likely = [name for name in found if name not in LAST_SUSPECTS or name in claimed or name == home]
    likely = likely or found or [n for n in (*told.unreleased, *installed) if n not in LAST_SUSPECTS][:1]
    with_version = [name for name in likely if name in installed or name in claimed]
    return tuple((with_version or likely)[:_MOST_SUBJECTS])


def _lacking(raised: RaisedException | None) -> str | None:
    """Return the known project that lacks what could not be imported from it, None if that is not what went wrong."""
    found = _LACKING.search(reason_of(raised).message) if raised is not None else None
    name = project_of_module(next(filter(None, found.groups()))) if found is not None else None
    return name if name in KNOWN else None


def _imported(parts: Draft) -> list[str]:
    """Return the projects that the script imports, those that the error names by a class or function first."""
    script, raised = parts.script, parts.raised
    told = f"{parts.report.title} {reason_of(raised).message if raised is not None else ''}"
    words = set(re.findall(r"\w+", told))
    named = {project_of_module(module) for name, module in script.imported_names if name in words}
    is_generated = any("generated" in text for text in parts.stand_ins.replaced)
    return sorted(script.projects, key=lambda name: (name not in named, is_generated and name == "datasets"))


def _dependencies(parts: Draft, blocks: Iterable[Block]) -> tuple[str, ...]:
    """Return the requirements, with the versions that the report tells.

    The suspects come first: of several solutions, a resolver takes the one with the newest release of the first.
    """
    told, script = parts.told, parts.script
    named = [*parts.subjects, *script.projects]
    named += [name for name, pattern in FIELD["needed"].items() if re.search(pattern, parts.stand_ins.code)]
    named += parts.stand_ins.projects
    if not {"transformers", "diffusers"}.isdisjoint(named):
        named.append("torch")  # which they do not require themselves
    named += [name for name in FIELD["beside"] if name in told.installed]
    named += [name for block in blocks for name in installs_in(block.text)]
    pinned = {name: f"{name}=={version}" for name, version in told.installed.items()}
    return tuple(pinned.get(name, name) for name in dict.fromkeys(named))


def _gaps(parts: Draft) -> Iterable[Gap]:
    script, told = parts.script, parts.told
    if not script.code:
        yield Gap("the code", "the report has none that can be run: write a script that fails as it tells")
    elif script.wrong_line is not None:
        yield Gap(
            "the code",
            f"line {script.wrong_line} of the report's code is not Python: correct it, and take off the '# '",
        )
    if parts.raised is None:
        yield Gap(
            "the signature",
            "the report has no traceback: give exception and message; or metric and a bound, output, hang or crash",
        )
    if not parts.subjects:
        yield Gap("the subject", "name the package to bisect over: [tool.harness.subjects.NAME]")
    for name in parts.subjects:
        if told.bounds(name)[1] is None and name not in told.installed and name not in told.unreleased:
            yield Gap(f"the version of {name}", "the report does not tell it: pin it in dependencies, or leave it")
    for name, version in told.unreleased.items():
        if name in (*parts.subjects, *parts.dependencies):
            yield Gap(f"{name} {version}", "it is no release: name the next release, or a commit with --git")
    for name in script.undefined:
        yield Gap(name, "the report's code uses it without defining it: define it above")
    for name in parts.stand_ins.unknown:
        yield Gap(
            name, "not a model that is known here: give a folder, tiny_model(...), or leave it and allow --network"
        )
    if found := _PLACEHOLDER.search(parts.stand_ins.code):
        yield Gap(one_line(found[0], 60), "a placeholder of the report: put in a value")


def _source(parts: Draft) -> str:
    """Return the text of the repro."""
    import jinja2  # which takes a while to import

    told, raised = parts.told, parts.raised
    minor = ".".join((told.python or "").split(".")[:2])
    is_old = bool(minor) and Version(minor) < _OLDEST_PYTHON
    title = one_line(parts.report.title, 100).replace('"""', "'''").replace("\\", "/").strip().rstrip('"') or "A report"
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.drafting", ""),
        autoescape=False,  # noqa: S701 - it is Python
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["json"] = partial(json.dumps, ensure_ascii=False)
    text = templates.get_template("repro.py.j2").render(
        parts=parts,
        mark=MARK,
        python=f">={_OLDEST_PYTHON}" if is_old else f"=={minor}.*" if minor else "",
        device=_device(parts.stand_ins.code),
        frame=frame_of(raised) if raised is not None else None,
        reason=reason_of(raised) if raised is not None else None,
        subjects=[(name, *_bounds(name, told), _held(name, parts.dependencies)) for name in parts.subjects],
        message=first_line(reason_of(raised).message) if raised is not None else "",
        title=title if title[-1:] in ".?!…" else f"{title}.",
    )
    return text.rstrip() + "\n"


def _bounds(name: str, told: Told) -> tuple[str | None, str | None]:
    """The bounds of a subject: what the text calls good, and the author's version as the bad end."""
    good, bad = told.bounds(name)
    installed = told.installed.get(name)
    return good, installed if bad is None and installed != good else bad


def _held(name: str, dependencies: Iterable[str]) -> list[str]:
    return [text for text in dependencies if text.startswith("torch==") and name != "torch"]


def _device(code: str) -> str:
    """The device that a script asks for."""
    return "cuda" if _ON_GPU.search(code) and not _MAYBE_GPU.search(code) else "any"


def _name(report: Report, subjects: tuple[str, ...]) -> str:
    if report.number:
        where = report.repository.rpartition("/")[2] or (subjects[0] if subjects else "issue")
        return re.sub(r"\W+", "_", f"{where}_{report.number}").lower()
    words = re.findall(r"[a-z0-9]+", report.title.lower())[:6]
    return "_".join(words) or "repro"
