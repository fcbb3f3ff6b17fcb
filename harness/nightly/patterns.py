"""Decides whether two failures are the same break: the same failure and the same culprit. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.model import Change, Lock, Signature
from harness.model.signature import given_parts, normalized_message

if TYPE_CHECKING:
    from collections.abc import Iterable


def pattern_of(captured: Signature | None, matched: Signature | None) -> str:
    """Describe a failure for comparison; "" if there is no signature.

    The signature that the run matched may name any part of the message, so it is used only if none could be captured
    from the run itself (for example, for a metric out of bounds).
    """
    shown = captured or matched
    if shown is None:
        return ""
    parts = given_parts(shown) or {}
    for name in ("captured", "frame"):
        parts.pop(name, None)
    if shown.exception is not None:
        parts["exception"] = shown.exception.rpartition(".")[2]
    if shown.message is not None:
        parts["message"] = normalized_message(shown.message)
    return json.dumps(parts)


def break_id(pattern: str, culprit: Iterable[Change]) -> str:
    """Return the id of a break: ten hexadecimal digits made from its pattern and culprit."""
    what = [pattern, sorted((change.name, change.after) for change in culprit)]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]


def came_between(culprit: Iterable[Change], older: Lock, newer: Lock) -> bool:
    """Whether every package of a culprit changed across its breaking version between two locks."""
    changes = tuple(culprit)
    return bool(changes) and all(
        _stepped(change, older.version_of(change.name), newer.version_of(change.name)) for change in changes
    )


def _stepped(change: Change, was: str | None, now: str | None) -> bool:
    if was == now:
        return False
    versions = [_version(text) for text in (change.before, change.after, was, now)]
    before, after, here, there = versions
    if before is None or after is None or here is None or there is None:
        return (was, now) == (change.before, change.after)
    return here < after <= there if before < after else there <= after < here


def _version(text: str | None) -> Version | None:
    try:
        return None if text is None else Version(text)
    except InvalidVersion:
        return None
