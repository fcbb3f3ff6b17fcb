"""Writes a repro from a report: metadata with what the report lists, its script, and a mark at every gap.

It takes what can be read without guessing. Which versions work and which fail is not read: the next run tells.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from attrs import evolve, frozen
from packaging.version import Version

from harness.catalogue.blocks import Block, Report, blocks_of, parsed
from harness.catalogue.known import FIELD, KNOWN, LAST_SUSPECTS, project_named, project_of_module
from harness.catalogue.tracebacks import (
    best_traceback,
    first_line,
    frame_of,
    frames_of,
    reason_of,
    suspects,
    tracebacks_of,
)
from harness.catalogue.versions import Versions, versions_in
from harness.environment.interpreter import OLDEST_PYTHON
from harness.errors import BadRepro
from harness.model import RaisedException, Repro
from harness.model.release import name_of
from harness.model.repro import parse_repro
from harness.model.text import counted, listed, one_line
from harness.question.tools_in_use import modules_in
from harness.redact import hide_secrets

MARK = "FILL IN"
_MOST_SUBJECTS = 5
_ON_GPU = re.compile(r"\.cuda\(|[\"']cuda(?::\d+)?[\"']|\bFastLanguageModel\b|\bFastModel\b|load_in_[48]bit\s*=\s*True")
_MAYBE_GPU = re.compile(r"cuda\.is_available\(\)")
_LOADS = re.compile(r"\b(?:from_pretrained|load_dataset|pipeline|SentenceTransformer)\(")
_VALUE = re.compile(r"\W*(?P<side>expected|actual|got)\b[^:\n]{0,30}:[\s*`]*(?P<value>[^\n]*)", re.I)
_PRINTED = re.compile(r"[-\d.e+]+|[\[({'\"].*|\w+\(.*\)|True|False|None|nan", re.I)

_PYTHON = ("python", "py", "python3", "ipython", "pycon", "jupyter", "py3")
_PROMPT = re.compile(r"(?:>>>|\.\.\.|In ?\[\d*\]:)(?: |$)")
_MAGIC = re.compile(r"^([ \t]*)((?:[!%]|(?:pip3?|uv pip|conda) install ).*)$", re.M)
_HEADER = re.compile(r"^# /// script$.*?^# ///$\n*", re.M | re.S)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " ", "\u200b": None})


@frozen
class Script:
    """The code block that a repro is made of.

    `wrong_line` is where it stops being Python, None if it is. `changes` say what was done to it, `others` counts the
    blocks that could be meant as well. `header` is what its own inline script metadata say.
    """

    code: str = ""
    wrong_line: int | None = None
    changes: tuple[str, ...] = ()
    others: int = 0
    header: Repro | None = None

    @property
    def tree(self) -> ast.Module:
        """Its syntax tree; empty if it is not Python."""
        tree = parsed(self.code)
        return tree if isinstance(tree, ast.Module) else ast.Module([], [])

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that it imports, in order."""
        return tuple(dict.fromkeys(filter(None, map(project_of_module, modules_in(ast.walk(self.tree))))))


@frozen
class Gap:
    """Something that the report does not tell: `what`, and what to do about it."""

    what: str
    todo: str


@frozen
class Draft:
    """A drafted repro: its `source`, and what was read of the `report`."""

    report: Report
    versions: Versions
    raised: RaisedException | None
    script: Script
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
    """Draft a repro from a report. Nothing of it is run."""
    report = evolve(report, text=hide_secrets(report.text))
    blocks = blocks_of(report.text)
    raised = best_traceback(tracebacks_of(report.text) or tracebacks_of(report.title), report.title)
    parts = Draft(report, versions_in(blocks), raised, script_of(blocks, raised))
    subjects = _subjects(parts)
    parts = evolve(parts, subjects=subjects, name=name or _name(report, subjects))
    parts = evolve(parts, dependencies=_dependencies(parts))
    parts = evolve(parts, gaps=tuple(_gaps(parts, blocks)))
    parts = evolve(parts, source=_source(parts))
    parse_repro(parts.source, name=parts.name)  # what it writes can be read
    return parts


def script_of(blocks: Iterable[Block], raised: RaisedException | None) -> Script:
    """Return the script of a report: the block with inline script metadata, else the one with lines of the traceback,
    else the first that does something; without code if there is none.
    """
    scripts = [script for block in blocks if block.is_code and (script := _script(block)) is not None]
    own = {frame.text for frame in frames_of(raised) if frame.text and not frame.package} if raised else set()
    acts = [any(not isinstance(node, _DEFINITIONS) for node in script.tree.body) for script in scripts]
    ranks = [
        (script.header is not None, sum(line in script.code for line in own), does, bool(script.projects))
        for script, does in zip(scripts, acts, strict=True)
    ]
    if not scripts:
        return Script()
    best = max(range(len(scripts)), key=ranks.__getitem__)
    return evolve(scripts[best], others=len(scripts) - 1 if scripts[best].header is None else 0)


def _script(block: Block) -> Script | None:
    """Return the script that a block of code is, None if it is none."""
    text, changes = block.text.translate(_QUOTES), []
    is_session = any(line.startswith((">>> ", "In [")) for line in text.splitlines())
    if not is_session and (block.language not in ("", *_PYTHON) or "Traceback (most recent call last)" in text):
        return None
    if is_session:
        lines = [(line, match) for line in text.splitlines() if (match := _PROMPT.match(line))]
        text = "\n".join(line[match.end() :] for line, match in lines)
        changes.append("the prompts and the output of the session are left out")
    text, magics = _MAGIC.subn(lambda match: f"{match[1]}{'pass  ' if match[1] else ''}# {match[2].strip()}", text)
    if magics:
        changes.append("notebook commands are comments now")
    tree, text = parsed(text), text.strip("\n")
    if not isinstance(tree, ast.Module):
        imports = re.search(r"^\s*(?:from \w[\w.]* import|import \w+)", text, re.M)
        is_python = block.language in _PYTHON or (imports and not re.search(r"^-+> ?\d+", text, re.M))
        return Script(text, tree, tuple(changes)) if is_python else None
    acts = any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(tree))
    if not acts and (block.language not in _PYTHON or not tree.body):
        return None  # prose can be Python, too
    return Script(text, changes=tuple(changes), header=_header(text))


def _header(text: str) -> Repro | None:
    try:
        return parse_repro(text, name="its code") if text.count("# /// script") == 1 else None
    except BadRepro:
        return None


def _subjects(parts: Draft) -> tuple[str, ...]:
    """Return the projects to bisect over, in order of suspicion.

    First those of the traceback, the innermost first, then the tracker's own and what the script imports. What is in
    every traceback comes last.
    """
    if parts.script.header is not None and parts.script.header.subjects:
        return tuple(parts.script.header.subjects)
    versions, home = parts.versions, project_named(parts.report.repository.rpartition("/")[2])
    framed = suspects(parts.raised)
    names = dict.fromkeys((*framed, *([home] if home else ()), *parts.script.projects))
    packages = [name for name in names if name in KNOWN or name in framed]
    likely = [name for name in packages if name not in LAST_SUSPECTS or name == home] or packages
    with_version = [name for name in likely if name in versions.installed or name in versions.several]
    return tuple((with_version or likely)[:_MOST_SUBJECTS])


def _dependencies(parts: Draft) -> tuple[str, ...]:
    """Return the requirements, with the versions that the report lists.

    The suspects come first: of several solutions, a resolver takes the one with the newest release of the first.
    """
    installed, script = parts.versions.installed, parts.script
    own = {name_of(text): text for text in (script.header.dependencies if script.header is not None else ())}
    named = [*parts.subjects, *own, *script.projects]
    if not {"transformers", "diffusers"}.isdisjoint(named):
        named.append("torch")  # which they do not require themselves
    named += [name for name in FIELD["beside"] if name in installed]
    pinned = {name: f"{name}=={version}" for name, version in installed.items()}
    return tuple({**pinned, **own}.get(name, name) for name in dict.fromkeys(named))


def _gaps(parts: Draft, blocks: Sequence[Block]) -> Iterator[Gap]:
    script, versions = parts.script, parts.versions
    yield from _gaps_of_script(script)
    if parts.raised is None and (script.header is None or script.header.signature is None):
        printed = listed(f"{side} {value}" for side, value in _printed(blocks))
        todo = f"it prints {printed}: assert that" if printed else "give exception and message"
        todo = f"the report has no traceback; {todo}; or metric and a bound, output, hang or crash"
        yield Gap("the signature", todo)
    reasons = map(reason_of, tracebacks_of(parts.report.text))
    if (errors := len({(reason.name, first_line(reason.message)) for reason in reasons})) > 1:
        yield Gap("the signature", f"the report has {errors} different errors: check that it is of the right one")
    if not parts.subjects:
        yield Gap("the subject", "name the package to bisect over: [tool.harness.subjects.NAME]")
    listed_names = (*versions.installed, *versions.unreleased, *versions.several)
    for name in (name for name in parts.subjects if name not in listed_names and script.header is None):
        yield Gap(f"the version of {name}", "the report does not list it: pin it in dependencies, or leave it")
    for name, several in versions.several.items():
        yield Gap(f"the version of {name}", f"the report lists {listed(several)}: pin the one that fails")
    for name, version in versions.unreleased.items():
        if name in (*parts.subjects, *parts.dependencies):
            yield Gap(f"{name} {version}", "it is no release: name the next release, or a commit with --git")


def _gaps_of_script(script: Script) -> Iterator[Gap]:
    if not script.code:
        yield Gap("the code", "the report has no code block that can be run: write a script that fails as it tells")
    elif script.wrong_line is not None:
        wrong = f"line {script.wrong_line} of the report's code is not Python"
        yield Gap("the code", f"{wrong}: correct it, and take off the '# '")
    elif script.others:
        yield Gap("the code", f"the report has {counted(script.others, 'more block')} of code: add what this one needs")
    if match := _LOADS.search(script.code):
        todo = "from a hub only with --network; a tiny random model, as harness init repro --model writes, needs none"
        yield Gap(f"what {match[0]}...) loads", todo)


def _printed(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    """Yield the values that a report shows as expected and as actual ones, in a line or in a block of code."""
    for block in blocks:
        lines = [] if block.is_code and _script(block) is not None else block.text.splitlines()
        if block.is_code and len(lines) == 1 and (label := _VALUE.match(f"{block.before.rstrip(' :')}:")):
            yield label["side"].lower(), one_line(lines[0], 60)
            continue
        for match in filter(None, map(_VALUE.match, lines)):
            value = match["value"].strip(" `*")
            if _PRINTED.fullmatch(value):
                yield match["side"].lower(), one_line(value, 60)


def _source(parts: Draft) -> str:
    """Return the text of the repro."""
    import jinja2  # which takes a while to import

    header, raised, code = parts.script.header, parts.raised, parts.script.code
    if header is not None and "[tool.harness" in code:
        return "".join(f"# {MARK}: {gap.what}: {gap.todo}\n" for gap in parts.gaps) + code + "\n"
    minor = ".".join((parts.versions.python or "").split(".")[:2])
    is_old = bool(minor) and Version(minor) < OLDEST_PYTHON
    python = f">={OLDEST_PYTHON}" if is_old else f"=={minor}.*" if minor else ""
    title = one_line(parts.report.title, 100).replace('"""', "'''").replace("\\", "/").strip().rstrip('"') or "A report"
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.catalogue", ""),
        autoescape=False,  # noqa: S701 - it is Python
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["json"] = partial(json.dumps, ensure_ascii=False)
    held = [text for text in parts.dependencies if text.startswith("torch==")]
    text = templates.get_template("repro.py.j2").render(
        parts=parts,
        code=_HEADER.sub("", code) if header is not None else code.replace("# ///", "# //"),
        mark=MARK,
        python=(header.requires_python if header is not None else None) or python,
        device="cuda" if _ON_GPU.search(code) and not _MAYBE_GPU.search(code) else "any",
        frame=frame_of(raised) if raised is not None else None,
        reason=reason_of(raised) if raised is not None else None,
        subjects=[(name, held if name != "torch" else []) for name in parts.subjects],
        message=first_line(reason_of(raised).message) if raised is not None else "",
        title=title if title[-1:] in ".?!…" else f"{title}.",
    )
    return text.rstrip() + "\n"


def _name(report: Report, subjects: tuple[str, ...]) -> str:
    if report.number:
        where = report.repository.rpartition("/")[2] or (subjects[0] if subjects else "issue")
        return re.sub(r"\W+", "_", f"{where}_{report.number}").lower()
    words = re.findall(r"[a-z0-9]+", report.title.lower())[:6]
    return "_".join(words) or "repro"
