"""Collects the private data of this machine to remove from everything that is written for others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from harness.environment import Workspace, read_pip_settings
from harness.redact import Private
from harness.report.surroundings import private_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.store import Store


def private_of(store: Store, *, pass_env: Iterable[str] = (), spared: Iterable[str] = ()) -> Private:
    """User, host, folders, secrets and indexes of this machine; `spared` words are never hidden."""
    root = Workspace.default().root
    settings = read_pip_settings()
    addresses = (settings.index_url, *settings.extra_index_urls, *settings.find_links)
    return private_here(
        os.environ,
        {root / "scratch": "<scratch>", root: "<cache>", store.root: "<results>", Path.cwd(): "<folder>"},
        addresses=filter(None, addresses),
        pass_env=pass_env,
        spared=spared,
    )


def unknown_here(pass_env: Sequence[str]) -> tuple[str, ...]:
    """Return the variables that were passed to runs and are not set now.

    The output of such a run may contain a secret that can't be recognised.
    """
    return tuple(name for name in pass_env if name not in os.environ)
