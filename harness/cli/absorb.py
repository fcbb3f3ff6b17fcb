"""`harness absorb`: reads the observations of a bundle back into the results."""

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
    """Read the results of the bundle in FOLDER back in.

    What does not fit the bundle is refused. Reading it in twice changes nothing.
    Exit codes: 0 all read in, 2 something was refused, 3 something has not run yet.

    \b
    harness absorb carry
    """
    absorbed = take_back(folder, Store.opened(settings.results))
    print_absorbed(Console(soft_wrap=True), absorbed)
    sys.exit(2 if absorbed.refused else 3 if absorbed.missing else 0)
