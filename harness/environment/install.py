"""Installs a lock: links wheels from the harness's wheel store; uv installs the others, which the store then keeps."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.location import MARK, site_packages
from harness.environment.manifest import Manifest
from harness.environment.pylock import is_source
from harness.environment.uv import Uv, spoken_by_uv

if TYPE_CHECKING:
    import threading
    from collections.abc import Container, Iterable, Iterator
    from pathlib import Path

    from harness.environment.bytecode import BytecodeStore
    from harness.environment.file_state import FileState
    from harness.environment.interpreter import Interpreter
    from harness.environment.wheel_store import WheelStore
    from harness.model import Lock, Pin

# uv's message if it chose a file that is not in the lock, because it was added to the release later.
_OTHER_FILE = "Hash mismatch"


@frozen
class Uninstallable:
    """Why a lock could not be installed, in the installer's words."""

    words: str


@frozen
class Installer:
    """Installs locks for one interpreter; `from_source` names packages that may be built from source."""

    uv: Uv
    interpreter: Interpreter
    wheels: WheelStore
    bytecode: BytecodeStore
    from_source: tuple[str, ...] = ()

    def install(
        self, lock: Lock, folder: Path, *, apart: bool = False, cancel: threading.Event | None = None
    ) -> Manifest | Uninstallable:
        """Install a lock into an empty folder and record its files.

        With `apart` it shares no file with other environments. Raises `OSError`, `NoNetwork` and `Cancelled`.
        """
        answer = self.uv.call("--quiet", *self._venv(folder), cwd=folder, cancel=cancel)
        if answer.returncode != 0:
            return Uninstallable(spoken_by_uv(answer.words))
        wheels = self.wheels.install(lock.pins, folder, apart=apart, cancel=cancel)
        words: str | None = "cancelled"
        try:
            with self.wheels.claimed(() if apart else self._missing(lock, wheels), cancel):
                # Another build may have stored some of them while this one waited.
                wheels |= self.wheels.install(self._missing(lock, wheels), folder, apart=apart, cancel=cancel)
                missing = self._missing(lock, wheels)
                words = self._install_with_uv(evolve(lock, pins=missing), folder, cancel)
                if words is None and not apart:
                    wheels |= self._take_in(lock, missing, folder, cancel)
        finally:
            if words is not None:
                self.wheels.unlinked(folder, wheels)
        if words is not None:
            return Uninstallable(words)
        (folder / MARK).write_text(json.dumps({"lock": lock.id, "python": lock.python}), encoding="utf-8")
        return Manifest.of(folder, lock.id, self.wheels.kind, wheels)

    def _missing(self, lock: Lock, wheels: Container[str]) -> tuple[Pin, ...]:
        return tuple(pin for pin in lock.pins if self.wheels.key(pin) not in wheels)

    def _take_in(
        self, lock: Lock, missing: Iterable[Pin], folder: Path, cancel: threading.Event | None
    ) -> dict[str, dict[str, FileState]]:
        """Store what uv installed.

        Wheels that do not match their RECORD were changed in uv's cache and are fetched again.
        """
        kept, damaged = self.wheels.take_in(missing, folder, site_packages(folder))
        if damaged and (
            self._install_with_uv(evolve(lock, pins=damaged), folder, cancel, "--no-cache", "--reinstall") is None
        ):
            kept |= self.wheels.take_in(damaged, folder, site_packages(folder))[0]
        self.bytecode.forget(kept)
        return kept

    def _install_with_uv(self, lock: Lock, folder: Path, cancel: threading.Event | None, *options: str) -> str | None:
        """Install pins as copies from uv's cache; returns uv's error message if that fails."""
        if not lock.pins:
            return None
        requirements = folder / "requirements.txt"
        requirements.write_text(lock.as_requirements(), encoding="utf-8")
        try:
            install = [*self._install_into(folder, lock, requirements), *options]
            answer = self.uv.call("--quiet", *install, cwd=folder, cancel=cancel)
            if answer.returncode != 0 and _OTHER_FILE in answer.words:
                answer = self.uv.call("--quiet", *install, *_not_newer(lock), cwd=folder, cancel=cancel)
        finally:
            for left in (requirements, folder / ".lock"):
                left.unlink(missing_ok=True)
        return spoken_by_uv(answer.words) if answer.returncode != 0 else None

    def _venv(self, folder: Path) -> list[str | Path]:
        options = ["--relocatable", "--allow-existing", "--no-project"]
        return ["venv", *options, "--python", self.interpreter.path, folder]

    def _install_into(self, folder: Path, lock: Lock, requirements: Path) -> list[str | Path]:
        options = ["--no-deps", "--link-mode", "copy"]
        if not self.from_source:
            options += ["--only-binary", ":all:", *_from_source(lock)]
        if all(pin.sha256 for pin in lock.pins):
            options.append("--require-hashes")
        return ["pip", "install", *options, "--python", folder / "bin" / "python", "--requirements", requirements]


def _from_source(lock: Lock) -> Iterator[str]:
    """Options for pins that are source distributions; the resolver was allowed to choose them."""
    for pin in lock.pins:
        if is_source(pin.wheel):
            yield from ("--no-binary", pin.name)


def _not_newer(lock: Lock) -> Iterator[str]:
    """Options that exclude files which were added to a locked release later than everything in the lock."""
    for pin in lock.pins:
        if pin.uploaded:
            yield from ("--exclude-newer-package", f"{pin.name}={_a_second_after(pin.uploaded)}")


def _a_second_after(moment: str) -> str:
    return (datetime.fromisoformat(moment) + timedelta(seconds=1)).isoformat()
