"""One call of uv's resolver: takes an attempt, returns a lock or uv's error message."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.environment.pylock import as_preferences, read_lock, undated_in
from harness.environment.uv import Uv, spoken_by_uv
from harness.model.combination import ANY_SOURCE

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from harness.environment.attempt import Attempt
    from harness.environment.interpreter import Interpreter
    from harness.model import Lock


@frozen
class Unresolvable:
    """Why no set of releases meets the requirements, in the resolver's words."""

    words: str


@frozen
class Compiler:
    """Calls uv for one interpreter; `near` is always the lock whose versions are kept where possible."""

    uv: Uv
    interpreter: Interpreter

    def lock(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Lock | Unresolvable:
        """uv's answer to an attempt. Raises `NoNetwork` and `NoSpace`."""
        with self._asked(attempt, near, cancel) as (output, words):
            return Unresolvable(words) if words else read_lock(output, self.interpreter)

    def projects(
        self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None
    ) -> tuple[frozenset[str], frozenset[str]] | None:
        """The projects that uv chooses, and those of them whose file has no upload time; None if it finds none."""
        with self._asked(attempt, near, cancel) as (output, words):
            if words:
                return None
            return frozenset(pin.name for pin in read_lock(output, self.interpreter).pins), undated_in(output)

    @contextlib.contextmanager
    def _asked(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Iterator[tuple[Path, str]]:
        """The lock file that uv wrote, while the context lasts; uv's message if it wrote none."""
        with tempfile.TemporaryDirectory(prefix="harness-resolve-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text("\n".join(attempt.combination.requirements) + "\n", encoding="utf-8")
            (here / "constraints.txt").write_text("\n".join(attempt.constraints) + "\n", encoding="utf-8")
            output = here / "pylock.toml"
            if near is not None:
                output.write_text(as_preferences(near), encoding="utf-8")
            answer = self.uv.call(*self._arguments(attempt), cwd=here, cancel=cancel)
            failed = answer.returncode != 0
            yield output, (spoken_by_uv(answer.words) or f"uv ended with code {answer.returncode}") if failed else ""

    def _arguments(self, attempt: Attempt) -> list[str | Path]:
        return [
            "--quiet",
            "pip",
            "compile",
            "requirements.in",
            "--constraints",
            "constraints.txt",
            "--python",
            self.interpreter.path,
            *([] if ANY_SOURCE in attempt.combination.from_source else ["--only-binary", ":all:"]),
            "--format",
            "pylock.toml",
            "--output-file",
            "pylock.toml",
            *(["--no-deps"] if attempt.combination.only_named else []),
            *attempt.options,
        ]
