"""Texts for people avoid phrases that a native maintainer would not write; the table says what to write instead."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
PLACES = ("harness", "docs", "repros", "matrices", "benchmarks", "tests", "README.md", "CONTRIBUTING.md", "noxfile.py")
KINDS = (".py", ".md", ".toml", ".j2", ".js")

# Phrase (a regular expression) and what to write instead.
INSTEAD = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bundoes it\b|\bundoes (the|a) (bug|difference|step)\b": "removes it, reverts it",
    r"\bbrings (it|the difference|the bug) (with|together|about)\b": "makes it fail",
    r"\bis to be\b|\bare to be\b": "must be",
    r"\b(an|the) own\b": "its own, this",
    r"\bfor want of\b": "for lack of, because ... is missing",
    r"\bmistake of the harness\b|\bfault of ours\b": "internal error",
    r"\bno end within\b": "timed out after",
    r"\banew\b": "again, rebuilt",
    r"\bspoilt\b|\bmisspelt\b": "damaged, misspelled",
    r"\bthat which\b|\bwhereof\b|\bwherein\b|\bthereof\b|\bupon\b": "what, of which, in which, on",
    r"\bcan not\b|can_not_": "cannot, can't",
    r"\bof its own accord\b": "by default",
    r"\b(that|which|what|who) (is|are) none\b|_that_(is|are)_none\b": "is not one",
    r"\bis told of\b|\btells of\b|_is_told\b|_are_told\b": "is reported",
    r"\bbe it\b": "whether",
    r"\bwhat there was\b": "the packages of that day",
    r"\bcan be had\b|\bcan't be had\b": "is available",
    r"\bhangs? together\b": "needs, belongs to",
    r"\btold apart\b": "could not tell which",
    r"\bmeans nothing\b|\bmean nothing\b": "does not apply",
    r"\bDo not know which\b|\bsay what to run\b": "If you don't know which, nothing to run",
    r"\bwhat a user of\b|\bUntil then \b": "as its users had them, Workaround",
    r"\bfor instance\b|, say[\"',.]": "for example",
    r"\bpeeled\b|\bhindered\b|\bstood\b": "the field's own word",
}


@functools.cache
def texts() -> list[tuple[str, list[str]]]:
    """Every file that people read, by its path, as lines."""
    found = [path for place in PLACES for path in [HERE / place, *(HERE / place).rglob("*")] if path.is_file()]
    meant = sorted(p for p in found if p.suffix in KINDS and "_build" not in p.parts and p != Path(__file__).resolve())
    return [(str(p.relative_to(HERE)), p.read_text(encoding="utf-8").splitlines()) for p in meant]


@pytest.mark.parametrize("phrase", INSTEAD)
def test_no_text_has_a_phrase_from_the_table(phrase):
    pattern = re.compile(phrase)
    hits = [
        f"{path}:{number}: {line.strip()}"
        for path, lines in texts()
        for number, line in enumerate(lines, start=1)
        if pattern.search(line)
    ]
    assert not hits, f"write {INSTEAD[phrase]!r} instead:\n" + "\n".join(hits)


def test_the_table_of_faults_names_tests_that_exist():
    names: list[tuple[Path, str]] = []
    path = Path()
    for code in re.findall(r"`([^`]+)`", (HERE / "docs" / "faults.md").read_text(encoding="utf-8")):
        if found := re.fullmatch(r"(tests/[\w/]+\.(?:py|toml))(?:::(test_\w+))?", code):
            path = HERE / found[1]
            names.append((path, found[2] or ""))
        elif found := re.fullmatch(r"(?:::)?(test_\w+)", code):
            names.append((path, found[1]))
    assert len(names) > 60
    missing = [(str(p), name) for p, name in names if not p.is_file() or (f"def {name}" not in p.read_text() and name)]
    assert not missing
