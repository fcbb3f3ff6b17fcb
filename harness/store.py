"""The store: one JSON record in the results folder for each observation, with its log beside it.

Records are written atomically and never changed. The key is a hash of what was run and where, so that the store has the
answer when the same question is asked again.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, field, fields, frozen

from harness.atomic import is_out_of_space, remove_partial, write_whole
from harness.environment.resolve import Resolution
from harness.environment.uv import is_lasting
from harness.errors import NoSpace
from harness.model import Device, Lock, Observation, Outcome, Repro
from harness.model.text import picked
from harness.records import as_record, read_record
from harness.redact import everywhere, hide_secrets, known_secrets
from harness.run.launch import is_whole, read_log

SCHEMA = 1
OWN_FOLDER = ".harness"  # in a user's project; it ignores itself, as .pytest_cache does
_READ_ME = """\
What regression-harness has observed here: runs with their logs, locks, answers and reports (`harness report`).

git ignores this folder by the `.gitignore` in it. You can remove the folder: its runs are then made again when needed.
"""

_WITHOUT_TEXTS = {"key", "repro_digest", "lock", "loaded", "called", "log"}
_WITH_TEXTS = tuple(part.name for part in fields(Observation) if part.name not in _WITHOUT_TEXTS)
_T = TypeVar("_T")


def observation_key(
    lock: Lock, repro: Repro, device: Device, *, machine: str = "", attempt: int = 0, mixture: str = ""
) -> str:
    """The key of an observation: lock (with interpreter and platform), repro, parameters, device, attempt.

    `machine` distinguishes kinds of devices (a GPU's name), `mixture` environments whose files differ from their lock.
    """
    what = [lock.id, repro.digest, json.dumps(repro.params, sort_keys=True), device.value, machine, attempt, mixture]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:20]


@frozen
class Store:
    """Observations, logs and locks in one folder.

    No secret is written to it: `secrets` maps known ones to placeholders (`harness.redact`).
    """

    root: Path
    secrets: Mapping[str, str] = field(factory=dict, repr=False, eq=False)

    @classmethod
    def opened(cls, folder: Path, pass_env: Iterable[str] = ()) -> Store:
        """The store in a folder. It hides this process's secrets and the values of the variables passed to runs."""
        return cls(folder.absolute(), known_secrets(os.environ, pass_env))

    def get(self, key: str) -> Observation | None:
        """The observation with a key, or None. A record that can't be read counts as absent."""
        return read_record(self._record(key), Observation, SCHEMA)

    def put(self, observation: Observation) -> Observation:
        """Remove the secrets from an observation and its log, and store it; returns it without secrets.

        An observation that may be a temporary failure of the index is not stored. Raises `NoSpace`.
        """
        observation = self.without_secrets(observation)
        if not is_kept(observation):
            return observation
        if observation.log:
            self._hide_in_log(self.root / observation.log)
        record = json.dumps(as_record(observation, SCHEMA), indent=1, sort_keys=True)
        self._write(self._record(observation.key), record)
        return observation

    def forget(self, key: str) -> None:
        """Remove an observation and its log, because it is not true."""
        for path in (self._record(key), self.log_path(key)):
            path.unlink(missing_ok=True)

    def without_secrets(self, value: _T) -> _T:
        """Replace the secrets in the texts of a value; an observation's locks and file names are kept."""
        if isinstance(value, Observation):
            parts = {name: self.without_secrets(getattr(value, name)) for name in _WITH_TEXTS}
            return evolve(value, **parts)
        return everywhere(value, str, self._hide)  # type: ignore[no-any-return]

    def put_from_elsewhere(self, observation: Observation, log: bytes) -> Observation:
        """Store an observation from another machine with its compressed log. Raises `NoSpace`."""
        path = self.log_path(observation.key)
        if log:
            with self._disk():
                write_whole(path, log)
        own = evolve(observation, log=path.relative_to(self.root).as_posix() if log else "")
        return self.put(own)

    def get_resolution(self, key: str) -> Resolution | None:
        """The stored answer for a resolution key (`Combination.resolution_key`), or None."""
        return read_record(self.root / "locks" / f"{key}.json", Resolution, SCHEMA)

    def put_resolution(self, key: str, resolution: Resolution) -> None:
        """Store an answer of the resolver, unless it may be a temporary failure.

        Raises `NoSpace`.
        """
        if resolution.lock is None and not is_lasting(resolution.words):
            return
        hidden = evolve(resolution, drift=self.without_secrets(resolution.drift), words=self._hide(resolution.words))
        self._write(self.root / "locks" / f"{key}.json", json.dumps(as_record(hidden, SCHEMA), indent=1))

    def forget_resolution(self, key: str) -> None:
        """Remove the resolver's answer, because it can't be installed. Raises `NoSpace`."""
        with self._disk():
            (self.root / "locks" / f"{key}.json").unlink(missing_ok=True)

    def put_repro(self, repro: Repro) -> None:
        """Store what ran, so that it can run again. One that has a secret in it is not stored. Raises `NoSpace`."""
        path = self._repro(repro.digest)
        record = json.dumps(as_record(repro, SCHEMA), indent=1, sort_keys=True)
        if not path.is_file() and self._hide(record) == record:
            self._write(path, record)

    def get_repro(self, digest: str) -> Repro | None:
        """What ran, by the `repro_digest` of an observation; None if it is not stored."""
        return read_record(self._repro(digest), Repro, SCHEMA)

    def log_path(self, key: str) -> Path:
        """The path of an observation's compressed log; creates its folder. Raises `NoSpace`."""
        path = self._record(key).with_suffix(".log.gz")
        with self._disk():
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def log(self, observation: Observation) -> str:
        """The stored output of a run; if the log is damaged, as much as can be read."""
        if not observation.log:
            return ""
        return self._hide(read_log(self.root / observation.log))

    def has_log(self, observation: Observation) -> bool:
        """Whether the whole stored output of a run can be read."""
        return is_whole(self.root / observation.log)

    def write(self, name: str, text: str) -> Path:
        """Write a text file in this folder, atomically and without secrets. Raises `NoSpace`.

        `name` is its relative path.
        """
        path = self.root / name
        self._write(path, self._hide(text.removesuffix("\n")))
        return path

    def observations(self) -> Iterator[Observation]:
        """Every observation, the oldest first."""
        records = self.records("observations/*", Observation, SCHEMA)
        yield from sorted(records, key=lambda observation: (observation.started, observation.key))

    def records(self, folder: str, kind: type[_T], schema: int) -> list[_T]:
        """The values of the records in a folder; those that can't be read, or have another schema, are skipped."""
        records = (read_record(path, kind, schema) for path in self.root.glob(f"{folder}/*.json"))
        return [record for record in records if record is not None]

    def rows(self) -> list[dict[str, Any]]:
        """A row of a table for each observation, the oldest first: with its distributions, parameters and metrics."""
        # Records of earlier versions may contain secrets that are recognised only now.
        return [self.without_secrets(_row(observation)) for observation in self.observations()]

    def remove_leftovers(self) -> None:
        """Remove the half-written files of killed harnesses."""
        remove_partial([self.root, *self.root.glob("*"), *(self.root / "observations").glob("*")])

    def _hide(self, text: str) -> str:
        return hide_secrets(text, self.secrets)

    def _hide_in_log(self, path: Path) -> None:
        printed = read_log(path)
        hidden = self._hide(printed)
        if hidden != printed:
            with self._disk():
                write_whole(path, gzip.compress(hidden.encode(), mtime=0))

    def _record(self, key: str) -> Path:
        return self.root / "observations" / key[:2] / f"{key}.json"

    def _repro(self, digest: str) -> Path:
        return self.root / "repros" / f"{digest}.json"

    def _write(self, path: Path, text: str) -> None:
        with self._disk():
            write_whole(path, text + "\n")

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            if self.root.name == OWN_FOLDER and not (self.root / ".gitignore").exists():
                write_whole(self.root / "README.md", _READ_ME)
                write_whole(self.root / ".gitignore", "*\n")
            yield
        except OSError as error:
            why = "no space left" if is_out_of_space(error) else (error.strerror or "disk error")
            raise NoSpace(f"can't write to {self.root}: {why}", hint="--results chooses another folder") from error


def is_kept(observation: Observation) -> bool:
    """Whether an observation is a permanent answer: no failed download, and no conflict of releases but listed ones."""
    is_conflict = observation.outcome is Outcome.UNRESOLVABLE
    return is_lasting(observation.detail) if is_conflict else observation.outcome is not Outcome.UNINSTALLABLE


def _row(observation: Observation) -> dict[str, Any]:
    raised = observation.exception
    row: dict[str, Any] = {
        **picked(observation, "key started repro device outcome detail"),
        "exception": raised.name if raised else None,
        "python": observation.lock.python if observation.lock else None,
        **picked(observation, "duration_s setup_s"),
        "peak_memory_mib": round(observation.peak_memory / 2**20, 1) if observation.peak_memory else None,
        **picked(observation, "attempt as_of"),
        "requirements": " ".join(observation.requirements),
    }
    row.update({f"param:{name}": value for name, value in observation.params.items()})
    row.update({f"metric:{name}": value for name, value in observation.metrics.items()})
    if observation.lock is not None:
        row.update({f"version:{pin.name}": pin.version for pin in observation.lock.pins})
    return row
