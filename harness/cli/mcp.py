"""`harness mcp`: a server for coding agents, which asks the questions of the harness by tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from harness.cli.options import FOLDER
from harness.errors import UserMistake
from harness.run.sandbox import SandboxMode


@click.command()
@click.option(
    "--folder", type=FOLDER, default=Path(), metavar="FOLDER", help="Work only here [default: the working directory]."
)
@click.option("--allow-run", is_flag=True, help="Let the client choose commands to run, not only repros and tests.")
@click.option("--allow-write", is_flag=True, help="Let the client write files of the folder that it names.")
@click.option("--network", is_flag=True, help="Let runs and builds use the network in the sandbox.")
@click.option(
    "--sandbox",
    type=click.Choice([mode.value for mode in SandboxMode]),
    default=SandboxMode.REQUIRE.value,
    show_default=True,
    help="Run repros in a bubblewrap sandbox: where it works, always, or never.",
)
def mcp(folder: Path, allow_run: bool, allow_write: bool, network: bool, sandbox: str) -> None:
    """Serve the Model Context Protocol on stdin and stdout, for coding agents.

    Its tools ask for a release that broke something, run a repro, look a traceback up, print pins and reports. They
    work in FOLDER alone, and write nothing there but their results. An agent starts this command by its settings; see
    docs/guides/agents.md.

    \b
    harness mcp
    harness mcp --folder ~/src/my-project --allow-run
    """
    try:
        from harness.cli.mcp_server import serve
    except ImportError as error:
        raise UserMistake(
            "harness mcp needs the SDK of the Model Context Protocol, which is not installed",
            hint="pip install 'regression-harness[mcp]'",
        ) from error
    try:
        os.chdir(folder)
    except OSError as error:
        raise UserMistake(f"can't work in {folder}: {error.strerror}") from error
    options = [f"--sandbox={sandbox}", *(["--network"] if network else [])]
    if sys.stdin.isatty():
        click.echo("waiting for a client on stdin; a coding agent starts this command (Ctrl-C stops it)", err=True)
    serve(Path.cwd().resolve(), options, may_run=allow_run, may_write=allow_write)
