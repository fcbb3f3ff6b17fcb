"""Parses the versions, requirements and dates that users write; errors are one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.combination import AsOf, moment_of

if TYPE_CHECKING:
    from datetime import datetime


def version_of(text: str) -> Version:
    """Parse a version, without its local label, which names a build. Raises `UserMistake`."""
    try:
        return Version(Version(text).public)
    except InvalidVersion as error:
        raise UserMistake(f"{text!r} is not a version", hint="write for instance 4.52.4") from error


def required_name(text: str) -> str:
    """Return the normalised name of the project that a requirement is for. Raises `UserMistake`."""
    try:
        return normalized_name(Requirement(text).name)
    except InvalidRequirement as error:
        raise UserMistake(
            f"{text!r} is not a requirement: {str(error).splitlines()[0]}", hint="write for instance 'torch==2.8.0'"
        ) from error


def as_of(text: str | None) -> AsOf:
    """Parse the value of `--as-of`: era, none or a date. Raises `UserMistake`."""
    try:
        return AsOf.read(text)
    except ValueError as error:
        raise UserMistake(f"--as-of {error}") from error


def day(text: str, option: str, takes: str = "a date such as 2025-06-27") -> datetime:
    """Parse the date of an option as a time in UTC; `takes` says what the option accepts. Raises `UserMistake`."""
    try:
        return moment_of(text)
    except ValueError as error:
        raise UserMistake(f"{option} takes {takes}, not {text!r}") from error
