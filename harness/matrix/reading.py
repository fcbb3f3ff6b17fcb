"""Reads a matrix file. Each mistake is one sentence that names the file and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from attrs import frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import BadMatrix
from harness.matrix.cells import (
    MADE,
    PACKAGES,
    PARAMETERS,
    Inclusion,
    Matrix,
    Selection,
    Value,
    Word,
    project_of,
    selection,
)
from harness.model import Device, normalized_name
from harness.model.combination import AsOf

_PLAIN = ("repro", "python", "device", "as-of")
_TABLES = {"packages": PACKAGES, "made": MADE, "parameters": PARAMETERS}
_AXES = (*_PLAIN, *_TABLES)
_DEVICES = ("auto", *(device.value for device in Device))


def read_matrix(path: Path) -> Matrix:
    """Read a matrix file; its stem is the matrix's name. Raises `BadMatrix`, which says what to change."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadMatrix(f"can't read the matrix {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadMatrix(f"the matrix {path} is not text in UTF-8") from error
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadMatrix(f"{path} is not valid TOML: {why}") from error
    return _Reader(str(path)).matrix(document, path.stem)


@frozen
class _Reader:
    where: str

    def matrix(self, document: dict[str, Any], name: str) -> Matrix:
        self._know(document, ("axes", "hold", "with", "include", "exclude", "repositories"), "")
        repositories = self._repositories(document.get("repositories", {}))
        include = [self._inclusion(entry, key) for entry, key in self._entries(document, "include")]
        axes = self._axes(document.get("axes", {}), "axes")
        if "repro" not in axes and not include:
            raise self._bad("axes.repro must name a repro")
        tables = {f"include {number}": _tuples(inclusion) for number, inclusion in enumerate(include, start=1)}
        self._know_commits({"axes": axes, **tables}, repositories)
        exclude = []
        for entry, key in self._entries(document, "exclude"):
            exclusion = self._axes(entry, key)
            if not exclusion:
                raise self._bad(f"{key} is empty and would leave out every cell")
            if unknown := [axis for axis in exclusion if axis not in axes]:
                raise self._bad(f"{key} names {unknown[0]}, which is not an axis of this matrix")
            for axis, value, wanted in _selections(exclusion):
                if wanted.word not in (Word.EVERY, Word.COMMIT):
                    raise self._bad(f"{key}.{axis}: {value!r}: an exclude takes only versions, ranges and commits")
            exclude.append(exclusion)
        return Matrix(
            name=name,
            axes=axes,
            hold=self._requirements(document.get("hold", []), "hold"),
            with_=self._requirements(document.get("with", []), "with"),
            include=tuple(include),
            exclude=tuple(exclude),
            repositories=repositories,
        )

    def _repositories(self, table: Any) -> dict[str, str]:
        if not isinstance(table, dict):
            raise self._bad("repositories must be a table")
        for project, git in table.items():
            if not isinstance(git, str) or not git.strip():
                raise self._bad(f"repositories.{project}: {git!r} must be the folder of a clone or a URL, in quotes")
        return {normalized_name(project): git for project, git in table.items()}

    def _know_commits(self, axes: Mapping[str, Mapping[str, tuple[Value, ...]]], known: Mapping[str, str]) -> None:
        """Raise `BadMatrix` for a commit of a project without a repository."""
        for where, table in axes.items():
            for axis, value, wanted in _selections(table):
                project = project_of(axis)
                if wanted.word is Word.COMMIT and axis.startswith(MADE):
                    raise self._bad(f"{where}.{axis}: {value!r} is a commit; files are made by releases")
                if wanted.word is Word.COMMIT and normalized_name(project) not in known:
                    said = f"{where}.{axis}: {value!r} is a commit"
                    raise self._bad(f"{said}; add repositories.{project} with its clone or URL")

    def _inclusion(self, entry: dict[str, Any], key: str) -> Inclusion:
        self._know(entry, (*_AXES, "name", "hold", "with"), f"{key}.")
        axes = self._axes({k: v for k, v in entry.items() if k in _AXES}, key)
        if several := [axis for axis, values in axes.items() if len(values) > 1]:
            raise self._bad(f"{key}.{several[0]} must be a single value, because an include is one cell")
        for axis, value, wanted in _selections(axes):
            if wanted.word not in (Word.LATEST, Word.COMMIT) or wanted.count != 1:
                said = f"{key}.{axis}: {value!r} must be a version, latest or a commit"
                raise self._bad(f"{said}, because an include is one cell")
        name = entry.get("name")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise self._bad(f"{key}.name must be a non-empty string")
        return Inclusion(
            choice={axis: values[0] for axis, values in axes.items()},
            name=name,
            hold=self._requirements(entry["hold"], f"{key}.hold") if "hold" in entry else None,
            with_=self._requirements(entry["with"], f"{key}.with") if "with" in entry else None,
        )

    def _axes(self, table: Any, where: str) -> dict[str, tuple[Value, ...]]:
        """Axes by name in the order of the file, tables flattened ("packages.transformers")."""
        if not isinstance(table, dict):
            raise self._bad(f"{where} must be a table")
        self._know(table, _AXES, f"{where}.")
        flat: dict[str, Any] = {}
        for key, value in table.items():
            if key not in _TABLES:
                flat[key] = value
            elif isinstance(value, dict):
                flat.update({f"{_TABLES[key]}{name}": values for name, values in value.items()})
            else:
                raise self._bad(f"{where}.{key} must be a table")
        return {axis: self._values(axis, values, f"{where}.{axis}") for axis, values in flat.items()}

    def _values(self, axis: str, given: Any, where: str) -> tuple[Value, ...]:
        values = given if isinstance(given, list) else [given]
        if not values:
            raise self._bad(f"{where} has no values; add one or remove the axis")
        checked = tuple(self._value(axis, value, where) for value in values)
        if twice := [value for position, value in enumerate(checked) if repr(value) in map(repr, checked[:position])]:
            raise self._bad(f"{where} has {twice[0]!r} twice")
        return checked

    def _value(self, axis: str, value: Any, where: str) -> Value:
        if axis.startswith(PARAMETERS):
            if isinstance(value, str | int | float | bool):
                return value
            raise self._bad(f"{where}: a parameter must be a string, a number, true or false, not {value!r}")
        if axis == "as-of" and isinstance(value, date):
            value = value.isoformat()
        if not isinstance(value, str) or not value.strip():
            raise self._bad(f"{where}: {value!r} must be a string in quotes")
        if why := _mistake(axis, value):
            raise self._bad(f"{where}: {value!r} {why}")
        return value

    def _requirements(self, values: Any, where: str) -> tuple[str, ...]:
        if not isinstance(values, list):
            raise self._bad(f"{where} must be a list of requirements")
        for value in values:
            try:
                Requirement(value)
            except (InvalidRequirement, TypeError) as error:
                raise self._bad(f"{where}: {value!r} is not a requirement like 'torch==2.13.0'") from error
        return tuple(values)

    def _entries(self, document: dict[str, Any], key: str) -> list[tuple[dict[str, Any], str]]:
        entries = document.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise self._bad(f"{key} must be a list of tables: [[{key}]]")
        return [(entry, f"{key} {number}") for number, entry in enumerate(entries, start=1)]

    def _know(self, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        if unknown := [key for key in table if key not in known]:
            raise self._bad(f"unknown key {where}{unknown[0]}; the known keys are {', '.join(known)}")

    def _bad(self, sentence: str) -> BadMatrix:
        return BadMatrix(f"{self.where}: {sentence}")


def _mistake(axis: str, value: str) -> str:
    """Say what is wrong with a value of an axis, "" if nothing."""
    if axis == "python" and not re.fullmatch(r"\d+\.\d+(\.\d+)?", value):
        return "is not a Python version like 3.11"
    if axis == "device" and value not in _DEVICES:
        return f"is not a device; choose from {', '.join(_DEVICES)}"
    if axis == "as-of":
        try:
            AsOf.read(value)
        except ValueError:
            return "must be a date like 2025-06-27, era or none"
    if project := project_of(axis):
        try:
            selection(project, value)
        except ValueError as error:
            return str(error)
    return ""


def _tuples(inclusion: Inclusion) -> dict[str, tuple[Value, ...]]:
    return {axis: (value,) for axis, value in inclusion.choice.items()}


def _selections(axes: Mapping[str, tuple[Value, ...]]) -> Iterator[tuple[str, Value, Selection]]:
    """Yield each value of an axis of releases that is not a plain version."""
    for axis, values in axes.items():
        if project := project_of(axis):
            for value in values:
                if (wanted := selection(project, str(value))) is not None:
                    yield axis, value, wanted
