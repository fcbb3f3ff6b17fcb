"""What a shell completes: subjects, repros, and releases as versions of the subject on the package index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from harness.environment import Workspace
from harness.environment.index import Index, read_pip_settings
from harness.request.repros import list_repros

if TYPE_CHECKING:
    import click

_PYTHON = "python"


def subjects(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The packages that known repros can be bisected over, and Python."""
    repros = list_repros()
    named = {subject: repro.name for repro in reversed(repros) for subject in repro.subjects}
    found = {**{name: f"repro {repro}" for name, repro in named.items()}, _PYTHON: "the interpreter"}
    return [CompletionItem(name, help=told) for name, told in sorted(found.items()) if name.startswith(incomplete)]


def repros(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The names of known repros, and files if a path was begun."""
    if "/" in incomplete or incomplete.startswith((".", "~")):
        return [CompletionItem(incomplete, type="file")]
    found = [repro for repro in list_repros() if repro.name.startswith(incomplete)]
    return [CompletionItem(repro.name, help=repro.summary) for repro in found]


def releases(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The releases of the subject that was typed, the newest first; pre-releases only if one was begun."""
    subject = ctx.params.get("subject") or next(iter(ctx.args), None)  # in args if an option without a value follows
    if not subject or subject == _PYTHON:
        return [CompletionItem(incomplete, type="file")]
    index = Index(read_pip_settings(), Workspace.default().index)
    known = [one for one in reversed(index.releases(subject)) if str(one.version).startswith(incomplete)]
    stable = [one for one in known if not one.version.is_prerelease and one.yanked is None]
    return [
        CompletionItem(str(one.version), help=f"{one.uploaded:%Y-%m-%d}" if one.uploaded else "")
        for one in stable or known
    ]
