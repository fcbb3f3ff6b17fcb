"""Tables of the reference that are made from the code: `{outcomes}`, `{exit-codes}`, `{repro-keys}`."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from harness import errors
from harness.model import Outcome
from harness.model.repro import Bounds
from harness.model.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sphinx.application import Sphinx


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
    """Every exit code that an error has."""

    heading = ("exit code", "error", "when")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """From the tree of errors."""
        for one in _subclasses(errors.HarnessError):
            yield str(one.exit_code), one.__name__, inspect.cleandoc(one.__doc__ or "").split("\n\n")[0]


class ReproKeys(TableFromCode):
    """What `[tool.harness]` may hold in a repro."""

    heading = ("key", "where")

    def rows(self) -> Iterable[tuple[str, ...]]:
        """The fields of what is read."""
        for field in Bounds.__attrs_attrs__:
            yield field.name.replace("_", "-"), "[tool.harness.subjects.NAME]"
        for field in Signature.__attrs_attrs__:
            if field.name != "captured":
                yield field.name.replace("_", "-"), "[tool.harness.signature]"


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
    app.add_directive("outcomes", Outcomes)
    app.add_directive("exit-codes", ExitCodes)
    app.add_directive("repro-keys", ReproKeys)
    return {"parallel_read_safe": True}
