"""Formats paths for users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


def short(path: Path) -> Path:
    """The path relative to the working directory if it is inside, else unchanged."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def print_reports(paths: Iterable[Path]) -> None:
    """Print the paths of reports, one line each on stdout."""
    for path in paths:
        click.echo(f"  report: {short(path)}")
