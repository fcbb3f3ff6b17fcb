"""Collects the private data of this machine, to remove it from everything that is written for others."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
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
# Common names of accounts and hosts, which reveal nothing and occur in ordinary text.
_COMMON = frozenset(
    {"root", "user", "users", "admin", "ubuntu", "debian", "fedora", "runner", "docker", "nobody", "home", "test"}
    | {"tests", "localhost", "localdomain", "local", "python", "build", "git", "app", "main", "host", "server"}
    | {"default", "work", "base", "node"}
)


def private_of(store: Store, *, spared: Iterable[str] = ()) -> Private:
    """User, host, folders, secrets and indexes of this machine; `spared` words are never hidden."""
    root = Workspace.default().root
    settings = read_pip_settings()
    addresses = (settings.index_url, *settings.extra_index_urls, *settings.find_links)
    return private_here(
        os.environ,
        {root / "scratch": "<scratch>", root: "<cache>", store.root: "<results>", Path.cwd(): "<folder>"},
        addresses=filter(None, addresses),
        secrets=store.secrets,
        spared=spared,
    )


def private_here(
    environ: Mapping[str, str],
    folders: Mapping[Path, str],
    *,
    addresses: Iterable[str] = (),
    secrets: Mapping[str, str] | None = None,
    spared: Iterable[str] = (),
) -> Private:
    """Return what is private for this process.

    `folders` maps further folders to their placeholders; `addresses` are those of configured indexes; `secrets`
    maps known secrets to theirs; `spared` are words that never count as the name of a user or host, because the report
    is about them.
    """
    found: dict[str, str] = {}
    home = Path(environ.get("HOME") or Path.home())
    for folder, label in {home: "<home>", **folders}.items():
        for path in {str(folder.absolute()), os.path.realpath(folder)}:
            if len(path) > 1:
                found[path] = label
    given = [value for name, value in environ.items() if _INDEX_NAME.match(name)]
    for address in [part for value in (*given, *addresses) for part in re.split(r"[\s,]+", value)]:
        split = urlsplit(address)
        if split.netloc:
            found[f"{split.scheme}://{split.netloc}"] = "<index>"
            found[split.netloc] = "<index>"
        elif split.path.startswith("/") and len(split.path) > 1:
            found[split.path] = "<index>"
    found |= {**known_secrets(environ), **(secrets or {})}
    common = _COMMON | {word.lower() for word in spared}
    names = [name for name in _names(environ) if len(name) > 2 and name.lower() not in common]
    return Private(found, tuple(sorted(set(names), key=len, reverse=True)))


def _names(environ: Mapping[str, str]) -> list[str]:
    names = [environ.get(variable, "") for variable in ("USER", "LOGNAME", "USERNAME", "HOSTNAME")]
    with contextlib.suppress(OSError, KeyError, ImportError):  # no such account, as in some containers
        names.append(getpass.getuser())
    names.append(platform.node())
    return [*names, *(name.split(".")[0] for name in names)]
