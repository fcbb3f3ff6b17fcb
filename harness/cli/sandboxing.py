"""The options --sandbox and --network, and the sandbox that they come to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from harness.errors import UserMistake
from harness.run.isolation import SandboxMode, choose

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.events import Reporter
    from harness.run.isolation import Isolation

_MODE, _NETWORK = "harness.sandbox", "harness.network"
_VARIABLE = "HARNESS_SANDBOX"


def _kept(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        context.meta[name] = value

    return keep


SANDBOX_OPTIONS = [
    click.option(
        "--sandbox",
        type=click.Choice([mode.value for mode in SandboxMode]),
        expose_value=False,
        callback=_kept(_MODE),
        help=f"Run repros in a sandbox of bubblewrap: where that works (auto), always, or never [{_VARIABLE}].",
    ),
    click.option(
        "--network",
        is_flag=True,
        expose_value=False,
        callback=_kept(_NETWORK),
        help="Let repros use the network from inside the sandbox.",
    ),
]


def chosen_sandbox(reporter: Reporter) -> tuple[Isolation | None, str]:
    """The sandbox that the options of this command ask for, and what they allow beyond the default, in a word.

    Raises `UserMistake` where the sandbox is required and does not work, or HARNESS_SANDBOX is none of the three.
    """
    context = click.get_current_context(silent=True)
    given = context.meta if context is not None else {}
    named = given.get(_MODE) or os.environ.get(_VARIABLE) or SandboxMode.AUTO.value
    try:
        mode = SandboxMode(named)
    except ValueError:
        raise UserMistake(f"{_VARIABLE} is {named!r}", hint="it is auto, require or off") from None
    network = bool(given.get(_NETWORK))
    # Who says it for one question wants that run again with these rights; the variable is how a machine is set up.
    is_off = given.get(_MODE) == SandboxMode.OFF.value
    rights = "unsandboxed" if is_off else "network" if network else ""
    return choose(mode, network=network, reporter=reporter), rights
