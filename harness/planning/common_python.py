"""Finds a Python with wheels at both ends of a question, if the current one has none."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.environment.interpreter import accepted_tags
from harness.errors import UnknownProject, UserMistake

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.environment import Index
    from harness.environment.uv import Uv
    from harness.model import Release

_KNOWN = tuple(f"3.{minor}" for minor in range(8, 15))
_NAMED = re.compile(r"Wheels are required for `([A-Za-z0-9._-]+)`")


def python_hint(words: str, moment: datetime, index: Index, uv: Uv) -> str:
    """Say which Pythons have wheels on a day and today for the projects in a resolver's message; "" if none has.

    Raises `NoNetwork`.
    """
    projects = sorted(set(_NAMED.findall(words)))
    moments = (moment, datetime.now(UTC))
    fitting = [python for python in _KNOWN if all(_has_wheels(name, python, moments, index) for name in projects)]
    return _told(fitting if projects else [], uv)


def python_hint_for_release(project: str, version: str, index: Index, uv: Uv) -> str:
    """Say which Pythons have wheels for a release and the newest one; "" if none has.

    Raises `NoNetwork` and `UnknownProject`.
    """
    old, newest = index.release(project, version), index.releases(project)[-1:]
    return _told([python for python in _KNOWN if old and all(_fits(one, python) for one in (old, *newest))], uv)


def _told(fitting: list[str], uv: Uv) -> str:
    if not fitting:
        return ""
    here = [python for python in fitting if _is_here(python, uv)]
    told = f"Python {' and '.join(fitting)} would work for both ends"
    return f"{told}; this machine has {' and '.join(here)} (--python {here[-1]})" if here else f"{told}, none is here"


def _fits(release: Release, python: str) -> bool:
    return release.left_out_because(python=f"{python}.0", tags=frozenset(accepted_tags(python))) is None


def _has_wheels(project: str, python: str, moments: Collection[datetime], index: Index) -> bool:
    try:
        fitting = [
            release.uploaded
            for release in index.releases(project)
            if release.uploaded is not None and _fits(release, python)
        ]
    except UnknownProject:
        return False
    return all(any(uploaded <= moment for uploaded in fitting) for moment in moments)


def _is_here(python: str, uv: Uv) -> bool:
    try:
        uv.find_python(python)
    except UserMistake:
        return False
    return True
