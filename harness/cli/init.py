"""`harness init`: writes a repro, a matrix or a GitHub workflow to start from."""

from __future__ import annotations

import json
import re
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click

from harness.cli.options import Choice
from harness.cli.written import write
from harness.errors import UserMistake
from harness.repository.git import git_output

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ON_GITHUB = re.compile(r"github\.com[:/](?P<repository>[\w.-]+/[\w.-]+?)(\.git)?/?$")
_ACTION = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)@(?P<commit>[0-9a-f]{40})")
_PROJECT = "regression-harness"


@click.command()
@click.argument("kind", type=Choice(["repro", "matrix", "workflow"]))
@click.argument("name", required=False)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option(
    "--action",
    metavar="OWNER/NAME@COMMIT",
    help="The repository and commit of the harness that the workflow runs [default: where it was installed from].",
)
def init(kind: str, name: str | None, force: bool, action: str | None) -> None:
    """Write a repro, a matrix or a GitHub workflow to start from. Each runs as it stands.

    A repro goes to repros/NAME.py, a matrix to matrices/NAME.toml (with its repro, if there is none called NAME), a
    workflow to .github/workflows/NAME.yml.

    \b
    harness init repro
    harness init matrix mine
    harness init workflow
    """
    name = name or {"repro": "example", "matrix": "example", "workflow": "newest-packages"}[kind]
    if not _NAME.fullmatch(name):
        raise UserMistake(f"{name!r} can't be the name of a file", hint="use letters, digits, - and _")
    if action and kind != "workflow":
        raise UserMistake(f"--action goes with harness init workflow, not with {kind}")
    files = dict(_files(kind, name, action))
    existing = [path for path in files if path.exists()]
    if existing and not force:
        raise UserMistake(f"{existing[0]} is there already", hint="give another name, or replace it with --force")
    for path, text in files.items():
        write(path, text)
        click.echo(f"wrote {path}")
    click.echo(f"next: {_next(kind, name)}")


def _files(kind: str, name: str, action: str | None) -> Iterator[tuple[Path, str]]:
    repro = Path("repros", f"{name}.py")
    if kind == "repro" or (kind == "matrix" and not repro.exists()):
        yield repro, _starter("repro.py.txt")
    if kind == "matrix":
        path = Path("matrices", f"{name}.toml")
        yield path, _starter("matrix.toml").replace("@FILE@", str(path)).replace("@REPRO@", name)
    elif kind == "workflow":
        repository, commit = _action(action)
        text = _starter("workflow.yml").replace("@REPOSITORY@", repository).replace("@COMMIT@", commit)
        yield Path(".github", "workflows", f"{name}.yml"), text


def _starter(name: str) -> str:
    return resources.files("harness.cli").joinpath("starters", name).read_text(encoding="utf-8")


def _next(kind: str, name: str) -> str:
    return {
        "repro": f"harness bisect packaging --repro repros/{name}.py",
        "matrix": f"harness matrix matrices/{name}.toml --table",
        "workflow": "commit it and push; the Actions page of the repository starts the first night",
    }[kind]


def _action(given: str | None) -> tuple[str, str]:
    """The repository on GitHub and the commit that the workflow runs. Raises `UserMistake` if that is not known."""
    if given:
        if (named := _ACTION.fullmatch(given)) is None:
            raise UserMistake(f"--action takes OWNER/NAME@COMMIT with all 40 digits of the commit, not {given!r}")
        return named["repository"], named["commit"]
    for address, commit in _installed_from():
        if (found := _ON_GITHUB.search(address)) is not None and commit:
            return found["repository"], commit
    raise UserMistake(
        "the workflow needs the repository of the harness on GitHub, and this one was not installed from there",
        hint="--action OWNER/regression-harness@COMMIT names it",
    )


def _installed_from() -> Iterator[tuple[str, str]]:
    """Yield addresses and commits that this harness may have come from: what pip noted, and the clone it is in."""
    folders = [Path(__file__).parents[2]]
    try:
        noted = json.loads(metadata.distribution(_PROJECT).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        noted = {}
    address = str(noted.get("url", ""))
    yield address, str(noted.get("vcs_info", {}).get("commit_id", ""))
    if address.startswith("file:"):
        folders.append(Path(unquote(urlsplit(address).path)))
    for folder in folders:
        if (folder / ".git").exists():
            yield (
                git_output(folder, "remote", "get-url", "origin").strip(),
                git_output(folder, "rev-parse", "HEAD").strip(),
            )
