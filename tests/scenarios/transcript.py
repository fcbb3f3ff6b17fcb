"""The transcript of a row: what its commands printed, without what varies between runs and machines."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from scenario import Played, Stage

# What varies, and what stands for it.
_VARIES = (
    (re.compile(r"^.*(unknown size to download|disk space for the first environment).*\n", re.MULTILINE), ""),
    (re.compile(r"\b\d+(\.\d+)? (s|min|h)\b"), "N s"),
    (re.compile(r"\b[0-9a-f]{20}\b"), "KEY"),
    (re.compile(r"\b[0-9a-f]{10}(?=\.(html|md))"), "ID"),
    (re.compile(r"(Python:? 3\.)\d+\.\d+"), r"\1x"),
    (re.compile(r"\b3\.1\d\.\d+\b"), "3.x"),
    (re.compile(rf"(--python 3\.){sys.version_info.minor}\b"), r"\1x"),
    (re.compile(r"\b(linux|macos)-\w+"), "PLATFORM"),
    (re.compile(r"sha256:[0-9a-f]{64}"), "sha256:HASH"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"stored \d{4}-\d\d-\d\d as [0-9a-f]{10}"), "stored DAY as ID"),
)
_COMMAND = re.compile(r"(?:^|  |: |`)(harness (?:bisect|history|probe|matrix|pin|shell|report|match|watch) .*)$")


def transcript(played: Sequence[Played], stage: Stage) -> str:
    """Return all commands with what they printed: progress first, then the answer."""
    text = "\n".join(f"$ harness {one.command}\n{one.ended.stderr}{one.ended.stdout}" for one in played)
    text = text.replace(str(stage.ground.folder), "<ground>").replace(str(stage.folder), "<folder>")
    for pattern, stands in _VARIES:
        text = pattern.sub(stands, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def printed_commands(played: Sequence[Played]) -> list[str]:
    """Return each command of the harness that was printed, once."""
    lines = [line for one in played for line in (one.ended.stdout + one.ended.stderr).splitlines()]
    return list(dict.fromkeys(match[1] for line in lines if (match := _COMMAND.search(line))))
