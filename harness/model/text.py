"""Makes text from a probe safe to show: no terminal escapes, control or bidi characters, or lone surrogates.

The output of a probe reaches terminals, Markdown and HTML. Escapes could clear the screen or forge a link there, and
bidi controls could reorder the text (CVE-2021-42574, "Trojan Source").
"""

from __future__ import annotations

import re

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
    """Return plain text on one line of at most `width` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _replacement(match: re.Match[str]) -> str:
    return "\ufffd" if "\ud800" <= match[0] <= "\udfff" else ""
