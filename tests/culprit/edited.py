"""Edits of texts that are given as dicts, for tests of what is read from them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.culprit.edits import Edits
from harness.culprit.sides import PackageFiles, differing


def written(folder: Path, tree: dict[str, str]) -> PackageFiles:
    """A tree of files as one side has it."""
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in tree.items()}
    return PackageFiles(folder, digests, dict.fromkeys(tree, "shop"))


def edits_of(folder: Path, before: dict[str, str], after: dict[str, str]) -> Edits:
    """The edits between two trees, all of them cut into regions."""
    older, newer = written(folder / "before", before), written(folder / "after", after)
    units = differing(older, newer)
    return Edits.of(units, older, newer, units)


def unit(edits: Edits, text: str) -> str:
    """The one region that has a text on either side."""
    found = [
        one for one in edits.all if edits.is_region(one) and any(text in "".join(lines) for lines in edits.lines(one))
    ]
    assert len(found) == 1, (text, found)
    return found[0]
