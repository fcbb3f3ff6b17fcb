"""Puts the parts together for one command: store, index, resolver, builder, prober."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from harness.environment import (
    Builder,
    Index,
    Interpreter,
    Resolver,
    Room,
    Uv,
    Workspace,
    find_interpreter,
    read_pip_settings,
)
from harness.environment.place import check_ours
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.model.size import parse_size
from harness.probe import Prober
from harness.run.devices import Gpu, find_gpus, of_one_kind
from harness.run.lease import DEFAULT_WAIT_S
from harness.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

results_option = click.option(
    "--results",
    "results_folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: os.environ.get("HARNESS_RESULTS", "results"),
    show_default="results, or HARNESS_RESULTS",
    help="Folder of the records; what is in it is not run again.",
)


@frozen
class Workshop:
    """All that a command needs to try something."""

    store: Store
    index: Index
    interpreter: Interpreter
    prober: Prober
    gpus: tuple[Gpu, ...]


def open_workshop(
    results_folder: Path,
    *,
    python: str | None = None,
    pass_env: tuple[str, ...] = (),
    from_source: tuple[str, ...] = (),
    capability: str = "8.6",
    torch_backend: str | None = None,
    environment: Path | None = None,
    gpu_wait: float = DEFAULT_WAIT_S,
    max_disk: int | None = None,
    reporter: Reporter = SILENT,
) -> Workshop:
    """Wire the parts; `environment` is a folder of the user's to build in, `reporter` gets notes meanwhile.

    Raises `UserMistake` where there is no such Python, or the folder holds something else.
    """
    if environment is not None:
        check_ours(environment)
    workspace = Workspace.default()
    settings = read_pip_settings()
    uv = Uv(settings, extra_environment={"UV_TORCH_BACKEND": torch_backend} if torch_backend else {})
    interpreter = find_interpreter(python, uv)
    index = Index(settings, workspace.index)
    store = Store(results_folder.absolute())
    gpus = find_gpus(os.environ)
    prober = Prober(
        store=store,
        resolver=Resolver(uv, index, interpreter),
        builder=Builder(
            uv,
            interpreter,
            workspace,
            from_source=from_source,
            at=environment,
            room=Room(workspace, max_disk or _limit_of_disk(), reporter),
            size_of=index.size_of,
        ),
        workspace=workspace,
        gpus=of_one_kind(gpus),
        pass_env=pass_env,
        capability=capability,
        invoked_from=Path.cwd(),
        gpu_wait=gpu_wait,
        reporter=reporter,
    )
    return Workshop(store, index, interpreter, prober, gpus)


def _limit_of_disk() -> int | None:
    """What the environment variable of --max-disk says, for commands without that option too."""
    text = os.environ.get("HARNESS_MAX_DISK")
    size = parse_size(text) if text else None
    if text and not size:
        raise UserMistake(f"HARNESS_MAX_DISK is {text!r}, not a size", hint="write for instance 20GiB")
    return size


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that bisect and probe have in common."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how much of this machine a command may take."""
    for option in reversed(_RESOURCES):
        command = option(command)
    return command


def _many(*names: str, metavar: str, text: str) -> Callable[..., Any]:
    return click.option(*names, multiple=True, metavar=metavar, help=text)


def _size(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    size = parse_size(text) if text else None
    if text and not size:
        raise click.BadParameter(f"{text!r} is not a size such as 20GiB")
    return size


_SHARED = [
    _many("--with", "with_", metavar="REQ", text="Install this too, or instead of the repro's own requirement."),
    _many("--hold", metavar="REQ", text="Keep this where the releases allow it; what they do not allow is told."),
    click.option("--python", metavar="X", help="Python to use: a version (3.12) or a path."),
    click.option(
        "--as-of",
        metavar="era|DATE|none",
        help="Companions of each release's own day, of one day, or held near the bad end's.",
    ),
    click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "cuda", "emulated"]),
        default="auto",
        show_default=True,
        help="Where the repro runs.",
    ),
    click.option(
        "--capability",
        default="8.6",
        show_default=True,
        help="Compute capability that the stand-in for CUDA pretends.",
    ),
    _many("--param", "params", metavar="NAME=VALUE", text="A parameter of the repro; the value is JSON, else text."),
    _many("--pass-env", metavar="NAME", text="Let the repro see this environment variable (a token, say)."),
    _many("--build", "from_source", metavar="PROJECT", text="Allow this project to be built from source."),
    click.option("--torch-backend", metavar="NAME", help="uv's choice of PyTorch builds: auto, cpu, cu128, ..."),
    results_option,
]

_RESOURCES = [
    click.option(
        "--gpu-wait",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        default=DEFAULT_WAIT_S,
        show_default=True,
        help="How long a probe waits for memory on a GPU that others use.",
    ),
    click.option(
        "--max-disk",
        callback=_size,
        metavar="SIZE",
        help="Limit of the harness's own cache (20GiB); the longest unused environments make room [HARNESS_MAX_DISK].",
    ),
]
