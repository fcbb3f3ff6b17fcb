"""Addresses that a package's own metadata gives, so that no link in a report is guessed."""

from __future__ import annotations

import email.parser
import re
from typing import TYPE_CHECKING

from harness.environment.build import site_packages
from harness.model import Change, normalized_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_GITHUB = re.compile(r"^https?://(?:www\.)?github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?(?:/tree/[^/]+|/)?$")
# Labels under which projects name their source (packaging specifications, "Well-known project URLs").
_SOURCE_LABELS = ("source", "repository", "sourcecode", "github", "code", "homepage")


def repositories_in(environment: Path, names: Iterable[str]) -> dict[str, str]:
    """The GitHub repository of each distribution (normalised names), where its installed METADATA names one.

    `environment` is a folder of an environment; what is not there gives nothing.
    """
    wanted = set(names)
    if not environment.is_dir():
        return {}
    found = {}
    for metadata in sorted(site_packages(environment).glob("*.dist-info/METADATA")):
        name = normalized_name(metadata.parent.name.split("-")[0])
        if name in wanted and (repository := _repository(metadata.read_text(encoding="utf-8", errors="replace"))):
            found[name] = repository
    return found


def compare_link(change: Change, repositories: Mapping[str, str]) -> str:
    """The page that compares the two tags of a change, "" where the repository is not known."""
    repository = repositories.get(change.name, "")
    if not repository or change.before is None or change.after is None:
        return ""
    before, after = (version.partition("+")[0] for version in (change.before, change.after))
    return f"{repository}/compare/v{before}...v{after}"


def _repository(metadata: str) -> str | None:
    headers = email.parser.HeaderParser().parsestr(metadata)
    told = {}
    for value in headers.get_all("Project-URL", []):
        label, _, url = str(value).partition(",")
        told[re.sub(r"[\W_]", "", label.lower())] = url.strip()
    if home_page := headers.get("Home-page"):
        told.setdefault("homepage", str(home_page).strip())
    for label in _SOURCE_LABELS:
        if match := _GITHUB.match(told.get(label, "")):
            return f"https://github.com/{match[1]}/{match[2]}"
    return None
