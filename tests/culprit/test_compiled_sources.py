"""The changed source files behind a compiled module, from the files of two source distributions."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from harness.culprit.compiled import SourceTree, sources_behind

if TYPE_CHECKING:
    from pathlib import Path

MESON = """
headers = ['h.h']
fast = headers + [
  'src/one.c', 'src/two.c',
]
py.extension_module('_fast', ['_fastmodule.c'] + fast, install: true)
py.extension_module('_slow', 'slow.c')
"""
SOURCES = ("_fastmodule.c", "src/one.c", "src/two.c", "slow.c", "_plain.pyx")


def _tree(folder: Path, version: str, changed: tuple[str, ...], **moved: str) -> SourceTree:
    archive = folder / f"shop-{version}.tar.gz"
    files = {f"src/shop/{path}": f"{path} {version if path in changed else ''}" for path in SOURCES}
    files |= {"src/shop/meson.build": MESON, "src/shop/tests/t.c": version} | moved
    with tarfile.open(archive, "w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"shop-{version}/{path}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return SourceTree.read(archive)


@pytest.mark.parametrize(
    ("compiled", "expected"),
    [
        ("shop/_fast.cpython-311-x86_64-linux-gnu.so", ("src/shop/src/two.c",)),
        ("shop/_plain.cpython-311-x86_64-linux-gnu.so", ("src/shop/_plain.pyx",)),
        ("shop/_other.so", ("src/shop/_plain.pyx", "src/shop/slow.c", "src/shop/src/two.c")),
        ("other/_fast.so", ()),
    ],
)
def test_the_changed_sources_of_a_module_are_listed(tmp_path: Path, compiled: str, expected: tuple[str, ...]) -> None:
    """A build file lists them, also by the name of a list; without one, those with its name, else all in its folder."""
    changed = ("src/two.c", "slow.c", "_plain.pyx")
    trees = _tree(tmp_path, "1.0", changed), _tree(tmp_path, "1.1", changed)
    assert sources_behind((compiled,), *trees) == expected


def test_a_file_that_only_moved_is_not_changed(tmp_path: Path) -> None:
    """Its content is in both releases."""
    trees = (
        _tree(tmp_path, "1.0", (), **{"src/shop/old.c": "same"}),
        _tree(tmp_path, "1.1", (), **{"src/shop/n.c": "same"}),
    )
    assert sources_behind(("shop/_any.so",), *trees) == ()
