"""Downloads the wheels of a lock with pip, from the configured indexes, and checks their hashes."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.bundle.installed import same_version
from harness.bundle.packed_probe import PackedWheel
from harness.environment.index import index_urls
from harness.environment.installer_errors import raise_surroundings
from harness.model import Lock
from harness.run.launch import Limits
from harness.run.process import run_guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.environment import Index, Interpreter
    from harness.model import Pin

_LONGEST_S = 6 * 3600.0
_CHUNK = 1 << 20


@frozen
class Unfetchable:
    """A wheel could not be downloaded; `words` are pip's error message."""

    words: str


@frozen
class Wheels:
    """A folder of wheels for one interpreter; existing wheels are not downloaded again."""

    folder: Path
    index: Index
    interpreter: Interpreter
    _digests: dict[str, str] = field(factory=dict, init=False, repr=False, eq=False)

    def fetch(self, pins: Iterable[Pin]) -> tuple[PackedWheel, ...] | Unfetchable:
        """Download the wheels of these pins and check their hashes. Raises `NoNetwork` and `NoSpace`."""
        wanted = tuple(pins)
        missing = [pin for pin in wanted if self._find(pin) is None]
        for file in (pin.wheel for pin in missing if pin.wheel):
            # pip keeps an existing file with this name, even if it is incomplete or damaged.
            (self.folder / file).unlink(missing_ok=True)
            self._digests.pop(file, None)
        # pip requires hashes for all files of one call, or for none.
        for group in ([p for p in missing if p.sha256], [p for p in missing if not p.sha256]):
            words = self._download(group) if group else ""
            if words:
                return Unfetchable(words)
        found = [self._find(pin) for pin in wanted]
        for pin, wheel in zip(wanted, found, strict=True):
            if wheel is None:
                return Unfetchable(f"pip found no wheel of {pin.name} {pin.version} with the hash in the lock")
        return tuple(wheel for wheel in found if wheel is not None)

    def size(self, wheels: Iterable[PackedWheel]) -> int:
        """The size of these wheels in bytes; each file counts once."""
        return sum((self.folder / name).stat().st_size for name in {wheel.file for wheel in wheels})

    def _find(self, pin: Pin) -> PackedWheel | None:
        """The wheel of a pin in this folder, if it is there with the right hash."""
        for path in sorted(self.folder.glob("*.whl"), key=lambda path: path.name != pin.wheel):
            if not _is_of(path.name, pin):
                continue
            digest = self._digests.get(path.name) or self._digests.setdefault(path.name, _sha256(path))
            if not pin.digests or digest in pin.digests:
                return PackedWheel(pin.name, pin.version, path.name, digest)
        return None

    def _download(self, pins: list[Pin]) -> str:
        """Download these with pip; return pip's error message, "" if it succeeded."""
        options = ["--no-deps", "--only-binary", ":all:", "--dest", str(self.folder.absolute())]
        if pins[0].sha256:
            options.append("--require-hashes")
        with tempfile.TemporaryDirectory(prefix="harness-wheels-") as scratch:
            here = Path(scratch)
            (here / "requirements.txt").write_text(_lines(pins), encoding="utf-8")
            ended = run_guarded(
                [
                    *(sys.executable, "-m", "pip", "--python", str(self.interpreter.path)),
                    *("--disable-pip-version-check", "--no-input", "--no-color"),
                    *("download", "--progress-bar", "off", *options, "--requirement", "requirements.txt"),
                ],
                env=self._environment(),
                cwd=here,
                limits=Limits(wall_s=_LONGEST_S),
                output=here / "log",
            )
            words = (here / "log").read_text(encoding="utf-8", errors="replace")
        if ended.returncode == 0:
            return ""
        raise_surroundings(words)
        return spoken_by_pip(words)

    def _environment(self) -> dict[str, str]:
        """The environment variables for pip: the harness's own, and uv's index settings under pip's names."""
        ours = self.index.environ
        environment = {**os.environ, **_pip_settings(index_urls(self.index.settings, ours), self._links(ours))}
        environment.pop("PYTHONPATH", None)
        return environment

    def _links(self, ours: Mapping[str, str]) -> list[str]:
        given = [part for part in ours.get("UV_FIND_LINKS", "").split(",") if part]
        return list(dict.fromkeys([*given, *self.index.settings.find_links]))


def spoken_by_pip(words: str) -> str:
    """Extract pip's error message from its output, on one line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [re.sub(r"^ERROR: ", "", line) for line in lines if line.startswith("ERROR: ")]
    return " ".join((errors or lines[-1:] or ["pip failed without a message"])[-2:])


def _pip_settings(urls: list[str], links: list[str]) -> dict[str, str]:
    told = {"PIP_FIND_LINKS": " ".join(links)} if links else {}
    if not urls:
        return {**told, "PIP_NO_INDEX": "1"}
    main, *extra = urls
    return {**told, **({"PIP_INDEX_URL": main} if main else {}), "PIP_EXTRA_INDEX_URL": " ".join(extra)}


def _lines(pins: list[Pin]) -> str:
    return Lock(python="", platform="", pins=pins).as_requirements()


def _is_of(file: str, pin: Pin) -> bool:
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False
    return name == pin.name and same_version(str(version), pin.version)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()
