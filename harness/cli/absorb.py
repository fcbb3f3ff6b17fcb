"""`harness absorb`: the observations of a bundle come back into the results."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.bundle import absorb as take_back
from harness.cli.options import settings_options
from harness.settings import Settings
from harness.store import Store
from harness.terminal.bundle import print_absorbed
from harness.terminal.console import Console


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@settings_options()
def absorb(folder: Path, settings: Settings) -> None:
    """Take back what was observed with the bundle in FOLDER.

    What does not fit the bundle is refused. Taking the same back twice changes nothing.
    Exit codes: 0 all is taken, 2 something was refused, 3 something has not been run yet.

    \b
    harness absorb carry
    """
    absorbed = take_back(folder, Store.opened(settings.results))
    print_absorbed(Console(soft_wrap=True), absorbed)
    sys.exit(2 if absorbed.refused else 3 if absorbed.missing else 0)
