"""A matrix with the versions that the package index has for its words and ranges today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.environment.interpreter import accepted_tags
from harness.matrix import Target, expanded

if TYPE_CHECKING:
    from harness.environment import Index, Interpreter
    from harness.matrix import Matrix


def expanded_by_index(matrix: Matrix, index: Index, interpreter: Interpreter) -> Matrix:
    """Expand a matrix for the Pythons that it names, `interpreter` where it names none.

    These need not be on this machine: which wheels one takes follows from its version.
    Raises `BadMatrix`, `UnknownProject` and `NoNetwork`.
    """
    named = [
        *matrix.axes.get("python", ()),
        *(one.choice["python"] for one in matrix.include if "python" in one.choice),
    ]
    targets = [Target(str(python), frozenset(accepted_tags(str(python)))) for python in dict.fromkeys(named)]
    if "python" not in matrix.axes:
        targets.append(Target(interpreter.version, frozenset(interpreter.wheel_tags())))
    return expanded(matrix, index.releases, targets)
