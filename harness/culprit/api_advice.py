"""Finds what a release says about a removed name: in a table of removed names, a warning or a docstring."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import TYPE_CHECKING

from harness.culprit.api_sources import Source
from harness.model.text import one_line

if TYPE_CHECKING:
    import griffe


_ADVICE = re.compile(r"deprecat|removed|instead|moved|renamed", re.IGNORECASE)
_LONGEST_ADVICE = 300


def says_gone(name: str, source: Source) -> str:
    """The text for a name in a table of removed names (`{"asfarray": "Use ..."}`); "" if there is none."""
    last = name.rpartition(".")[2]
    for _, text in sorted(source.containing(last).items()):
        for node in ast.walk(_parsed(text)):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if _text(key) == last and " " in _text(value):
                    return one_line(_text(value), _LONGEST_ADVICE)
    return ""


def deprecation(known: griffe.Object | griffe.Alias | None) -> str:
    """What the older release says about a name: a warning in its body, else a note in its docstring; "" for neither."""
    try:
        source = textwrap.dedent(known.source) if known is not None else ""
        docstring = known.docstring.value if known is not None and known.docstring else ""
    except Exception:  # noqa: BLE001 - griffe: an alias whose target is missing
        return ""
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Call) and _called(node) in ("warn", "deprecated"):
            text = " ".join(" ".join(map(_text, ast.walk(node))).split())
            if _ADVICE.search(text):
                return one_line(text, _LONGEST_ADVICE)
    lines = [" ".join(line.split()) for line in re.split(r"\n\s*\n", docstring) if "deprecated" in line.lower()]
    return one_line(lines[0].removeprefix(".. deprecated::"), _LONGEST_ADVICE) if lines else ""


def _parsed(source: str | bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))
