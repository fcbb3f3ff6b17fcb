"""`harness doctor` checks this machine; `harness clean` frees disk space."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from attrs import frozen
from rich.text import Text

from harness.cli.options import json_option, settings_options
from harness.environment import Workspace
from harness.environment.disk_space import kept_folders, own_bytes, prune_wheels, remove_leftovers
from harness.errors import HarnessError
from harness.events import Event, Warned
from harness.model.text import size_in_words, to_json
from harness.run.devices import choose_device
from harness.run.launch import remove_tree
from harness.run.locks import remove_abandoned
from harness.session import Session, local_session
from harness.settings import Settings
from harness.terminal.console import Console

_GIB = 2**30
_SCARCE = 2 * _GIB
_PROJECT_TO_ASK_FOR = "pip"


@click.command()
@json_option("a list of the checks as JSON")
@settings_options()
def doctor(as_json: bool, settings: Settings) -> None:
    """Check what the harness needs: Python, uv, the package index, disk, GPU, sandbox.

    \b
    harness doctor
    """
    console = Console(soft_wrap=True)
    checks = []
    for name, is_fine, words in _checks(settings):
        checks.append({"name": name, "ok": is_fine, "text": words})
        lead = ("ok    ", "green") if is_fine else ("FAIL  ", "bold red")
        if not as_json:
            console.print(Text.assemble(lead, f"{name:<13}", words))
    if as_json:
        click.echo(to_json(checks))
    sys.exit(0 if all(check["ok"] for check in checks) else 1)


def _checks(settings: Settings) -> Iterator[tuple[str, bool, str]]:
    warnings: list[str] = []
    try:
        session = local_session(settings, Collected(warnings))
    except HarnessError as error:
        yield "set-up", False, f"{error.message}. {error.hint}"
        return
    yield "python", True, f"{session.interpreter.version} at {session.interpreter.path}"
    answer = session.local.builder.uv.call("--version", cwd=Path.cwd())
    yield "uv", answer.returncode == 0, answer.words
    try:
        releases = session.index.releases(_PROJECT_TO_ASK_FOR)
        dated = sum(release.uploaded is not None for release in releases)
        words = f"answers; {len(releases)} releases of {_PROJECT_TO_ASK_FOR}, {dated} with a date"
        yield "index", True, words if dated else f"{words}: --as-of needs dates"
    except HarnessError as error:
        yield "index", False, f"{error.message}. {error.hint}"
    yield _disk(session)
    folder = settings.results.absolute()
    writable = os.access(next(p for p in (folder, *folder.parents) if p.exists()), os.W_OK)
    yield "results", writable, f"{folder} {'is writable' if writable else 'is NOT writable'}"
    for gpu in session.local_gpus:
        kind = f", compute capability {gpu.capability}" if gpu.capability else ""
        free = f"{size_in_words(gpu.free)} of {size_in_words(gpu.memory)} free" if gpu.memory else "memory unknown"
        yield "gpu", True, f"{gpu.index}: {gpu.name}, driver {gpu.driver}, {free}{kind}"
    if not session.local_gpus:
        words = "none found; repros that need CUDA run with a stand-in"
        has_all = session.local.builder.has_gpu_libraries
        yield "gpu", True, words if has_all else f"{words}, and NVIDIA's libraries are left out of environments"
    taken = [choose_device("auto", needed, session.local_gpus)[0].value for needed in ("cuda", "any", "cpu")]
    if (sandbox := session.local.sandbox) is not None:
        yield "sandbox", True, f"{sandbox.label}; repros see a read-only file system and no home"
    else:
        yield "sandbox", True, warnings[0] if warnings else "off: repros run with all your rights"
    yield "device", True, "auto takes {} for a repro that needs CUDA, {} for any device, {} for the CPU".format(*taken)


@frozen
class Collected:
    """A reporter that keeps warnings."""

    warnings: list[str]

    def report(self, event: Event) -> None:
        """Keep the sentence of a warning."""
        if isinstance(event, Warned):
            self.warnings.append(event.sentence)


def _disk(session: Session) -> tuple[str, bool, str]:
    workspace = session.local.workspace
    free = shutil.disk_usage(workspace.environments).free
    count = sum(path.is_dir() for path in workspace.environments.iterdir())
    taken = size_in_words(own_bytes(workspace.root))
    words = f"{size_in_words(free)} free at {workspace.root}, which takes {taken} for {count} environments"
    return "cache", free > _SCARCE, words if free > _SCARCE else f"{words}; harness clean frees some"


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Remove only environments unused for this many days [default: everything].",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
@json_option("the numbers as JSON")
def clean(older_than: float | None, dry_run: bool, as_json: bool) -> None:
    """Free disk space: environments, wheels and bytecode, which are rebuilt when needed.

    What is in use stays, and results are never touched.

    \b
    harness clean
    harness clean --older-than 14
    """
    workspace = Workspace.opened()
    if not dry_run:
        remove_leftovers(workspace)
    folders = list(kept_folders(workspace))
    chosen = [folder for folder in folders if older_than is None or folder.unused_days >= older_than]
    gone = chosen if dry_run else [folder for folder in chosen if folder.location.remove()]
    if not dry_run:
        prune_wheels(workspace)
        if older_than is None:
            for folder in (workspace.index, workspace.built, workspace.trees):
                remove_tree(folder)
            remove_abandoned(workspace.downloads)
    verb = "would remove" if dry_run else "removed"
    freed = sum(folder.size for folder in gone)
    left = sum(folder.size for folder in folders) - freed
    if as_json:
        numbers = {"environments": len(gone), "bytes": freed, "kept_bytes": left, "in_use": len(chosen) - len(gone)}
        click.echo(to_json({"dry_run": dry_run, **numbers}))
        return
    in_use = f"; {len(chosen) - len(gone)} are in use and stay" if len(gone) < len(chosen) else ""
    click.echo(
        f"{verb} {len(gone)} environments, {freed / _GIB:.2f} GiB; {left / _GIB:.2f} GiB are kept in {workspace.root}"
        f"{in_use}"
    )
