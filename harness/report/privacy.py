"""Collects the private data of this machine, to remove it from everything that is written for others."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.environment import Workspace, read_pip_settings
from harness.redact import Private, known_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.store import Store

_INDEX_NAME = re.compile(r"^(?:UV|PIP)_(?:.*INDEX.*|FIND_LINKS)$")


def private_of(store: Store) -> Private:
    """Folders, secrets and indexes of this machine."""
    root = Workspace.default().root
    settings = read_pip_settings()
    addresses = (settings.index_url, *settings.extra_index_urls, *settings.find_links)
    return private_in(
        os.environ,
        {root / "scratch": "<scratch>", root: "<cache>", store.root: "<results>", Path.cwd(): "<folder>"},
        addresses=filter(None, addresses),
        secrets=store.secrets,
    )


def private_in(
    environ: Mapping[str, str],
    folders: Mapping[Path, str],
    *,
    addresses: Iterable[str] = (),
    secrets: Mapping[str, str] | None = None,
) -> Private:
    """Return what is private for this process.

    `folders` maps further folders to their placeholders; `addresses` are those of configured indexes; `secrets`
    maps known secrets to theirs.
    """
    placeholders: dict[str, str] = {}
    home = Path(environ.get("HOME") or Path.home())
    for folder, label in {home: "<home>", **folders}.items():
        for path in {str(folder.absolute()), os.path.realpath(folder)}:
            if len(path) > 1:
                placeholders[path] = label
    given = [value for name, value in environ.items() if _INDEX_NAME.match(name)]
    for address in [part for value in (*given, *addresses) for part in re.split(r"[\s,]+", value)]:
        split = urlsplit(address)
        if split.netloc:
            placeholders[f"{split.scheme}://{split.netloc}"] = "<index>"
            placeholders[split.netloc] = "<index>"
        elif split.path.startswith("/") and len(split.path) > 1:
            placeholders[split.path] = "<index>"
    return Private({**placeholders, **known_secrets(environ), **(secrets or {})})
