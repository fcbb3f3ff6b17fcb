"""A stored answer is read back unchanged, and found by a prefix of its id."""

from __future__ import annotations

import json

import pytest
from answers import ANSWER, BAD_RUN, KEPT, kept
from attrs import evolve
from support import changed

from harness.errors import UserMistake
from harness.model import Signature
from harness.report.archive import Archive, stored_answer
from harness.store import Store


@pytest.fixture
def archive(tmp_path):
    return Archive(Store(tmp_path / "results"))


def test_an_answer_is_read_back_unchanged(archive):
    archive.put(KEPT)
    assert archive.get() == KEPT
    assert archive.get("ab12") == KEPT


def test_the_record_names_its_schema(archive):
    archive.put(KEPT)
    record = json.loads((archive.store.root / "answers" / f"{KEPT.id}.json").read_text(encoding="utf-8"))
    assert record["schema"] == 5


def test_the_newest_answer_is_taken_without_an_id(archive):
    archive.put(evolve(KEPT, id="newer", kept="2026-02-01T00:00:00+00:00"))
    archive.put(evolve(KEPT, id="older", kept="2026-01-01T00:00:00+00:00"))
    assert archive.get().id == "newer"


def test_asking_again_replaces_the_answer(archive):
    archive.put(KEPT)
    archive.put(kept(sentence="another"))
    assert [one.answer.sentence for one in archive.all()] == ["another"]


@pytest.mark.parametrize(("prefix", "said"), [("zz", "no answer id starts"), ("a", "2 answer ids start")])
def test_an_unknown_or_ambiguous_id_is_a_mistake(archive, prefix, said):
    archive.put(evolve(KEPT, id="aa"))
    archive.put(evolve(KEPT, id="ab"))
    with pytest.raises(UserMistake) as caught:
        archive.get(prefix)
    assert said in caught.value.message
    assert "aa shop with sale" in caught.value.hint


def test_without_an_answer_it_says_how_to_get_one(archive):
    with pytest.raises(UserMistake) as caught:
        archive.get()
    assert "harness bisect" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 2, "id": "x"}'])
def test_an_unreadable_record_counts_as_absent(archive, text):
    archive.put(KEPT)
    (archive.store.root / "answers" / "broken.json").write_text(text, encoding="utf-8")
    assert archive.all() == [KEPT]


def test_nan_and_infinity_survive(archive):
    run = evolve(BAD_RUN, metrics={"loss": float("inf")})
    archive.put(kept(sides=(run, run)))
    assert archive.get().answer.sides[0].metrics == {"loss": float("inf")}


def test_an_answer_to_another_depth_or_failure_is_kept_beside_it(archive):
    """A coarser answer does not replace a proved region, and of two culprits in one package both are kept."""
    answers = [
        ANSWER,
        changed(ANSWER, findings=()),
        changed(ANSWER, signature=Signature(exception="KeyError")),
        changed(ANSWER, after="1.3"),
    ]
    for answer in answers:
        archive.put(stored_answer(answer, "2026-01-02"))
    assert len(archive.all()) == len(answers)
    archive.put(stored_answer(changed(ANSWER, sentence="another"), "2026-01-03"))
    assert len(archive.all()) == len(answers)
    assert archive.get().answer.sentence == "another"
