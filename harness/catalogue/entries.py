"""The entries of the catalogue, the search among them, and what is known of each in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from harness.errors import UserMistake
from harness.model import Bounds, Repro
from harness.model.regression import Regression
from harness.question.repros import list_repros


@frozen
class Entry:
    """One known regression: a repro, with the parameters of a case ("": of none), and what is true of it."""

    repro: Repro
    case: str
    known: Regression

    @property
    def name(self) -> str:
        """The name of the repro, and of its case if it has one."""
        return f"{self.repro.name}:{self.case}" if self.case else self.repro.name

    @property
    def subject(self) -> str:
        """The project whose release broke it: the first one with bounds."""
        return next(
            (name for name, bounds in self.subjects.items() if bounds.good and bounds.bad), next(iter(self.subjects))
        )

    @property
    def subjects(self) -> dict[str, Bounds]:
        """The bounds of the projects that it is bisected over: those that read, or those that write what is read."""
        made = self.repro.made
        return made.subjects if made is not None and self.known.written else self.repro.subjects

    @property
    def releases(self) -> str:
        """The releases that have the bug, in words."""
        return f"{'written by ' if self.known.written else ''}{self.subject} {self.known.since}"

    @property
    def command(self) -> tuple[str, ...]:
        """The words of `harness` that find the release that broke it, or that fixed it if none was good before."""
        case = ("--param", f"case={self.case}") if self.case else ()
        fix = ("--find-fix",) if self.known.first_bad is None and self.known.fixed_in else ()
        made = ("--made",) if self.known.written else ()
        return ("bisect", self.subject, "--repro", self.repro.name, *case, *made, *fix)

    @property
    def text(self) -> str:
        """Everything that a search looks at."""
        known = self.known
        error = known.seen.error if known.seen is not None else ""
        signature = self.repro.signature
        texts = (self.name, *self.repro.subjects, *self.repro.dependencies, self.repro.summary, known.kind, error)
        details = (known.file, known.function, known.removed, known.fix, known.workaround, *known.upstream)
        return " ".join((*texts, *details, str(signature or ""))).lower()


def all_entries(where: Path | None = None) -> list[Entry]:
    """Return every entry of the repros in the working directory and of those shipped, sorted by name."""
    entries = []
    for repro in list_repros(where):
        if repro.known is not None:
            entries.append(Entry(repro, "", repro.known))
        cases = {name: case.known for name, case in repro.cases.items() if case.known is not None}
        entries += [Entry(repro.with_params({"case": name}), name, known) for name, known in cases.items()]
    return entries


def entries_with(words: Sequence[str], where: Path | None = None) -> list[Entry]:
    """Return the entries that have all the words, or the one of that name. Raises `UserMistake` if none has."""
    entries = all_entries(where)
    if len(words) == 1 and (named := [entry for entry in entries if entry.name == words[0]]):
        return named
    wanted = [part for word in words for part in word.lower().split()]
    matching = [entry for entry in entries if all(part in entry.text for part in wanted)]
    if not matching:
        close = difflib.get_close_matches(" ".join(words), [entry.name for entry in entries], n=1)
        raise UserMistake(
            f"no known regression with {' '.join(words)!r}" + (f"; did you mean {close[0]}?" if close else ""),
            hint="harness repros lists all of them; harness match FILE looks a traceback up",
        )
    return matching


def lines_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield what is known of an entry: labels and texts."""
    known = entry.known
    yield "kind", known.kind
    yield "releases", entry.releases
    if known.last_good is not None:
        yield "last good", known.last_good
    if known.seen is not None:
        yield "error", known.seen.error
    elif entry.repro.signature is not None:
        yield "signature", str(entry.repro.signature)
    if place := known.removed or known.file:
        function = f", {known.function}" if known.function and not known.removed else ""
        yield ("removed" if known.removed else "where"), f"{place}{function}"
    for label, text in (("pull request", known.pull_request), ("fix", known.fix)):
        if text:
            yield label, text
    if known.workaround:
        yield "workaround", known.workaround
    yield "upstream", " ".join(known.upstream)
    yield "reproduce", f"harness {' '.join(entry.command)}"
