"""Records: values of attrs classes as JSON, read back as exactly the same, or as nothing if they are damaged."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import cattrs
from cattrs.cols import is_any_set
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from packaging.version import Version

from harness.atomic import write_whole

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")

# Errors from reading what is incomplete, damaged, or was written by something else.
INVALID = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
    cattrs.BaseValidationError,
)

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False, detailed_validation=False)
# Strict: what a damaged file has in place of a text or a number must not be converted into one.
_converter.register_structure_hook_func(
    lambda kind: kind in (str, int, bool), lambda value, kind: _exactly(value, kind)
)
# A value of a matrix keeps the type that TOML gave it. cattrs can't tell a union of plain types apart.
_converter.register_structure_hook_func(lambda kind: kind == str | int | float | bool, lambda value, _: value)
_converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
_converter.register_unstructure_hook(datetime, datetime.isoformat)
_converter.register_structure_hook(Version, lambda text, _: Version(text))
_converter.register_unstructure_hook(Version, str)
_converter.register_structure_hook(bytes, lambda text, _: base64.b64decode(text))
_converter.register_unstructure_hook_func(is_any_set, sorted)
_converter.register_unstructure_hook(bytes, lambda content: base64.b64encode(content).decode())


STORED_AS = "stored_as"  # in the metadata of a field: its name in records


def _renamed(kind: Any) -> dict[str, Any]:
    parts = attrs.fields(kind) if attrs.has(kind) else ()
    return {part.name: override(rename=part.metadata[STORED_AS]) for part in parts if STORED_AS in part.metadata}


_converter.register_structure_hook_factory(
    lambda kind: bool(_renamed(kind)), lambda kind: make_dict_structure_fn(kind, _converter, **_renamed(kind))
)
_converter.register_unstructure_hook_factory(
    lambda kind: bool(_renamed(kind)),
    lambda kind: make_dict_unstructure_fn(kind, _converter, _cattrs_omit_if_default=True, **_renamed(kind)),
)


def _exactly(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def as_record(value: Any, schema: int | None = None) -> dict[str, Any]:
    """Return a value of attrs classes as it is stored, without what has its default."""
    return {**({"schema": schema} if schema is not None else {}), **_converter.unstructure(value)}


def value_of(record: Any, kind: type[_T], schema: int | None = None) -> _T | None:
    """Return the value of a record; None if it is no valid one, or has another schema."""
    try:
        return _converter.structure(record, kind) if record.get("schema") == schema else None
    except INVALID:
        return None


def read_record(path: Path, kind: type[_T], schema: int | None = None) -> _T | None:
    """Return the value in a file; None if there is no valid one, or if it has another schema."""
    try:
        return value_of(json.loads(path.read_bytes()), kind, schema)
    except INVALID:
        return None


def write_record(path: Path, value: Any, schema: int | None = None, *, indent: int | None = None) -> None:
    """Write a value to a file. Raises `OSError`."""
    write_whole(path, json.dumps(as_record(value, schema), indent=indent) + "\n")
