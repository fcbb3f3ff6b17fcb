"""What is made from the code: tables (`{outcomes}`, `{exit-codes}`, `{repro-keys}`, `{json-keys}`) and the catalogue
(`{known-regressions}`), and tables of what benchmarks have kept (`{truth}`, `{speed}`). The examples and exit codes in
the help of a command become blocks of code.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from known_regressions import sections_of
from sphinx.util.docutils import SphinxDirective

from harness import errors
from harness.catalogue.entries import all_entries
from harness.cli.main import EXIT_CODES
from harness.model import Outcome
from harness.model.regression import KNOWN
from harness.model.repro import TOOL, Bounds
from harness.model.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sphinx.application import Sphinx


ROOT = Path(__file__).parents[2]
TRUTH = ROOT / "docs" / "reference" / "truth.json"
SPEED = ROOT / "docs" / "reference" / "speed.json"
MEANINGS = {
    "device": "cpu, cuda or any",
    "timeout": "seconds before a run is stopped; 300 by default",
    "memory": "memory limit, such as 8 GiB",
    "gpu-memory": "free memory that a run needs on each of its GPUs, such as 8 GiB",
    "gpus": "how many GPUs of one model a run needs; the default is 1",
    "launch": "torchrun or accelerate, which starts a process for each of the GPUs",
    "subjects": "a table for each package that the repro can be bisected over; the first is the default",
    "signature": "how the bug is recognised; all parts that are given must match",
    "cases": "named variants with their own params, subjects or signature; the parameter case selects one",
    "params": "parameters and their defaults",
    "reported": "address of the report that the repro comes from",
    "made": "the first step, which writes what the runs read: with (requirements), and subjects for --made",
    "inputs": "a folder beside the repro; each run gets a read-only copy of it",
    "written": "true: these releases write what fails to be read (--made)",
    "known": "a table of what is true of the bug: makes the repro an entry of the catalogue",
    "default": "true: harness bisect NAME takes this repro",
    "kind": "crash, import error, wrong number, changed default, changed output, slower, more memory or hang",
    "upstream": "addresses of the report, the change or the release notes",
    "last-good": "the last release before it broke",
    "first-bad": "the release that broke it",
    "last-bad": "the last release that has the bug",
    "fixed-in": "the release that fixed it",
    "good-again": "a release from which to look back for the fix",
    "never-worked": "true: no release before the first bad one is good",
    "file": "the culprit's file, relative to site-packages",
    "function": "the culprit's function, with its class",
    "removed": "a public name that is gone",
    "depth": "release: nox -s truth does not look for the lines",
    "pull-request": "address of the pull request that broke it",
    "fix": "what the fixed release changed, a sentence",
    "workaround": "what helps until then, a sentence",
    "seen": "how it looks: release, error (last line of the traceback), frames (file:function, innermost last)",
    "good": "a release that works",
    "bad": "a release that fails",
    "as-of": "the other packages: era, none or a date",
    "hold": "requirements to keep where the releases allow it",
    "exception": "class of the exception, such as RuntimeError",
    "message": "part of its message",
    "frame": "part of file:function of any frame in its traceback",
    "metric": "name of a number that the repro writes; needs above or below",
    "above": "bad if the metric is above this",
    "below": "bad if the metric is below this",
    "output": "regular expression that the output contains",
    "hang": "true: bad if the run reaches its time limit",
    "exit-code": "bad if the run ends with this exit code",
    "crash": "true: bad if a signal kills the run",
}


class TableFromCode(SphinxDirective):
    """A table with a heading and rows of text; the first cell of each row is code."""

    heading: ClassVar[tuple[str, ...]] = ()

    def rows(self) -> Iterable[tuple[str, ...]]:
        """The rows, from the code."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The table as nodes."""
        table = nodes.table()
        group = nodes.tgroup(cols=len(self.heading))
        group += [nodes.colspec(colwidth=1) for _ in self.heading]
        head, body = nodes.thead(), nodes.tbody()
        head += _row(self.heading, code=False)
        body += [_row(row, code=True) for row in self.rows()]
        group += [head, body]
        table += group
        return [table]


class Outcomes(TableFromCode):
    """Every outcome of a run."""

    heading = ("outcome", "what happened")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """Name and the comment beside it."""
        source = inspect.getsource(Outcome)
        for outcome in Outcome:
            comment = re.search(rf"^    {outcome.name} = .*?#\s*(.*)$", source, re.MULTILINE)
            yield outcome.value, comment.group(1) if comment else ""


class ExitCodes(TableFromCode):
    """Every exit code."""

    heading = ("exit code", "what it means", "errors")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """From the help of the command, with the errors of the Python API that have the code."""
        for code, meaning in re.findall(r"^ +(\d+)  (.+)$", EXIT_CODES, re.MULTILINE):
            known = (one for one in _subclasses(errors.HarnessError) if one.__module__ == errors.__name__)
            yield code, meaning, ", ".join(one.__name__ for one in known if one.exit_code == int(code))


class ReproKeys(TableFromCode):
    """What `[tool.harness]` may hold in a repro."""

    heading = ("key", "where", "meaning")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """The keys that the parser takes. A key without a meaning below fails the build."""
        tables = (
            ("[tool.harness]", [*TOOL]),
            ("[tool.harness.subjects.NAME]", [_key(field) for field in Bounds.__attrs_attrs__]),
            ("[tool.harness.known]", [*KNOWN]),
            ("[tool.harness.signature]", [_key(one) for one in Signature.__attrs_attrs__ if one.name != "captured"]),
        )
        for where, keys in tables:
            for key in keys:
                yield key, where, MEANINGS[key]


class Truth(TableFromCode):
    """The last run of `nox -s truth`."""

    heading = ("known regression", "package", "expected", "answer", "proved", "runs", "seconds")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """A row for each question."""
        for row in json.loads(TRUTH.read_text(encoding="utf-8")):
            found = row["verdict"] if row["verdict"] in ("exact", "not run") else f"{row['verdict']}: {row['found']}"
            figures = (row.get("proved", ""), str(row["runs"]), f"{row['seconds']:.0f}")
            yield row["name"], row["package"], row["expected"], found, *figures


class Speed(TableFromCode):
    """The last run of `nox -s bench` that was kept."""

    heading = ("one bisection", "seconds", "runs", "share of the loop with uv")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """A row for each way, with the medians."""
        record = json.loads(SPEED.read_text(encoding="utf-8"))
        for way, seconds in record["median_s"].items():
            runs = str(record["runs"][way][0]["probes"])
            yield way, f"{seconds:.1f}", runs, f"{seconds / record['median_s']['uv']:.2f}"


class KnownRegressions(SphinxDirective):
    """Every entry of the catalogue, by package."""

    def run(self) -> list[nodes.Node]:
        """Sections in Markdown."""
        for path in sorted((ROOT / "repros").glob("*.py")):
            self.env.note_dependency(str(path))
        return list(self.parse_text_to_nodes(sections_of(all_entries(ROOT)), allow_section_headings=True))


class JsonKeys(SphinxDirective):
    """The top-level keys of what a command prints with `--json`; the argument is what returns them."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One paragraph with the keys in their order."""
        module, _, name = self.arguments[0].rpartition(".")
        told = getattr(importlib.import_module(module), name)
        source = inspect.getsource(getattr(told, "as_json", told))
        lines = re.findall(r'^ {8}(?: {4})?("\w+":|\*\*picked\(.*)', source, re.MULTILINE)
        keys = dict.fromkeys(
            key for line in lines for names in re.findall(r'"([\w ]+)"', line) for key in names.split()
        )
        paragraph = nodes.paragraph("", "Keys: ")
        for number, key in enumerate(keys):
            paragraph += [nodes.Text(", " if number else ""), nodes.literal(key, key)]
        return [paragraph]


def examples_as_code(_app: Sphinx, _command: object, lines: list[str]) -> None:
    """Turn line blocks (`| harness bisect ...`), which the help of a command has for examples and tables, into code."""
    made: list[str] = []
    for line in lines:
        is_literal = line.startswith("| ")
        if is_literal and not (made and made[-1].startswith("   ")):
            made += ["", ".. code-block:: text", "", f"   {line[2:]}"]
        else:
            made.append(f"   {line[2:]}" if is_literal else line)
    lines[:] = made


def _key(field: Any) -> str:
    return str(field.name).replace("_", "-")


def _row(cells: Iterable[str], *, code: bool) -> nodes.row:
    row = nodes.row()
    for number, text in enumerate(cells):
        entry = nodes.entry()
        entry += nodes.paragraph("", "", nodes.literal(text, text) if code and number == 0 else nodes.Text(text))
        row += entry
    return row


def _subclasses(kind: type[errors.HarnessError]) -> Iterable[type[errors.HarnessError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.connect("sphinx-click-process-description", examples_as_code)
    app.connect("sphinx-click-process-epilog", examples_as_code)
    app.add_directive("outcomes", Outcomes)
    app.add_directive("exit-codes", ExitCodes)
    app.add_directive("repro-keys", ReproKeys)
    app.add_directive("json-keys", JsonKeys)
    app.add_directive("truth", Truth)
    app.add_directive("speed", Speed)
    app.add_directive("known-regressions", KnownRegressions)
    return {"parallel_read_safe": True}
