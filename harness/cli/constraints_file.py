"""Writes constraints for pip and uv that avoid the culprit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import NoSpace

if TYPE_CHECKING:
    from pathlib import Path

    from harness.bisect.upgrade_answer import UpgradeAnswer


def write_constraints(answer: UpgradeAnswer, asked: Path | None, results: Path) -> Path | None:
    """Write constraints that a run has confirmed; returns the path, None if there are none. Raises `NoSpace`."""
    if not answer.constraints or not answer.constraints_verified:
        return None
    culprits = "-".join(dict.fromkeys(culprit.package for culprit in answer.culprits[:3]))
    path = asked or results / f"constraints-{culprits}.txt"
    text = f"# {answer.sentence}\n" + "".join(f"{constraint}\n" for constraint in answer.constraints)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NoSpace(f"can't write {path}: {error.strerror}") from error
    return path
