"""`--ask`: shows each run to the user, who judges it."""

from __future__ import annotations

import select
import sys
from typing import TYPE_CHECKING

import click

from harness.cli.shell import Entered, enter
from harness.errors import HarnessError
from harness.model import Verdict
from harness.probing.by_hand import Wish
from harness.report.commands import asked_for
from harness.run.process import Cancelled

if TYPE_CHECKING:
    import threading

    from harness.probing.by_hand import Shown

_LINES = 12
_LOOK_S = 0.2
_PROMPT = "  [g]ood, [b]ad, s[k]ip, [q]uit; [r]un it again, open a [s]hell in it, show the whole [l]og: "
_REPLIES: dict[str, Verdict | Wish] = {
    **dict.fromkeys(("g", "good"), Verdict.GOOD),
    **dict.fromkeys(("b", "bad"), Verdict.BAD),
    **dict.fromkeys(("k", "skip"), Verdict.SKIP),
    **dict.fromkeys(("q", "quit"), Wish.QUIT),
    **dict.fromkeys(("r", "run"), Wish.AGAIN),
}


class AtTheTerminal:
    """A user at the terminal: shows the end of what a run printed, and asks on stderr."""

    def judge(self, shown: Shown, cancel: threading.Event | None) -> Verdict | Wish:
        """Ask until there is a verdict or a wish; the end of the input quits. Raises `Cancelled`."""
        lines = shown.log.splitlines()
        click.echo(f"\n{_name(shown)}: {shown.observation.detail or 'ran to its end'}", err=True)
        if len(lines) > _LINES:
            click.echo(f"  ... {len(lines) - _LINES} lines before (l shows them)", err=True)
        _show(lines[-_LINES:])
        while True:
            click.echo(_PROMPT, nl=False, err=True)
            said = _line(cancel)
            if said is None:
                return Wish.QUIT
            if (reply := _REPLIES.get(said)) is not None:
                return reply
            if said in ("l", "log"):
                _show(lines or ["(it printed nothing)"])
            elif said in ("s", "shell"):
                _open(shown)
            else:
                click.echo("  type one of these letters", err=True)


def _name(shown: Shown) -> str:
    lock, named = shown.observation.lock, asked_for(shown.probe.combination.requirements)
    told = [f"{pin.name} {pin.version}" for pin in (lock.pins if lock is not None else ()) if pin.name in named]
    return ", ".join(told) or shown.observation.repro


def _show(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"  | {line}", err=True)


def _open(shown: Shown) -> None:
    try:
        enter(shown.builder, Entered(_name(shown), shown.observation, shown.probe.repro), [])
    except HarnessError as error:
        click.echo(f"  {error.message}", err=True)


def _line(cancel: threading.Event | None) -> str | None:
    """Return the next line in lower case, None at the end of the input. Raises `Cancelled`."""
    while cancel is not None and not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        if cancel.is_set():
            raise Cancelled
    line = sys.stdin.readline()
    return line.strip().lower() if line else None
