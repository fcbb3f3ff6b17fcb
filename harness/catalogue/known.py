"""What a draft knows of this field (`known.toml`): packages, and the one that a name, a module or a file belongs to."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from harness.model import normalized_name

# Also columns of data sets and architectures of checkpoints.
FIELD: dict[str, Any] = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
KNOWN = frozenset(FIELD["packages"])
LAST_SUSPECTS = frozenset(FIELD["last-suspects"])
_PROJECTS: dict[str, str] = FIELD["modules"]
_ALIASES = {normalized_name(key.replace(" ", "-")): value for key, value in FIELD["aliases"].items()}

_ALIAS = "|".join(
    sorted(
        {re.escape(name).replace(r"\-", "[-_ ]?") for name in (*KNOWN, *_ALIASES, *map(normalized_name, _PROJECTS))},
        key=len,
        reverse=True,
    )
)
NAME = rf"(?<![\w/.@-])(?:hugging ?face )?(?P<name>{_ALIAS})(?![\w/]|-(?!\d))"


def project_named(text: str) -> str | None:
    """Return the project that a name in a list or a sentence means, None if it is not a known one."""
    name = normalized_name(text.strip("`*'\" ").replace(" ", "-"))
    name = _ALIASES.get(name, name)
    return name if name in KNOWN else None


def project_of_module(module: str) -> str | None:
    """Return the project that a top-level module belongs to, by name; None for the standard library."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top.startswith("_") or top in ("__main__", "google"):
        return None
    return _PROJECTS.get(top, normalized_name(top))


def project_of_file(path: str) -> str | None:
    """Return the project of a file in a traceback, None if it is not an installed one."""
    text = path.replace("\\", "/")
    match = re.search(r"(?:site|dist)-packages/([A-Za-z0-9_]+)(?:/|\.py|$)", text)
    if match is None:
        # An editable install, or a checkout: .../transformers/src/transformers/trainer.py
        match = re.search(r"/([A-Za-z0-9_]+)/src/\1/", text) or re.search(r"/src/([A-Za-z0-9_]+)/", text)
        if match is None or project_of_module(match[1]) not in KNOWN:
            return None
    return project_of_module(match[1])
