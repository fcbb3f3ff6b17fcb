"""An end is parsed from one text: an existing path, a day, or a release."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.errors import UserMistake
from harness.question.ends import EndKind, parse_end, read_ends

NOW = datetime(2025, 8, 1, 10, 30, tzinfo=UTC)


def test_a_day_lasts_until_its_midnight():
    end = parse_end("2025-06-20", "--good", now=NOW)
    assert (end.kind, end.moment) == (EndKind.DAY, datetime(2025, 6, 21, tzinfo=UTC))


def test_a_moment_is_kept_exactly():
    assert parse_end("2025-06-20T12:00Z", "--good", now=NOW).moment == datetime(2025, 6, 20, 12, tzinfo=UTC)


def test_today_is_this_moment():
    assert parse_end("today", "--bad", now=NOW).moment == NOW


@pytest.mark.parametrize("text", ["1.26.4", "2025.6.6", "20250620", "5.0.0rc1"])
def test_a_version_is_a_release(text):
    assert parse_end(text, "--good", now=NOW).kind is EndKind.RELEASE


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("python", EndKind.PYTHON),
        ("python3.11", EndKind.PYTHON),
        ("python3.13t", EndKind.PYTHON),
        ("python.exe", EndKind.PYTHON),
        ("python-requirements.txt", EndKind.LOCK),
    ],
)
def test_the_name_of_an_interpreter_may_have_a_version(tmp_path, name, kind):
    (tmp_path / name).write_text("", encoding="utf-8")
    assert parse_end(str(tmp_path / name), "--good", now=NOW).kind is kind


def test_a_file_or_an_environment_is_an_end(tmp_path):
    lock = tmp_path / "2025-06-20"
    lock.write_text("six==1.16.0\n")
    assert parse_end(str(lock), "--good", now=NOW).kind is EndKind.LOCK
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert parse_end(str(tmp_path / "venv"), "--good", now=NOW).path == python


@pytest.mark.parametrize("text", ["newest", "missing.txt", "2025-13-40", "2031-01-01"])
def test_an_invalid_end_is_refused(text):
    with pytest.raises(UserMistake):
        parse_end(text, "--good", now=NOW)


@pytest.mark.parametrize("text", ["9999-12-31", "9999-12-31T23:59-05:00"])
def test_the_last_day_of_the_calendar_is_in_the_future(text):
    with pytest.raises(UserMistake, match=f"--bad {text} is in the future"):
        parse_end(text, "--bad", now=NOW)


def test_two_releases_of_one_package_are_a_plain_bisection():
    assert read_ends("1.0", "2.0", "numpy", now=NOW) is None
    assert read_ends(None, None, "numpy", now=NOW) is None


def test_a_release_without_a_subject_is_refused():
    with pytest.raises(UserMistake):
        read_ends("1.0", None, None, now=NOW)


def test_the_default_bad_end_is_today():
    ends = read_ends("2025-01-01", None, None, now=NOW)
    assert ends is not None
    assert (ends.bad.text, ends.bad.kind) == ("today", EndKind.DAY)
