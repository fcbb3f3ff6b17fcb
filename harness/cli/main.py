"""The `harness` command and its list of commands; the only place that catches `HarnessError`."""

from __future__ import annotations

import difflib
import gc
import importlib
import itertools
import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from harness._version import __version__
from harness.errors import HarnessError, HarnessFault, Interrupted, UserMistake

_OBJECTS = 200_000  # new objects between two garbage collections
_SWITCH_S = 0.0005  # a thread that checks thousands of files waits this long after each, if another one is busy
_FOR_GIT = "--git-bisect"
_STREAM = "--json-lines"
_FOR_PROGRAMS = _STREAM, "--json"
_PASS_ENV = "--pass-env"  # noqa: S105 - the name of an option
EXIT_CODES = """\b
Exit codes:
    0  found an answer (probe: good)
    1  nothing to find (probe: bad)
    2  a mistake in the command, or in a file that it names
    3  not sure; the answer says what hides it (probe: skipped)
    4  found an answer, but an internal error ended the search below it
    5  the package index can't be reached
    6  no space left, or a folder can't be written
    7  no other machine can run probes: the scheduler can't be reached, or no worker matches this machine
   70  an internal error, and no answer
  130  stopped by Ctrl-C; the same command goes on where it stopped
"""


# Each command's module in this package, and its line in the list of commands, below the headings of that list. A module
# is imported only when its command runs: importing all of them takes seconds, and `harness --help` needs none.
_GROUPS = {
    "Find what broke it": {
        "bisect": ("bisect", "Find the release that broke a repro, or the tests of a project."),
        "history": ("history", "Show every range of releases in which a repro was broken."),
        "gate": ("gate", "Judge the update of a lock file, and find the part of it that passes."),
        "probe": ("probe", "Run a repro once and say what happened."),
    },
    "After the answer": {
        "report": ("results", "Write the report of an answer."),
        "pin": ("pin", "Print the newest set of packages with which a command passes."),
        "shell": ("shell", "Open a shell in either side of an answer."),
        "results": ("results", "Show every run in the results, a row each."),
    },
    "Repros and known regressions": {
        "match": ("catalogue", "Say which known regression a traceback looks like."),
        "repros": ("catalogue", "List and search the known regressions, or show one."),
        "new": ("new", "Write a repro from an issue."),
        "init": ("new", "Write a repro, a matrix or a GitHub workflow to start from."),
        "mcp": ("mcp", "Serve coding agents: the questions of the harness as tools."),
        "skill": ("new", "Print how a coding agent uses the harness, as a SKILL.md."),
    },
    "Every night": {
        "matrix": ("matrix", "Run a matrix, and show it as a table and a page."),
        "nightly": ("watch", "Run a matrix with tonight's releases, and say what changed since last night."),
        "watch": ("watch", "Run a project's tests with the newest packages, and find what broke them."),
        "issues": ("watch", "Keep the issues of this repository on what nights and watches found."),
    },
    "Machines without network": {
        "bundle": ("job", "Pack probes for a machine without network."),
        "job": ("job", "Run packed probes, on that machine or this one."),
        "absorb": ("job", "Read the results of a bundle back in."),
    },
    "This machine": {
        "doctor": ("housekeeping", "Check what the harness needs: Python, uv, package index, disk, GPU, sandbox."),
        "clean": ("housekeeping", "Free disk space."),
    },
}
_COMMANDS = {name: command for group in _GROUPS.values() for name, command in group.items()}


class _Group(click.Group):
    """A group that imports a command when it runs, and turns our errors into one sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        function = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"harness.cli.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and (close := difflib.get_close_matches(name, _COMMANDS, n=1)):
            ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, _COMMANDS))
        for heading, commands in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        from harness.redact import hide_secrets, known_secrets, write_traceback

        known = known_secrets(os.environ, _let_through(ctx.args))
        for_git, form = _FOR_GIT in ctx.args, next((form for form in _FOR_PROGRAMS if form in ctx.args), "")
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = hide_secrets(error.message, known)  # it contains what was typed
            vars(error)["exit_code"] = _exit_code(error.exit_code, for_git=for_git)
            if form:
                _print_record(UserMistake(error.format_message()), known, form)
            if form == _STREAM:
                raise click.exceptions.Exit(error.exit_code) from None
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except HarnessError as error:
            failure: HarnessError = error
        except KeyboardInterrupt:
            failure = Interrupted("stopped", hint="run the same command again to continue")
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _is_unread():
                raise
            where = write_traceback(error, known)
            failure = HarnessFault(f"{type(error).__name__}: {error}", hint=f"details are in {where}")
        if form:
            _print_record(failure, known, form)
        if form != _STREAM:
            tell(failure, known)
        raise click.exceptions.Exit(_exit_code(failure.exit_code, for_git=for_git))


_UNREAD = 128 + signal.SIGPIPE  # as of a program that the signal ends


def _is_unread() -> bool:
    """Whether nobody reads what is printed any more, as after `| head`."""
    pipes = select.poll()
    for descriptor in (1, 2):
        pipes.register(descriptor, 0)  # an error is reported in any case
    return any(event & select.POLLERR for _, event in pipes.poll(0))


_KEPT = "finished runs are kept"


def _exit_code(code: int, *, for_git: bool) -> int:
    """The exit code of an error; with --git-bisect above 127, since lower ones are verdicts or skips."""
    return 255 if for_git and code <= 127 else code


def _let_through(arguments: Sequence[str]) -> list[str]:
    """The variables that a command line passes to runs, whose values messages must not show."""
    separate = [name for option, name in itertools.pairwise(arguments) if option == _PASS_ENV]
    return [*separate, *(word.partition("=")[2] for word in arguments if word.startswith(f"{_PASS_ENV}="))]


def _print_record(error: HarnessError, known: Mapping[str, str], form: str) -> None:
    """Print an error for programs on stdout: with --json-lines as the last line of the stream."""
    from harness.model.text import to_json
    from harness.redact import hide_secrets
    from harness.terminal.stream import JsonLines, error_record

    record = error_record(error, hide_secrets(error.message, known), hide_secrets(error.hint, known))
    if form == _STREAM:
        JsonLines().failed(record)
    else:
        click.echo(to_json(record))


def tell(error: HarnessError, known: Mapping[str, str] | None = None) -> None:
    """Print an error and its hint on stderr, without secrets that are `known` or have a recognisable format."""
    from rich.text import Text

    from harness.redact import hide_secrets
    from harness.terminal.console import Console, print_text
    from harness.terminal.stream import is_for_agent, last_line

    console = Console(stderr=True)
    lead, text = Text("error: ", "bold red"), error.message
    if isinstance(error, Interrupted):
        lead, text = Text("stopped: ", "bold yellow"), text.removeprefix("stopped").lstrip("; ") or _KEPT
    print_text(console, lead.append_text(Text(hide_secrets(text, known))), hang=2)
    if error.hint:
        print_text(console, f"  {hide_secrets(error.hint, known)}")
    if isinstance(error, HarnessFault):
        console.print(Text("  this is an internal error; please report it with the command you typed"))
    if is_for_agent():
        print_text(console, last_line("error", error.exit_code))


@click.group(cls=_Group, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
def cli() -> None:
    """Find which release of which package broke a training step, and prove it."""


def main() -> None:
    """Entry point of the `harness` command."""
    # Syntax trees have many objects without reference cycles; collecting garbage would take most of the parsing time.
    gc.set_threshold(_OBJECTS, 50, 50)
    sys.setswitchinterval(_SWITCH_S)
    try:
        sys.exit(cli(prog_name="harness"))
    except SystemExit as ended:
        if ended.code == 1 and _is_unread():  # click's code for that
            sys.exit(_UNREAD)
        raise
    finally:
        gc.freeze()  # else the interpreter looks through all that was imported for garbage when it ends
