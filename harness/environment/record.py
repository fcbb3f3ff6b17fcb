"""Records that the cache keeps as JSON: a value of attrs classes, or nothing if the file is missing or damaged."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import cattrs
from packaging.version import Version

from harness.atomic import write_whole
from harness.model import Release

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")

converter = cattrs.Converter()
attrs.resolve_types(Release, localns={"datetime": datetime})
# Strict: what a damaged file has in place of a text or a number must not be converted into one.
for _type in (str, int, bool):
    converter.register_structure_hook(_type, lambda value, type_: _of_type(value, type_))
converter.register_structure_hook(Version, lambda text, _: Version(text))
converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
converter.register_unstructure_hook(Version, str)
converter.register_unstructure_hook(datetime, datetime.isoformat)


def _of_type(value: Any, type_: type) -> Any:
    if type(value) is not type_:
        raise TypeError(f"{value!r} is no {type_.__name__}")
    return value


def read_record(path: Path, type_: type[_T]) -> _T | None:
    """The value in a file, None if there is no valid one."""
    try:
        return converter.structure(json.loads(path.read_bytes()), type_)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, cattrs.BaseValidationError):
        return None


def write_record(path: Path, value: object) -> None:
    """Write a value to a file. Raises `OSError`."""
    write_whole(path, json.dumps(converter.unstructure(value)))
