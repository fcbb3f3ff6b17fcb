"""Lock files of every kind give the same pins."""

from __future__ import annotations

import pytest

from harness.errors import UserMistake
from harness.request.lockfiles import read_pins

PYTHON = "3.11.7"


def read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_pins(path, PYTHON)


def test_entries_that_no_index_has_are_reported(tmp_path):
    text = """
six==1.16.0
-e git+https://example.org/a/tool@main#egg=tool
wheel-of-mine @ file:///home/me/wheel_of_mine.whl
-e .
torch==2.1.0+cu118 --hash=sha256:0000000000000000000000000000000000000000000000000000000000000000
old==1.0; python_version < "3.8"
"""
    pins = read(tmp_path, "freeze.txt", text)
    assert pins.requirements == ("six==1.16.0", "tool", "wheel-of-mine", "torch==2.1.0+cu118")
    assert len(pins.told) == 3
    assert not pins.is_exact


def test_nested_requirement_files_are_read(tmp_path):
    (tmp_path / "more.txt").write_text("six==1.16.0\n")
    assert read(tmp_path, "all.txt", "-r more.txt\nidna==3.4\n").requirements == ("six==1.16.0", "idna==3.4")


UV = """
version = 1
[[package]]
name = "mine"
version = "1"
source = { editable = "." }
dependencies = [
    { name = "a" },
    { name = "windows-only", marker = "sys_platform == 'win32'" },
]
[package.dev-dependencies]
dev = [{ name = "tool" }]
[[package]]
name = "a"
version = "1.0"
source = { registry = "https://example.org/simple" }
dependencies = [{ name = "forked" }]
[[package]]
name = "windows-only"
version = "1.0"
source = { registry = "https://example.org/simple" }
[[package]]
name = "tool"
version = "3.0"
source = { git = "https://example.org/tool?rev=1#abc" }
[[package]]
name = "forked"
version = "1.0"
resolution-markers = ["python_full_version < '3.8'"]
source = { registry = "https://example.org/simple" }
[[package]]
name = "forked"
version = "2.0"
resolution-markers = ["python_full_version >= '3.8'"]
source = { registry = "https://example.org/simple" }
"""


def test_markers_select_the_entries_of_a_lock(tmp_path):
    pins = read(tmp_path, "uv.lock", UV)
    assert sorted(pins.requirements) == ["a==1.0", "forked==2.0", "tool==3.0"]
    assert [told.partition(" ")[0] for told in pins.told] == ["tool"]


def test_poetry_and_pdm(tmp_path):
    poetry = """
[[package]]
name = "a"
version = "1.0"
[[package]]
name = "other-platform"
version = "1.0"
markers = "sys_platform == 'win32'"
[metadata]
lock-version = "2.1"
"""
    pdm = """
[metadata]
lock_version = "4.5.0"
[[package]]
name = "a"
version = "1.0"
[[package]]
name = "b"
version = "2.0"
git = "https://example.org/b"
"""
    assert read(tmp_path, "poetry.lock", poetry).requirements == ("a==1.0",)
    pins = read(tmp_path, "pdm.lock", pdm)
    assert pins.requirements == ("a==1.0", "b==2.0")
    assert len(pins.told) == 1


def test_the_pip_part_of_a_conda_environment(tmp_path):
    text = "dependencies:\n  - python=3.10\n  - mkl=2024\n  - pip:\n      - six==1.16.0\n"
    pins = read(tmp_path, "environment.yml", text)
    assert (pins.requirements, pins.python) == (("six==1.16.0",), "3.10")
    assert "mkl" in pins.told[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", "["),
        ("pyproject.toml", "[project]\nname = 'x'\n"),
        ("pylock.toml", "lock-version = '1.0'\n"),
        ("environment.yml", "- a list"),
        ("environment.yaml", "dependencies:\n  - numpy=1.26\n"),
        ("freeze.txt", "!!!\n"),
        ("empty.txt", "# nothing\n"),
    ],
)
def test_an_unreadable_file_is_refused(tmp_path, name, text):
    with pytest.raises(UserMistake):
        read(tmp_path, name, text)
