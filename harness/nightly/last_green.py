"""The packages with which a project's tests last passed, kept in a file from night to night.

It is a requirements file with exact versions, so pip, uv and `harness bisect --good` can all read it. Its header lists
the tests that failed even then, which are not reported again.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from attrs import frozen

from harness.atomic import write_whole
from harness.errors import UserMistake

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from harness.model import Lock, Observation

FILE = "green.txt"
_HEAD = re.compile(r"^# harness watch: (\{.*\})$", re.MULTILINE)
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+)$", re.MULTILINE)


@frozen
class LastGreen:
    """Versions by project, the ISO date of the night, the Python version, and the tests that failed that night."""

    versions: dict[str, str]
    date: str
    python: str
    failing: tuple[str, ...] = ()

    def is_same(self, lock: Lock) -> bool:
        """Whether a lock has exactly these packages."""
        return self.versions == {pin.name: pin.version for pin in lock.pins}

    def news(self, observation: Observation) -> tuple[str, ...]:
        """Return the tests that fail now and did not fail then, sorted."""
        return tuple(sorted(set(failing_tests(observation)) - set(self.failing)))


def failing_tests(observation: Observation) -> tuple[str, ...]:
    """Return the tests of a run that failed or could not be set up, sorted."""
    return tuple(sorted(result.id for result in observation.tests if result.outcome.is_failure))


def read_last_green(folder: Path) -> LastGreen | None:
    """Read the last green packages from a folder, or None if there are none.

    Raises `UserMistake` if the file can't be read or was not written by `harness watch`.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"can't read {path}: {error}") from error
    try:
        head = json.loads(match[1]) if (match := _HEAD.search(text)) else {}
        versions = dict(_PIN.findall(text))
        failing = tuple(map(str, head.get("failing", ())))
        return LastGreen(versions, str(head["date"]), str(head["python"]), failing)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserMistake(
            f"{path} was not written by harness watch", hint="delete it to start over, or choose another --state folder"
        ) from error


def keep_last_green(folder: Path, lock: Lock, failing: Iterable[str], date: str) -> None:
    """Write a lock as the last green one. Raises `OSError`."""
    head = json.dumps({"date": date, "python": lock.python, "failing": sorted(failing)})
    lines = [
        f"# The packages with which the tests passed on {date}, on Python {lock.python}.",
        f"# harness watch: {head}",
    ]
    lines += [f"{pin.name}=={pin.version}" for pin in sorted(lock.pins, key=lambda pin: pin.name)]
    write_whole(folder / FILE, "\n".join(lines) + "\n")
