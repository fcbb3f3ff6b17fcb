"""Versions as indexes write them."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def parsed_version(text: str | None) -> Version | None:
    """The version in a text, None if it is not one (PEP 440)."""
    try:
        return Version(text) if text else None
    except InvalidVersion:  # from before PEP 440; installers ignore them too
        return None


def public_version(version: Version) -> Version:
    """The version without a local label, as a value, so that 1.0 and 1.0.0 are equal (PEP 440)."""
    return Version(version.public)
