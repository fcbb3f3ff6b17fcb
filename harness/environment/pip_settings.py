"""pip's index settings, which say where the package index is, for uv too.

Their sources, in rising priority: pip's configuration files in the order of pip's documentation ("Configuration",
location and precedence), then environment variables.
"""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@frozen
class PipSettings:
    """pip's index settings. `find_links` are folders or URLs; None means pip's default.

    `own` are projects that come from one index only, with its URL, whatever other indexes have of them.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    own: tuple[tuple[str, str], ...] = ()

    def as_uv_environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The same settings as uv's environment variables, which win where the user has set them."""
        variables: dict[str, str] = {}
        if self.index_url and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & environ.keys():
            variables["UV_DEFAULT_INDEX"] = self.index_url
        if self.extra_index_urls and not {"UV_INDEX", "UV_EXTRA_INDEX_URL"} & environ.keys():
            variables["UV_INDEX"] = " ".join(self.extra_index_urls)
            # pip takes the best version of all its indexes; uv by default stops at the first index.
            variables.setdefault("UV_INDEX_STRATEGY", environ.get("UV_INDEX_STRATEGY", "unsafe-best-match"))
        if self.find_links:
            given = [part for part in environ.get("UV_FIND_LINKS", "").split(",") if part]
            variables["UV_FIND_LINKS"] = ",".join(dict.fromkeys([*given, *self.find_links]))
        if self.no_index:
            variables["UV_NO_INDEX"] = "1"
        return variables


def read_pip_settings(environ: Mapping[str, str] | None = None) -> PipSettings:
    """Read what pip would use in this process."""
    environ = os.environ if environ is None else environ
    values: dict[str, str] = {}
    if environ.get("PIP_CONFIG_FILE") != os.devnull:
        for path in _configuration_files(environ):
            values.update(_section(path))
    for key in ("index-url", "extra-index-url", "find-links", "no-index"):
        value = environ.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            values[key] = value
    return PipSettings(
        index_url=values.get("index-url") or None,
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(
            str(Path(p).expanduser()) if "://" not in p else p for p in values.get("find-links", "").split()
        ),
        no_index=values.get("no-index", "").strip().lower() in {"1", "true", "yes", "on"},
    )


def index_urls(settings: PipSettings, environ: Mapping[str, str]) -> list[str]:
    """The URLs of all indexes that uv gets; "" is the default of the index client."""
    variables = {**environ, **settings.as_uv_environment(environ)}
    if variables.get("UV_NO_INDEX"):
        return []
    main = variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL") or ""
    extra = [*variables.get("UV_INDEX", "").split(), *variables.get("UV_EXTRA_INDEX_URL", "").split()]
    named = [url.split("=", 1)[-1] if "=" in url.split("://")[0] else url for url in [main, *extra]]
    return list(dict.fromkeys(url.rstrip("/") + "/" if url else "" for url in named))


def urls_of(project: str, settings: PipSettings, environ: Mapping[str, str]) -> list[str]:
    """The URLs of the indexes that may have a project (its normalised name): its own, or else all."""
    own = dict(settings.own).get(project)
    return [f"{own.rstrip('/')}/"] if own is not None else index_urls(settings, environ)


def _configuration_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """pip's configuration files, lowest priority first."""
    home = Path(environ.get("HOME") or Path.home())
    support = "Library/Application Support" if sys.platform == "darwin" else None
    shared = f"/{support}" if support else environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    for folder in shared.split(os.pathsep):
        yield Path(folder, "pip", "pip.conf")
    yield Path("/etc/pip.conf")
    yield home / ".pip" / "pip.conf"
    own = home / support if support and (home / support / "pip").is_dir() else environ.get("XDG_CONFIG_HOME")
    yield Path(own or home / ".config", "pip", "pip.conf")
    yield Path(sys.prefix) / "pip.conf"
    if named := environ.get("PIP_CONFIG_FILE"):
        yield Path(named)


def _section(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):  # pip reports it; the harness continues without it
        return {}
    return dict(parser["global"]) if parser.has_section("global") else {}
