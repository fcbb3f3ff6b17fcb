"""Repros are found by name, path or subject."""

from __future__ import annotations

import pytest
from support import repro_text

from harness.errors import BadRepro
from harness.question.repros import find_repro, list_repros, repro_for_subject


@pytest.fixture
def folder(tmp_path):
    repros = tmp_path / "repros"
    repros.mkdir()
    second = '[tool.harness.subjects.other]\n[tool.harness.subjects.zeta]\ngood = "1"\nbad = "2"\n'
    (repros / "one.py").write_text(repro_text("zeta", tool=second))
    (repros / "two.py").write_text(repro_text("zeta", tool="[tool.harness.subjects.zeta]\n"))
    (repros / "broken.py").write_text("# no metadata\n")
    (repros / "binary.py").write_bytes(b"\xff\xfe\x00")
    return tmp_path


def test_broken_ones_are_not_listed(folder):
    names = [repro.name for repro in list_repros(folder)]
    assert {"one", "two"} <= set(names)
    assert not {"broken", "binary"} & set(names)
    assert names == sorted(names)


def test_a_name_or_a_path_finds_one(folder):
    assert find_repro("one", folder).name == "one"
    assert find_repro(str(folder / "repros" / "two.py")).name == "two"


def test_an_unreadable_repro_is_reported(folder):
    for name, words in {"broken": "no inline script metadata", "binary": "not text in UTF-8"}.items():
        with pytest.raises(BadRepro, match=words):
            find_repro(name, folder)


def test_the_repro_that_names_the_subject_first_is_taken(folder):
    assert repro_for_subject("Zeta", folder).name == "two"
    assert repro_for_subject("other", folder).name == "one"
    with pytest.raises(BadRepro, match="no repro names nothing"):
        repro_for_subject("nothing", folder)
