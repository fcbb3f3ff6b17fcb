"""The command line. Commands parse options, call the other packages and print; they have no logic of their own."""

from harness.cli.main import cli, main
