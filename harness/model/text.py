"""Text for users: safe to show, numbers and lists in sentences, sizes with units, JSON, and tables for notebooks.

The output of a probe reaches terminals, Markdown and HTML. Escapes could clear the screen or forge a link there, and
bidi controls could reorder the text (CVE-2021-42574, "Trojan Source").
"""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

# CSI, OSC, and the strings DCS, SOS, PM, APC; then any two-character escape (ECMA-48, sections 5.4 and 5.6).
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and newline, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi marks, embeddings, overrides, isolates
    r"\u2028\u2029\ufeff\ufffe\uffff"  # line separators, byte order marks, noncharacters
    r"\ud800-\udfff]"  # lone surrogates, which no encoding can write
)


def plain(text: str) -> str:
    """Return the text as a terminal would show it, without anything that a terminal or browser would interpret.

    Escape sequences and other control characters are removed. Only the last state of a line redrawn in place is kept.
    A lone surrogate becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():  # most are, and there are hundreds of thousands of names
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _UNSAFE.sub(_replacement, text)


# The folder of an installed file up to site-packages or the standard library; for other files of an environment, the
# folder of the environment, whose name starts with a long hexadecimal hash.
_FOLDERS = re.compile(
    r"(?<![\w./])/(?:[^\s\"'`()<>:,;]*/)?"
    r"(?:(?:site|dist)-packages/|lib/python3\.\d+/|(?:environments|building|scratch|clones)/[0-9a-f]{12,}[^\s/\"'`()<>:,;]*/(?:bin/)?)"
)


def without_folders(text: str) -> str:
    """Make the paths of an environment's files relative, so that they don't depend on where it is."""
    return _FOLDERS.sub("", text)


def one_line(text: str, width: int) -> str:
    """Return plain text on one line of at most `width` characters, cut between two words if possible."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: cut_between_words(line, width - 1)] + "…"


def short_reason(reason: str, width: int = 200) -> str:
    """A reason on one line, without the folders of environments."""
    return one_line(without_folders(reason), width)


def in_environment(file: str) -> str:
    """The path of an environment's file, relative to site-packages if it is there."""
    return plain(file.rpartition("site-packages/")[2])


def cut_between_words(line: str, width: int) -> int:
    """The number of characters to keep of a line that is too long: whole words, unless one is very long."""
    space = line.rfind(" ", 0, width + 1)
    return space if space > width // 2 else width


def _replacement(match: re.Match[str]) -> str:
    return "\ufffd" if "\ud800" <= match[0] <= "\udfff" else ""


def listed(items: Iterable[str], most: int = 3) -> str:
    """Join up to `most` items ("a, b and c"); if there are more, the first ones and a count ("a, b and 7 more")."""
    names = list(items)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def numbered_lines(spans: Iterable[tuple[int, int]]) -> str:
    """Name lines by their first and last numbers: "line 6", "lines 10-11 and 15"; spans that adjoin are one."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and first == joined[-1][1] + 1 <= last and joined[-1][0] <= joined[-1][1]:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    ranges = [f"{first}-{last}" if last > first else f"{first}" for first, last in joined]
    return f"{'lines' if len(ranges) > 1 or '-' in ranges[0] else 'line'} {listed(ranges)}"


def listed_in_order(releases: Iterable[tuple[str, bool]], most: int = 6) -> str:
    """Join the releases marked True; three or more in sequence become "4.51.0 to 4.51.9 (10 releases)"."""
    runs: list[list[str]] = [[]]
    for release, is_listed in releases:
        if is_listed:
            runs[-1].append(release)
        elif runs[-1]:
            runs.append([])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]} to {run[-1]} ({len(run)} releases)"] if len(run) > 2 else run
    return listed(parts, most)


def ranged(releases: Iterable[str], most: int = 3) -> str:
    """Join up to `most` releases; if there are more, the first and the last (in the given order) and their number."""
    names = list(releases)
    return f"{names[0]} to {names[-1]} ({len(names)} releases)" if len(names) > most else listed(names, most)


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural if needed: "1 cell", "3 cells"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(rf"\s*([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(_UNITS)})\s*")


def parse_size(text: str) -> int | None:
    """Parse a size such as "8 GiB" or "20GB" into bytes, None if it is not one."""
    match = _SIZE.fullmatch(text)
    size = float(match.group(1)) * _UNITS[match.group(2)] if match else math.inf
    return int(size) if math.isfinite(size) else None


def size_in_words(count: float) -> str:
    """A number of bytes with a unit and at least two digits ("1.2 GiB", "740 MiB")."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < 1023.5:  # 1023.9 KiB would be rounded to 1024 KiB
            break
        count /= 1024
        unit = larger
    return f"{count:.0f} {unit}" if unit == "B" or count >= 9.95 else f"{count:.1f} {unit}"


def picked(value: Any, names: str) -> dict[str, Any]:
    """Return some attributes of a value by their names (separated by spaces), as JSON has them: tuples are lists."""
    items = {name: getattr(value, name) for name in names.split()}
    return {
        name: list(item) if isinstance(item, tuple) else item.value if isinstance(item, enum.Enum) else item
        for name, item in items.items()
    }


def to_json(value: Any) -> str:
    """Return a value as JSON. NaN and infinities become null, because JSON has none."""
    return json.dumps(finite(value), indent=1, allow_nan=False)


def finite(value: Any) -> Any:
    """Replace NaN and infinities with None, and lone surrogates with U+FFFD."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {finite(key) if isinstance(key, str) else key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def sentence_and_table(sentence: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return HTML for `_repr_html_`, with every text escaped."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    heading = f"<p><b>{escape(sentence)}</b></p>" if sentence else ""
    named = f"<thead><tr>{titles}</tr></thead>" if titles else ""
    return f"{heading}<table>{named}<tbody>{body}</tbody></table>" if body else heading
