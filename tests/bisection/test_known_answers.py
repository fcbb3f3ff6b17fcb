"""The same question again: answered at once from the results, until something that it depends on has changed."""

from __future__ import annotations

import pytest
from planted_upgrades import RELEASES, TO_THE_RELEASE, freeze, month, source, suite_of, write_project
from wheelhouse import Wheelhouse

from harness.report.archive import Archive
from harness.store import Store

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")


@pytest.fixture
def question(planted):
    """The ends of a question between two lists of packages."""
    write_project(planted.folder, suite_of("part07"))
    names = ["part07", "part08"]
    ends = ("--good", freeze(planted.folder / "old.txt", release="1.0", names=names))
    ends += ("--bad", freeze(planted.folder / "new.txt", release="2.1", names=names))
    return ends


@pytest.fixture
def asked(planted, question):
    """The question and its answer, which names a release."""
    return planted, question, planted("bisect", *question, *RUN).json


def test_nothing_runs_the_answer_is_the_same_and_it_is_the_newest(planted, question):
    """Down to the lines; its report stays, and is written again if it is gone."""
    whole = ("bisect", *question, *RUN[:2], "--confirm", "1", "--json")
    first = planted(*whole).json
    archive = Archive(Store(planted.folder / "results"))
    (report,) = (planted.folder / "results/reports").glob("*.md")
    before, (kept,) = report.stat().st_mtime_ns, archive.all()
    again = planted(*whole).json
    assert first["probes"] > 0
    assert again["probes"] == again["culprit_probes"] == 0
    assert any("nothing was run" in note for note in again["notes"])
    changed = {"probes", "culprit_probes", "wall_s", "notes", "steps"}
    assert {key: value for key, value in again.items() if key not in changed} == {
        key: value for key, value in first.items() if key not in changed
    }
    assert report.stat().st_mtime_ns == before
    assert archive.get().id == kept.id
    assert archive.get().kept > kept.kept
    report.unlink()
    planted(*whole)
    assert report.is_file()


def test_it_is_searched_again_after_each_change(asked):
    """Of an option, a test, a list and what was kept."""
    planted, ends, answer = asked

    def searched(*more):
        again = planted("bisect", *ends, *RUN, *more).json
        assert not any("nothing was run" in note for note in again["notes"])
        assert again["status"] == "found"

    searched("--confidence", "0.9")
    observation = answer["failures"][0]["culprits"][0]["observations"][0]
    (record,) = (planted.folder / "results").rglob(f"{observation}.json")
    record.unlink()
    searched()
    (planted.folder / "test_mine.py").write_text(suite_of("part07", "part08"), encoding="utf-8")
    searched()
    ends[1].write_text("part07==1.1\npart08==1.0\n", encoding="utf-8")
    searched()


def test_another_index_is_another_question(asked, tmp_path):
    """The same lists have other packages there."""
    planted, ends, first = asked
    assert first["failures"][0]["culprits"][0]["first_bad"] == "2.0"
    house = Wheelhouse(tmp_path / "other")
    for number, version in enumerate(RELEASES):
        for name in ("part07", "part08"):
            broken = "part07 is broken" if name == "part07" and version != "1.0" else ""
            house.add(name, version, files={f"{name}.py": source(version, broken=broken)}, uploaded=month(number))
    there = planted("bisect", *ends, *RUN, **house.environ).json
    assert not any("nothing was run" in note for note in there["notes"])
    assert there["failures"][0]["culprits"][0]["first_bad"] == "1.1"
    assert any("nothing was run" in note for note in planted("bisect", *ends, *RUN).json["notes"])
