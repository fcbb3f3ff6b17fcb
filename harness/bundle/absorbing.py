"""Reads observations back from a bundle, after checking each result against the packed probe."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from harness.bundle.packing import SCHEMA, UNREADABLE, PackedProbe, as_requirements, inside, read_packed
from harness.environment.resolve import Resolution
from harness.environment.uv import Uv
from harness.errors import HarnessFault, UserMistake
from harness.model import Device, Judgement, Lock, Observation, Pin, normalized_name
from harness.model.text import plain
from harness.probing import Judge, Probe, observation_of, probe_key
from harness.probing.prober import same_version
from harness.run.devices import unavailable, visible
from harness.run.devices.cuda import parse_gpus
from harness.run.launch import Limits, is_whole, read_tail
from harness.run.process import ended_from
from harness.run.result import Ran, result_of
from harness.store import Store

_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


@frozen
class Taken:
    """An observation from a bundle; `known` if the store already had an answer."""

    label: str
    observation: Observation
    judgement: Judgement | None
    known: bool = False


@frozen
class Absorbed:
    """The result of absorbing a bundle; `missing` and `refused` have labels and reasons."""

    taken: tuple[Taken, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


class _Refused(Exception):
    """A result is refused; the message is one sentence that says why."""


def absorb(folder: Path, store: Store, uv: Uv | None = None) -> Absorbed:
    """Store the observations of a bundle. A second call changes nothing.

    Raises `UserMistake` if the folder is not a bundle, `NoSpace` if the store can't be written.
    """
    taken, missing, refused = [], [], []
    for key in _probes(folder):
        label = key
        try:
            packed, probe = read_packed(folder / "probes" / key)
            label = packed.label
            where = folder / "observed" / key
            if not (where / "run.json").exists():
                missing.append((label, _why_not(where)))
                continue
            taken.append(_take(packed, probe, where, _record(packed, probe, where), store, uv or Uv()))
        except (_Refused, UserMistake) as error:
            refused.append((label, str(error)))
    return Absorbed(tuple(taken), tuple(missing), tuple(refused))


def _probes(folder: Path) -> list[str]:
    try:
        bundle = json.loads(inside(folder.resolve(), "bundle.json").read_text(encoding="utf-8"))
        schema, probes = bundle["schema"], list(bundle["probes"])
        if not all(map(_KEY.fullmatch, probes)):
            raise ValueError("one is not the key of a probe")
    except UNREADABLE as error:
        raise UserMistake(
            f"{folder} is not a bundle: can't read its bundle.json", hint="name a folder made by harness bundle"
        ) from error
    if schema != SCHEMA:
        raise UserMistake(f"{folder} is a bundle of schema {schema}, this harness reads {SCHEMA}")
    return probes


def _why_not(where: Path) -> str:
    try:
        return inside(where.parent, f"{where.name}.problem.txt").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return "not run yet"


def _record(packed: PackedProbe, probe: Probe, where: Path) -> dict[str, Any]:
    """Return the run script's record. Raises `_Refused` if it is of another probe, or something changed since the run.

    `where` is the folder with the results of the probe.
    """
    try:
        if where.parent.is_symlink():
            raise ValueError(f"{where.parent.name} is a link")
        record: dict[str, Any] = json.loads(inside(where, "run.json").read_text(encoding="utf-8"))
        ran = record["key"], record["script"], record["requirements"]
        changed = [
            name
            for name, digest in record["files"].items()
            if hashlib.sha256(inside(where, name).read_bytes()).hexdigest() != digest
        ]
        unlisted = [path.name for path in where.iterdir() if path.name not in {*record["files"], "run.json"}]
    except UNREADABLE as error:
        raise _Refused(f"its result is incomplete: {error}") from error
    if ran[0] != packed.probe.key:
        raise _Refused(f"the result belongs to another probe ({ran[0]})")
    if ran[1] != _sha256(probe.repro.source):
        raise _Refused("a different script was run, not the packed repro")
    if ran[2] != _sha256(as_requirements(packed.packed)):
        raise _Refused("the installed requirements differ from its lock")
    if any((where / name).is_symlink() or not (where / name).is_dir() for name in unlisted):
        raise _Refused(f"{', '.join(unlisted)} was added after the run")
    if changed:
        raise _Refused(f"{', '.join(changed)} was changed after the run")
    return record


def _take(packed: PackedProbe, probe: Probe, where: Path, record: dict[str, Any], store: Store, uv: Uv) -> Taken:
    try:
        gpus = visible(parse_gpus(record["gpus"]), record["visible_gpus"])
        if unavailable(probe.combination.device, gpus) is not None:
            raise _Refused("no GPU was found where it ran")
        ran, lock = _ran(packed, where, record), _lock_there(packed, record)
        if probe.combination.device is Device.CUDA:
            ran = evolve(ran, machine={**gpus[0].facts, **ran.machine})
        log = (where / "log.gz").read_bytes()
        started, setup_s = str(record["started"]), float(record["setup_s"])
        altered = tuple(plain(str(name)) for name in record["altered"])
    except (*UNREADABLE, HarnessFault) as error:
        raise _Refused(f"its result can't be read: {error}") from error
    sent = packed.probe
    key = probe_key(probe, lock, gpus=gpus, capability=sent.capability, variables=sent.variables)
    observation = store.get(key)
    known = observation is not None
    if observation is None:
        observation = observation_of(
            probe, lock, ran, key=key, drift=packed.drift, setup_s=setup_s, started=started, log=""
        )
        store.put_repro(probe.repro)
        observation = store.put_from_elsewhere(evolve(observation, altered=altered), log)
    resolution_key = uv.resolution_key(probe.combination)
    if store.get_resolution(resolution_key) is None:
        # Store the lock, so that the same question here resolves to it and finds this observation.
        resolution = Resolution(lock=packed.probe.lock, drift=packed.drift)
        store.put_resolution(resolution_key, resolution)
    signature = probe.repro.signature
    judgement = Judge(signature, store)(observation) if signature is not None else None
    return Taken(packed.label, observation, judgement, known)


def _ran(packed: PackedProbe, where: Path, record: dict[str, Any]) -> Ran:
    limits = Limits(packed.probe.repro.timeout, record["memory"])
    if not is_whole(where / "log.gz"):
        raise _Refused("its log is damaged, or longer than a run can write")
    ran = result_of(
        ended_from(record["ended"]),
        read_tail(where / "log.gz"),
        where / "report.json",
        where / "metrics.json",
        device=packed.probe.combination.device,
        limits=limits,
    )
    ran.machine["sandbox"] = "none"  # the run script has no sandbox
    ran.machine["hash_seed"] = int(packed.variables.get("PYTHONHASHSEED", "0"))
    return ran


def _lock_there(packed: PackedProbe, record: dict[str, Any]) -> Lock:
    """The lock of what was installed where it ran. Packages that were already on that machine have no hashes."""
    there = {normalized_name(name): str(version) for name, version in record["installed"].items()}
    shipped = {wheel.name for wheel in packed.packed}
    pins = {pin.name: pin for pin in packed.probe.lock.pins if pin.name in shipped}
    return Lock(
        python=str(record["python"]),
        platform=str(record["platform"]),
        pins=[
            pins[name] if name in pins and same_version(pins[name].version, version) else Pin(name, version)
            for name, version in there.items()
        ],
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
