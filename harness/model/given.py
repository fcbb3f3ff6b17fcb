"""What a repro is given besides its packages: files that its first step made, and inputs that it declares.

A folder that a run is given is named by a hash over its whole content, so that another byte makes it another run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from attrs import frozen

MAKE, USE = "make", "use"
ARTIFACTS, INPUTS = "HARNESS_ARTIFACTS", "HARNESS_INPUTS"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HUB = re.compile(r"(?P<kind>(?:datasets|spaces)/)?(?P<id>[\w.-]+(?:/[\w.-]+)?)@(?P<revision>[\w./-]+)")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_KEYS = {"folder": (), "archive": ("sha256",), "hub": ("files",)}


@frozen
class Input:
    """Files that nothing makes: a `folder`, an `archive` (a path or a URL) with its `sha256`, or `files` of a `hub`.

    Relative paths start at the repro's own folder. `hub` is "owner/name@revision", with "datasets/" before it for a
    data set; `files` are names or patterns such as "*.json".
    """

    name: str
    folder: str = ""
    archive: str = ""
    sha256: str = ""
    hub: str = ""
    files: tuple[str, ...] = ()

    @property
    def repository(self) -> tuple[str, str, str]:
        """The kind of the hub's repository ("model", "dataset" or "space"), its id and the revision."""
        found = _HUB.fullmatch(self.hub)
        kind, name, revision = found.group("kind", "id", "revision") if found else ("", self.hub, "")
        return (kind or "models/").removesuffix("s/"), name, revision

    @property
    def words(self) -> str:
        """What it is, for people."""
        return self.hub or self.archive or self.folder


@frozen
class Given:
    """A folder that a run finds in the environment variable `variable` and can only read.

    `digest` is a hash over its content. `by` says what wrote it ("peft 0.17.1") and `run` is the key of that run, both
    "" for inputs. `flaw` says why there is no such folder: its first step failed.
    """

    variable: str
    folder: str
    digest: str
    by: str = ""
    run: str = ""
    flaw: str = ""

    @property
    def record(self) -> dict[str, str]:
        """What an observation keeps of it."""
        return {"tree": self.digest, **({"by": self.by, "run": self.run} if self.by else {})}


def digest_with(digest: str, given: Sequence[Given]) -> str:
    """Return the digest of a repro that is given these folders."""
    if not given:
        return digest
    told = "\0".join(f"{one.variable}={one.digest}{one.flaw}" for one in given)
    return f"{digest}+{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def parse_inputs(table: Any) -> tuple[Input, ...]:
    """Read `[tool.harness.inputs]`. Raises `ValueError` with a sentence that names the key."""
    if not isinstance(table, dict):
        raise ValueError("inputs must be a table: [tool.harness.inputs.NAME]")  # noqa: TRY004 - reported alike
    return tuple(_input(name, one) for name, one in table.items())


def _input(name: str, table: Any) -> Input:
    where = f"inputs.{name}"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: a name is letters, digits, dots and dashes, because it names a folder")
    sources = [key for key in _KEYS if isinstance(table, dict) and key in table]
    if len(sources) != 1:
        raise ValueError(f"{where} must name one of folder, archive and hub")
    (source,) = sources
    if unknown := sorted(set(table) - {source, *_KEYS[source]}):
        raise ValueError(f"{where} has unknown keys: {', '.join(unknown)}; with {source} go: {_words(source)}")
    if not isinstance(table[source], str) or not table[source]:
        raise ValueError(f"{where}.{source} must be a string in quotes, not {table[source]!r}")
    sha256, files = table.get("sha256", ""), table.get("files", [])
    if source == "archive" and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise ValueError(
            f"{where} needs sha256 = the archive's hash in 64 hexadecimal digits (sha256sum FILE shows it)"
        )
    if source == "hub" and not _HUB.fullmatch(table["hub"]):
        raise ValueError(f"{where}: hub = {table['hub']!r} must be 'owner/name@revision', where revision is a commit")
    if source == "hub" and not (files and isinstance(files, list) and all(isinstance(one, str) for one in files)):
        raise ValueError(f"{where} needs files = a list of the files wanted, such as ['config.json', '*.safetensors']")
    return Input(name, **{source: table[source]}, sha256=sha256, files=tuple(files))


def _words(source: str) -> str:
    return ", ".join(_KEYS[source]) or "no others"
