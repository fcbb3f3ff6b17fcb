"""The command line: parse, wire, print. It decides nothing."""

from harness.cli.main import cli, main

__all__ = ["cli", "main"]
