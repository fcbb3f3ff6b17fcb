"""Links from a package's metadata, so that no link in a report is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.environment.location import site_packages
from harness.model import Change, normalized_name
from harness.repository.commits import repository_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def repositories_in(environment: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the repository of each distribution (normalised names) whose installed METADATA names one.

    `environment` is the folder of an environment; missing distributions are left out.
    """
    wanted = set(names)
    if not environment.is_dir():
        return {}
    found = {}
    for metadata in sorted(site_packages(environment).glob("*.dist-info/METADATA")):
        name = normalized_name(metadata.parent.name.split("-")[0])
        if name in wanted and (repository := repository_url(metadata.read_text(encoding="utf-8", errors="replace"))):
            found[name] = repository
    return found


def compare_link(change: Change, repositories: Mapping[str, str]) -> str:
    """The URL of the page that compares the two tags of a change, "" if the repository is unknown."""
    repository = repositories.get(change.name, "")
    if not repository.startswith("https://github.com/") or change.before is None or change.after is None:
        return ""
    before, after = (version.partition("+")[0] for version in (change.before, change.after))
    return f"{repository}/compare/v{before}...v{after}"
