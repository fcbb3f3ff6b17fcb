"""The catalogue's bisections on real releases: is each answer exactly what is known to be true?

Each entry of the catalogue (`harness repros`) is bisected over real releases, with no results kept from before: the
release that broke it, the release that fixed it, and, where the entry names them, the file and the function. An answer
is exact if all of them are those of the entry; wider if the release is right, but the lines were not found; else wrong.
`proved` is how well the finest level was shown, as the answer's `shown` says; the last line counts them.

    python benchmarks/truth.py
    python benchmarks/truth.py pandas whisper
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.catalogue.entries import Entry

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "reference" / "truth.json"
_EDGES = {False: ("last_good", "first_bad"), True: ("last_bad", "fixed_in")}
_ORDER = ("wrong", "no answer", "wider", "exact")


@frozen
class Question:
    """One question to an entry, with the edge and the lines that must come out; `edge` is empty if no release is to
    blame.
    """

    entry: Entry
    is_fix: bool

    @property
    def name(self) -> str:
        """The name of the entry, and "fix" where the release that fixed it is asked for."""
        return f"{self.entry.name} fix" if self.is_fix else self.entry.name

    @property
    def edge(self) -> tuple[str, ...]:
        """The two releases on both sides of the change."""
        known = self.entry.known
        found = tuple(getattr(known, name) for name in _EDGES[self.is_fix])
        return found if all(found) else ()

    @property
    def is_deep(self) -> bool:
        """Whether the entry knows the lines, so that they are looked for."""
        known = self.entry.known
        is_about_edge = self.is_fix == (known.first_bad is None)
        return is_about_edge and bool(self.edge) and bool(known.file or known.removed) and known.depth != "release"

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command."""
        entry, known = self.entry, self.entry.known
        case = ("--param", f"case={entry.case}") if entry.case else ()
        made = ("--made",) if known.written else ()
        words = ("bisect", entry.subject, "--repro", entry.repro.name, *case, *made)
        bounds = entry.subjects[entry.subject]
        if self.is_fix:
            good = known.good_again or (None if bounds.is_regression else bounds.good) or known.fixed_in
            words += ("--find-fix", "--bad", str(bounds.bad or known.last_bad), "--good", str(good))
        return words if self.is_deep else (*words, "--depth", "release")

    @property
    def expected(self) -> str:
        """What must come out, in one line."""
        known = self.entry.known
        if not self.edge:
            return "no release is to blame"
        place = known.removed or " ".join(filter(None, (known.file, known.function)))
        return " -> ".join(self.edge) + (f"; {place}" if self.is_deep else "")


@frozen
class Row:
    """What came of one question; seconds of the whole command. `proved` is "release only" if it asked for no lines."""

    name: str
    package: str
    kind: str
    expected: str
    found: str
    verdict: str
    proved: str
    runs: int
    seconds: float


def questions(entries: Iterable[Entry]) -> list[Question]:
    """What to ask: for the release that broke it, and for the one that fixed it."""
    asked = []
    for entry in entries:
        known = entry.known
        if known.first_bad is not None or known.fixed_in is None:
            asked.append(Question(entry, is_fix=False))
        if known.fixed_in is not None:
            asked.append(Question(entry, is_fix=True))
    return asked


def ask(question: Question, folder: Path) -> Row:
    """Ask one question with nothing known, and compare the answer with the truth."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    env |= {"PYTHONPATH": str(ROOT)}
    env.setdefault("HARNESS_CACHE_DIR", str(folder / "cache"))
    results = folder / question.name.replace(":", "-").replace(" ", "-")
    shutil.rmtree(results, ignore_errors=True)
    argv = [sys.executable, "-m", "harness", *question.words, "--json", "--results", str(results)]
    begun = time.monotonic()
    ended = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - begun
    (folder / f"{results.name}.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        answer = {"error": (ended.stderr.strip().splitlines() or ["nothing said"])[-1]}
    if "error" in answer:
        answer = {"sentence": answer["error"], "status": "error"}
    verdict, found = compared(question, answer)
    runs = answer.get("probes", 0) + answer.get("culprit_probes", 0)
    entry = question.entry
    names = (question.name, entry.subject, entry.known.kind, question.expected)
    return Row(*names, found, verdict, proved(question, answer), runs, round(wall_s, 1))


def proved(question: Question, answer: dict[str, Any]) -> str:
    """How well the finest level of an answer was shown, if lines were asked for."""
    if not question.is_deep:
        return "release only"
    levels = answer.get("culprit") or []
    return str(levels[-1]["shown"]) if levels else "not proved"


def compared(question: Question, answer: dict[str, Any]) -> tuple[str, str]:
    """The verdict on an answer, and what it found in one line."""
    names = ("last_bad", "first_good") if question.is_fix else ("last_good", "first_bad")
    edge: tuple[str, ...] = tuple(answer.get(name) or "" for name in names)
    if not question.edge:
        is_right = answer.get("status") == "not-a-regression"
        return ("exact" if is_right else "wrong"), "no release is to blame" if is_right else str(answer["sentence"])
    if not all(edge) or answer.get("status") == "error":
        return "no answer", str(answer.get("sentence"))
    if edge != question.edge:
        return "wrong", " -> ".join(edge)
    known, found = question.entry.known, " -> ".join(edge)
    if not question.is_deep:
        return "exact", found
    culprit = answer.get("culprit") or []
    files = sorted({file for finding in culprit for file in finding.get("files") or ()})
    functions = sorted({one["function"] for finding in culprit for one in finding.get("regions") or ()})
    guilty = [one for failure in answer.get("failures") or () for one in failure.get("culprits") or ()]
    named = {str(seen["name"]) for one in guilty for seen in one.get("evidence") or () if seen.get("name")}
    is_exact = known.removed in named if known.removed else files == [known.file]
    if known.function and not known.removed:
        is_exact = is_exact and known.function in functions
    place = known.removed if known.removed in named and known.removed else " ".join((*files[:2], *functions[:2]))
    return ("exact" if is_exact else "wider"), f"{found}; {place or 'no lines'}"


def show(rows: list[Row]) -> bool:
    """Print the table, the worst first; returns whether all are exact."""
    ordered = sorted(rows, key=lambda row: _ORDER.index(row.verdict))
    width = max((len(row.name) for row in rows), default=4)
    print(f"{'':9}  {'entry':{width}}  {'runs':>5} {'s':>6}  {'proved':18}  expected | found")
    for row in ordered:
        found = "" if row.found == row.expected else f" | {row.found}"
        figures = f"{row.runs:>5} {row.seconds:>6.0f}  {row.proved:18}"
        print(f"{row.verdict:9}  {row.name:{width}}  {figures}  {row.expected}{found}")
    exact = sum(row.verdict == "exact" for row in rows)
    runs, seconds = sum(row.runs for row in rows), math.fsum(row.seconds for row in rows)
    print(f"{exact} of {len(rows)} exact, {runs} runs, {seconds:.0f} s")
    print(", ".join(f"{number} {proved}" for proved, number in Counter(row.proved for row in rows).most_common()))
    return exact == len(rows)


def keep(rows: list[Row], path: Path) -> None:
    """Write the rows into the table of the documentation, beside those of entries that were not run."""
    kept = {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))} if path.exists() else {}
    kept |= {row.name: asdict(row) for row in rows}
    path.write_text(json.dumps([kept[name] for name in sorted(kept)], indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Parse the command line, ask, report."""
    sys.path.insert(0, str(ROOT))
    from harness.catalogue.entries import all_entries

    parser = argparse.ArgumentParser(description="The catalogue's bisections on real releases.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only entries with one of these words in the name")
    parser.add_argument("--folder", type=Path, help="keep caches and results there (default: none kept)")
    parser.add_argument("--output", type=Path, default=TABLE, help="the table to update (default: that of the docs)")
    options = parser.parse_args()
    asked = questions(all_entries(ROOT))
    if options.words:
        asked = [one for one in asked if any(word in f"{one.name} {one.entry.subject}" for word in options.words)]
    if not asked:
        parser.error(f"no entry of the catalogue has {' or '.join(options.words)} in its name; see harness repros")
    root = options.folder.absolute() if options.folder else Path(tempfile.mkdtemp(prefix="harness-truth-"))
    root.mkdir(parents=True, exist_ok=True)
    rows = []
    try:
        for number, question in enumerate(asked, start=1):
            print(f"{number}/{len(asked)} {question.name} ...", end=" ", file=sys.stderr, flush=True)
            rows.append(ask(question, root))
            print(f"{rows[-1].verdict}, {rows[-1].seconds:.0f} s", file=sys.stderr, flush=True)
            keep(rows[-1:], options.output)
    finally:
        if options.folder is None:
            shutil.rmtree(root, ignore_errors=True)
    return 0 if show(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
