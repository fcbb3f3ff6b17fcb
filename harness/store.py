"""The store: every observation as one JSON record under `results/`, its log beside it.

A record is written whole or not at all and is never changed. Its key says what was run where, so that the same
question asked again is answered from here.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import cattrs
from attrs import evolve, field, fields, frozen

from harness.atomic import is_out_of_space, write_whole
from harness.environment.passing import is_lasting
from harness.errors import NoSpace
from harness.model import Device, Lock, Observation, Outcome, Repro
from harness.redact import hide_secrets, in_every_text, known_secrets
from harness.run.logs import read_log

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
_PIECE = 1 << 20

# All that can be wrong with a record that something else wrote, or half wrote.
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, cattrs.BaseValidationError)
_INSTALLERS_WORDS = (Outcome.UNRESOLVABLE, Outcome.UNINSTALLABLE)

_WITHOUT_TEXTS = {"key", "repro_digest", "lock", "loaded", "called", "log"}
_WITH_TEXTS = tuple(part.name for part in fields(Observation) if part.name not in _WITHOUT_TEXTS)
_T = TypeVar("_T")

_converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False)


def observation_key(
    lock: Lock, repro: Repro, device: Device, *, machine: str = "", attempt: int = 0, mixture: str = ""
) -> str:
    """The address of an observation: lock (with interpreter and platform), repro, parameters, device, attempt.

    `machine` tells devices of different kinds apart (a GPU's name), `mixture` an environment whose files are not
    those of its lock alone.
    """
    what = [
        lock.id,
        repro.digest,
        json.dumps(repro.params, sort_keys=True),
        device.value,
        machine,
        attempt,
        mixture,
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:20]


@frozen
class StoredResolution:
    """What the resolver answered: a lock with its drift, or its words where there is none."""

    lock: Lock | None
    drift: tuple[str, ...] = ()
    words: str = ""


@frozen
class Store:
    """Observations, logs and locks in one folder.

    No secret is written to it: `secrets` are known ones, and what takes their place (`harness.redact`).
    """

    root: Path
    secrets: Mapping[str, str] = field(factory=dict, repr=False, eq=False)

    @classmethod
    def opened(cls, folder: Path, pass_env: Iterable[str] = ()) -> Store:
        """The store in a folder; it hides the secrets of this process, and of the variables that runs are let see."""
        return cls(folder.absolute(), known_secrets(os.environ, pass_env))

    def get(self, key: str) -> Observation | None:
        """The observation of a key, or None.

        A record that can't be read counts as absent, and so does one of an earlier version that holds what may have
        been a fault of the index.
        """
        found = self._read(self._record(key))
        return found if found is not None and is_kept(found) else None

    def put(self, observation: Observation) -> Observation:
        """Keep an observation, unless it may be about the index of this moment only; as it is without secrets.

        Its log is freed of them too. Raises `NoSpace`.
        """
        observation = self.without_secrets(observation)
        if not is_kept(observation):
            return observation
        if observation.log:
            self._hide_in_log(self.root / observation.log)
        record = {"schema": SCHEMA, **_converter.unstructure(observation)}
        self._write(self._record(observation.key), json.dumps(record, indent=1, sort_keys=True))
        return observation

    def without_secrets(self, value: _T) -> _T:
        """The same value with no secret in any text of it; locks and the names of files are left alone."""
        if isinstance(value, Observation):
            parts = {name: self.without_secrets(getattr(value, name)) for name in _WITH_TEXTS}
            return evolve(value, **parts)
        return in_every_text(value, self._hide)  # type: ignore[no-any-return]

    def put_from_elsewhere(self, observation: Observation, log: bytes) -> Observation:
        """Keep an observation that was made by another store, with its compressed log. Raises `NoSpace`."""
        path = self.log_path(observation.key)
        if log:
            with self._disk():
                write_whole(path, log)
        kept = evolve(observation, log=path.relative_to(self.root).as_posix() if log else "")
        return self.put(kept)

    def get_resolution(self, key: str) -> StoredResolution | None:
        """What a resolution key (`Combination.resolution_key`) was answered with, or None."""
        try:
            record = json.loads((self.root / "locks" / f"{key}.json").read_text(encoding="utf-8"))
            found = _converter.structure(record, StoredResolution) if record.get("schema") == SCHEMA else None
        except _UNREADABLE:
            return None
        return found if found is not None and (found.lock is not None or is_lasting(found.words)) else None

    def put_resolution(self, key: str, resolution: StoredResolution, question: Mapping[str, Any]) -> None:
        """Keep an answer of the resolver, with the question in words, unless it may be about this moment only.

        Raises `NoSpace`.
        """
        if resolution.lock is None and not is_lasting(resolution.words):
            return
        told = evolve(resolution, drift=self.without_secrets(resolution.drift), words=self._hide(resolution.words))
        record = {
            "schema": SCHEMA,
            "question": self.without_secrets(dict(question)),
            **_converter.unstructure(told),
        }
        self._write(self.root / "locks" / f"{key}.json", json.dumps(record, indent=1))

    def forget_resolution(self, key: str) -> None:
        """Let the resolver be asked again: what it answered can't be installed."""
        with self._disk():
            (self.root / "locks" / f"{key}.json").unlink(missing_ok=True)

    def log_path(self, key: str) -> Path:
        """Where the compressed log of an observation lies."""
        path = self._record(key).with_suffix(".log.gz")
        with self._disk():
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def log(self, observation: Observation) -> str:
        """All that was kept of what a run printed; of a damaged log as much as can be read."""
        if not observation.log:
            return ""
        return self._hide(read_log(self.root / observation.log))

    def has_log(self, observation: Observation) -> bool:
        """Whether all that a run printed can still be read."""
        try:
            with gzip.open(self.root / observation.log) as file:
                while file.read(_PIECE):
                    pass
        except (OSError, EOFError, zlib.error):
            return False
        return True

    def write(self, name: str, text: str) -> Path:
        """Write a text file of this folder, whole or not at all and without secrets. Raises `NoSpace`.

        `name` is its relative path.
        """
        path = self.root / name
        self._write(path, self._hide(text.removesuffix("\n")))
        return path

    def observations(self) -> Iterator[Observation]:
        """Every observation, the oldest first."""
        found = filter(None, map(self._read, (self.root / "observations").glob("*/*.json")))
        yield from sorted(found, key=lambda observation: (observation.started, observation.key))

    def frame(self) -> pd.DataFrame:
        """The observations as a table: a row each, a column for each distribution, parameter and metric."""
        import pandas as pd

        # Records of earlier versions may hold what is hidden today.
        return pd.DataFrame([self.without_secrets(_row(observation)) for observation in self.observations()])

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

    def _read(self, path: Path) -> Observation | None:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            return _converter.structure(record, Observation) if record.get("schema") == SCHEMA else None
        except _UNREADABLE:
            return None

    def _write(self, path: Path, text: str) -> None:
        with self._disk():
            write_whole(path, text + "\n")

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = "no space left" if is_out_of_space(error) else (error.strerror or "an error of the disk")
            raise NoSpace(f"can't write to {self.root}: {why}", hint="--results names another folder") from error


def is_kept(observation: Observation) -> bool:
    """Whether an observation answers its question for good.

    What an installer could not do is only kept where it is about releases that the index lists.
    """
    return observation.outcome not in _INSTALLERS_WORDS or is_lasting(observation.detail)


def _row(observation: Observation) -> dict[str, Any]:
    raised = observation.exception
    row: dict[str, Any] = {
        "key": observation.key,
        "started": observation.started,
        "repro": observation.repro,
        "device": observation.device.value,
        "outcome": observation.outcome.value,
        "detail": observation.detail,
        "exception": raised.name if raised else None,
        "python": observation.lock.python if observation.lock else None,
        "duration_s": observation.duration_s,
        "setup_s": observation.setup_s,
        "peak_memory_mib": round(observation.peak_memory / 2**20, 1) if observation.peak_memory else None,
        "attempt": observation.attempt,
        "as_of": observation.as_of,
        "requirements": " ".join(observation.requirements),
    }
    row.update({f"param:{name}": value for name, value in observation.params.items()})
    row.update({f"metric:{name}": value for name, value in observation.metrics.items()})
    if observation.lock is not None:
        row.update({f"version:{pin.name}": pin.version for pin in observation.lock.pins})
    return row
