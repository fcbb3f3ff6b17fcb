"""Which packages a machine without network has, and the wheels that it lacks, downloaded with pip and checked."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.environment.index import index_urls
from harness.environment.uv import raise_surroundings
from harness.errors import UserMistake
from harness.model import Lock, normalized_name
from harness.probing.prober import same_version
from harness.run.launch import Limits
from harness.run.process import run_guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.environment import Index, Interpreter
    from harness.model import Pin

_LONGEST_S = 6 * 3600.0
_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;#]+)")
_HINT = "run there: python -m pip list --format=freeze, or python run.py --what-is-there"


@frozen
class Installed:
    """Installed versions by normalised name; `python` and `platform` are "" if the list does not have them."""

    versions: Mapping[str, str] = field(factory=dict)
    python: str = ""
    platform: str = ""

    def has(self, name: str, version: str) -> bool:
        """Whether exactly this version is installed, including the local version label (PEP 440)."""
        there = self.versions.get(name)
        return there is not None and same_version(there, version)

    def check(self, interpreter: Interpreter) -> None:
        """Raise `UserMistake` if the list is for another Python or platform than the locks."""
        if self.python and _minor(self.python) != interpreter.minor:
            raise UserMistake(
                f"the list is for Python {self.python}, but the locks are for {interpreter.version}",
                hint=f"use --python {_minor(self.python)}",
            )
        if self.platform and self.platform != interpreter.platform:
            raise UserMistake(f"the list is for {self.platform}; wheels packed here are for {interpreter.platform}")


def read_installed(path: Path) -> Installed:
    """Read `pip freeze`, `pip list` (freeze or JSON) or `run.py --what-is-there`. Raises `UserMistake`.

    Lines without a version (a local folder, a repository) are ignored; these distributions count as missing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"can't read what is installed from {path}: {error}", hint=_HINT) from error
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, path)
    found = {normalized_name(m["name"]): m["version"] for m in map(_LINE.match, text.splitlines()) if m}
    if not found:
        raise UserMistake(f"{path} lists no package with a version (name==1.0)", hint=_HINT)
    return Installed(found)


@frozen
class PackedWheel:
    """A wheel in the bundle, with its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_json(text: str, path: Path) -> Installed:
    try:
        told: Any = json.loads(text)
        if isinstance(told, list):
            told = {"installed": {row["name"]: row["version"] for row in told}}
        versions = {normalized_name(name): str(version) for name, version in told["installed"].items()}
        return Installed(versions, str(told.get("python", "")), str(told.get("platform", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserMistake(f"{path} is not a list of installed packages", hint=_HINT) from error


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
