"""The matrix of a night: the newest releases and pre-releases instead of the versions in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.matrix.cells import PACKAGES, Matrix, Value
from harness.matrix.words import Word, selection

if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST: tuple[Value, ...] = (Word.LATEST.value, Word.PRERELEASES.value)


def tonight(matrix: Matrix) -> tuple[Matrix, tuple[str, ...]]:
    """Return the matrix of a night, and one sentence about each change.

    A package axis that already follows the index (`latest`, `prereleases`) or has a single version is kept, and so are
    commits on every axis. Excludes and includes that name versions of a replaced axis are dropped.
    """
    replaced = {axis for axis, values in matrix.axes.items() if axis.startswith(PACKAGES) and _is_dated(axis, values)}
    sentences = [
        f"{axis.removeprefix(PACKAGES)}: latest and pre-releases instead of {_counted(axis, matrix.axes[axis])}"
        for axis in matrix.axes
        if axis in replaced
    ]
    exclude, include = [], []
    for number, exclusion in enumerate(matrix.exclude, start=1):
        if named := [axis for axis, values in exclusion.items() if axis in replaced and not _are_commits(axis, values)]:
            sentences.append(f"exclude {number} is ignored because it names versions of {_projects(named)}")
        else:
            exclude.append(exclusion)
    for number, inclusion in enumerate(matrix.include, start=1):
        if named := [axis for axis in inclusion.choice if axis in replaced and not _follows(axis, inclusion.choice)]:
            sentences.append(f"include {number} is not run because it names a version of {_projects(named)}")
        else:
            include.append(inclusion)
    axes = {axis: _newest(axis, values) if axis in replaced else values for axis, values in matrix.axes.items()}
    return evolve(matrix, axes=axes, exclude=tuple(exclude), include=tuple(include)), tuple(sentences)


def _newest(axis: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    return (*NEWEST, *(value for value in values if _is_commit(axis, value)))


def _is_commit(axis: str, value: Value) -> bool:
    wanted = selection(axis.removeprefix(PACKAGES), str(value))
    return wanted is not None and wanted.word is Word.COMMIT


def _are_commits(axis: str, values: tuple[Value, ...]) -> bool:
    return all(_is_commit(axis, value) for value in values)


def _is_dated(axis: str, values: tuple[Value, ...]) -> bool:
    asked = [selection(axis.removeprefix(PACKAGES), str(value)) for value in values if not _is_commit(axis, value)]
    if not asked or (len(asked) == 1 and asked[0] is None):
        return False
    return not any(wanted is not None and wanted.follows_the_index for wanted in asked)


def _follows(axis: str, choice: Mapping[str, Value]) -> bool:
    wanted = selection(axis.removeprefix(PACKAGES), str(choice[axis]))
    return wanted is not None and (wanted.follows_the_index or wanted.word is Word.COMMIT)


def _counted(axis: str, values: tuple[Value, ...]) -> str:
    values = tuple(value for value in values if not _is_commit(axis, value))
    if any(selection(axis.removeprefix(PACKAGES), str(value)) for value in values):
        return " and ".join(f"{value}" for value in values)
    return f"{len(values)} versions"


def _projects(axes: list[str]) -> str:
    return " and ".join(axis.removeprefix(PACKAGES) for axis in axes)
