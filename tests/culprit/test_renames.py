"""Renamed files: equal contents first, then the most alike; nothing is made up."""

from __future__ import annotations

from harness.culprit.renames import renamed

TEXT = b"one\ntwo\nthree\nfour\n"


def test_equal_contents_are_one_file():
    assert renamed({"a.py": TEXT, "b.py": b"x\n"}, {"c.py": TEXT}) == {"c.py": "a.py"}


def test_the_most_alike_are_paired_and_each_only_once():
    removed = {"a.py": TEXT, "b.py": TEXT + b"five\n"}
    added = {"c.py": TEXT + b"five\nsix\n", "d.py": b"none of these\n"}
    assert renamed(removed, added) == {"c.py": "b.py"}


def test_less_than_half_alike_is_another_file():
    assert renamed({"a.py": TEXT}, {"b.py": b"one\n2\n3\n4\n"}) == {}


def test_another_kind_of_file_is_only_the_same_if_it_is_equal():
    assert renamed({"a.py": TEXT}, {"a.txt": TEXT + b"five\n"}) == {}
    assert renamed({"a.py": TEXT}, {"a.txt": TEXT}) == {"a.txt": "a.py"}


def test_empty_files_say_nothing():
    assert renamed({"a/__init__.py": b""}, {"b/__init__.py": b""}) == {}


def test_two_equal_new_files_have_one_origin_at_most():
    assert renamed({"a.py": TEXT}, {"b.py": TEXT, "c.py": TEXT}) == {"b.py": "a.py"}
