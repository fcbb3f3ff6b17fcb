"""Renamed files: equal contents first, then the most similar; nothing is invented."""

from __future__ import annotations

from harness.culprit.regions import renamed

TEXT = b"one\ntwo\nthree\nfour\n"


def test_equal_contents_are_a_rename():
    assert renamed({"a.py": TEXT, "b.py": b"x\n"}, {"c.py": TEXT}) == {"c.py": "a.py"}


def test_the_most_similar_files_are_paired_once():
    removed = {"a.py": TEXT, "b.py": TEXT + b"five\n"}
    added = {"c.py": TEXT + b"five\nsix\n", "d.py": b"none of these\n"}
    assert renamed(removed, added) == {"c.py": "b.py"}


def test_less_than_half_similar_is_a_different_file():
    assert renamed({"a.py": TEXT}, {"b.py": b"one\n2\n3\n4\n"}) == {}


def test_a_file_of_another_type_must_be_identical():
    assert renamed({"a.py": TEXT}, {"a.txt": TEXT + b"five\n"}) == {}
    assert renamed({"a.py": TEXT}, {"a.txt": TEXT}) == {"a.txt": "a.py"}


def test_empty_files_are_not_paired():
    assert renamed({"a/__init__.py": b""}, {"b/__init__.py": b""}) == {}


def test_of_two_equal_new_files_at_most_one_is_a_rename():
    assert renamed({"a.py": TEXT}, {"b.py": TEXT, "c.py": TEXT}) == {"b.py": "a.py"}
