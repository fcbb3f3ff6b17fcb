"""The stream of `--json-lines`: each event as one JSON object in a line on stdout, as it happens, and the end last.

`stream.schema.json` describes it. A program that reads it can draw what a terminal shows, and needs no other output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from harness.errors import HarnessError, HarnessFault, UserMistake
from harness.events import (
    Dropped,
    Event,
    Judged,
    LevelBegan,
    Note,
    Preparing,
    Progress,
    SearchBegan,
    SignatureCaptured,
    Started,
    Warned,
)
from harness.model.signature import given_parts
from harness.model.text import finite

SCHEMA = 1
OPTION = "--json-lines"
_BEGAN = time.monotonic()  # a command imports this module when it starts
# Variables that coding agents set in the commands that they start.
_OF_AGENTS = ("AGENT", "CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "COPILOT_CLI")


def is_for_agent(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a coding agent reads what is printed, by the variables that it sets."""
    return any(environ.get(name) for name in _OF_AGENTS)


def last_line(what: str, exit_code: int, record: Path | None = None) -> str:
    """What an agent gets as the last line of what is printed: "harness: found numpy 2.0.0 exit=0 answer=..."."""
    stored = [f"answer={record}"] if record is not None else []
    return " ".join(["harness:", what, f"exit={exit_code}", *stored])


def error_record(error: HarnessError, message: str, hint: str) -> dict[str, Any]:
    """Describe an error for programs, with its message and hint without secrets.

    `retry` says whether the same command may succeed later: it goes on where it stopped.
    """
    retry = not isinstance(error, (UserMistake, HarnessFault))
    return {"error": message, "hint": hint, "exit_code": error.exit_code, "retry": retry}


@define
class JsonLines:
    """A reporter that writes each event to `out` as a line; `now` is its clock, in seconds, which `began` then."""

    out: TextIO = field(factory=lambda: sys.stdout)
    now: Callable[[], float] = time.monotonic
    began: float = _BEGAN
    _writing: threading.Lock = field(factory=threading.Lock, init=False)

    def report(self, event: Event) -> None:
        """Write an event."""
        self._write(_record(event))

    def answered(self, answer: Mapping[str, Any], exit_code: int, files: Mapping[str, Path | None]) -> None:
        """Write the last line: an answer, as `--json` prints it, and the `files` that were written by their kind."""
        paths = {name: str(path) for name, path in files.items() if path is not None}
        self._write({"event": "answer", "exit_code": exit_code, "answer": answer, "files": paths})

    def failed(self, error: Mapping[str, Any]) -> None:
        """Write the last line: an error, as `error_record` describes it."""
        self._write({"event": "error", **error})

    def _write(self, record: Mapping[str, Any]) -> None:
        line = {"schema": SCHEMA, "at": round(self.now() - self.began, 3), **record}
        text = json.dumps(finite(line), allow_nan=False)
        with self._writing:
            self.out.write(f"{text}\n")
            self.out.flush()


def _record(event: Event) -> dict[str, Any]:
    match event:
        case Note(sentence):
            return {"event": "note", "sentence": sentence}
        case Warned(sentence):
            return {"event": "warning", "sentence": sentence}
        case SearchBegan(headline, details):
            progress = _progress(event.progress)
            return {"event": "search", "headline": headline, "details": list(details), "progress": progress}
        case SignatureCaptured(signature, source):
            return {"event": "signature", "signature": given_parts(signature), "source": source}
        case LevelBegan(level, sentence):
            return {"event": "level", "level": level.value, "sentence": sentence}
        case Preparing(label):
            return {"event": "preparing", "label": label}
        case Started(label):
            return {"event": "started", "label": label}
        case Dropped(label):
            return {"event": "dropped", "label": label}
        case Judged():
            return _judged(event)


def _judged(event: Judged) -> dict[str, Any]:
    judgement, observation = event.judgement, event.observation
    return {
        "event": "judged",
        "label": event.label,
        "verdict": judgement.verdict.value,
        "word": judgement.word,
        "reason": judgement.reason,
        "observation": observation.key,
        "outcome": observation.outcome.value,
        "seconds": observation.duration_s,
        "known": event.cached,
        "proof": event.is_proof,
        "progress": _progress(event.progress),
    }


def _progress(progress: Progress) -> dict[str, Any]:
    return {
        "left": progress.left,
        "unit": progress.unit,
        "candidates": progress.candidates,
        "tried": progress.tried,
        "states": [state.value for state in progress.states],
    }
