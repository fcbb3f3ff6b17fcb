"""Every repro that is shipped can be read, and every entry of the catalogue is complete and can be found."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path

import pytest
from packaging.version import Version

from harness.catalogue.entries import Entry, all_entries, entries_with, lines_of
from harness.errors import UserMistake
from harness.question.repros import read_repro, repro_for_subject

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "repros").glob("*.py"))
ENTRIES = {entry.name: entry for entry in all_entries(ROOT)}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_repro_can_be_read(path: Path) -> None:
    repro = read_repro(path)
    assert repro.summary.endswith((".", "!"))
    assert repro.signature is not None
    assert repro.subjects or (repro.made is not None and repro.made.subjects)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_entry_says_what_a_user_needs(entry: Entry) -> None:
    bounds = entry.subjects[entry.subject]
    assert bounds.good is not None
    assert bounds.bad is not None
    assert entry.known.workaround.endswith((".", ")"))
    if entry.known.first_bad is not None:
        assert bounds.is_regression
    labels = [label for label, _ in lines_of(entry)]
    assert labels[:2] == ["kind", "releases"]
    assert labels[-2:] == ["upstream", "reproduce"]


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_the_releases_of_every_entry_are_in_order(entry: Entry) -> None:
    known = entry.known
    assert (known.last_good is None) == (known.first_bad is None)
    assert (known.last_bad is None) == (known.fixed_in is None)
    ends = known.last_good, known.first_bad, known.last_bad, known.fixed_in
    for lower, higher in itertools.pairwise(Version(end) for end in ends if end is not None):
        assert lower < higher or (lower == higher == Version(known.first_bad) == Version(known.last_bad))
    assert known.good_again is None or Version(known.fixed_in) <= Version(known.good_again)


def test_named_alone_a_package_still_takes_the_repro_that_the_tutorial_shows() -> None:
    assert repro_for_subject("transformers", ROOT).name == "whisper_lora_checkpointing"


def test_words_find_entries_by_package_symptom_and_error(tmp_path: Path) -> None:
    assert "numpy_asfarray" in [entry.name for entry in entries_with(["numpy", "AttributeError"], ROOT)]
    assert [entry.name for entry in entries_with(["unexpected keyword", "Trainer.__init__()"], ROOT)] == [
        "trainer_tokenizer"
    ]
    assert [entry.name for entry in entries_with(["trainer_tokenizer"], tmp_path)] == ["trainer_tokenizer"]


def test_words_that_nothing_has_are_a_mistake() -> None:
    with pytest.raises(UserMistake, match=r"no known regression with 'trainer_tokeniser'; did you mean trainer_token"):
        entries_with(["trainer_tokeniser"], ROOT)


def test_the_page_has_every_entry() -> None:
    page = runpy.run_path(str(ROOT / "docs/extensions/known_regressions.py"))["sections_of"](ENTRIES.values())
    for name in ENTRIES:
        assert f"### {name}\n" in page
