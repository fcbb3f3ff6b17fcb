"""`harness --help` lists every command and imports none of them."""

from __future__ import annotations

import subprocess
import sys

import click
from click.testing import CliRunner

from harness.cli import cli

_HEAVY = ("rich", "attrs", "cattrs", "requests", "pandas", "packaging", "harness.session", "harness.cli.bisect")


def test_every_command_is_listed():
    text = CliRunner().invoke(cli, ["--help"]).output
    for name in cli.list_commands(click.Context(cli)):
        assert any(line.strip().startswith(f"{name} ") for line in text.splitlines())
        assert isinstance(cli.get_command(click.Context(cli), name), click.Command)


def test_listing_imports_no_command():
    code = (
        "import sys\nfrom harness.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        f"print([name for name in {_HEAVY} if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"
