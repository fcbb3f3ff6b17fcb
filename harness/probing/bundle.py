"""Bundles: jobs for a machine without network, with all that they need, and what comes back from there.

FOLDER/run.py      answers the jobs with the bundle's own copy of the harness
FOLDER/bundle.json the keys of its jobs
FOLDER/KEY/        a job (`harness.probing.job`)
FOLDER/wheels/     the wheels of all locks, from where uv finds them here; each is checked
FOLDER/harness/    the harness and what it needs, as they are installed here
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.requirements import Requirement

from harness._version import __version__
from harness.atomic import is_out_of_space, sha256_of
from harness.environment.attempt import locked_files
from harness.environment.pages import download
from harness.errors import IndexFault, NoSpace, UserMistake
from harness.events import SILENT, Note, Reporter
from harness.model import Judgement, Lock, Observation, Pin, normalized_name
from harness.model.text import counted, size_in_words
from harness.probing.job import SCHEMA, ProbeJob, Refused, Result, jobs_in, read_problem
from harness.probing.judge import Judge
from harness.probing.probe import Probe, next_attempt
from harness.probing.prober import Prober

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.environment import Interpreter, Uv
    from harness.environment.resolve import Resolution
    from harness.store import Store

_NAME = "regression-harness"
_UNFINISHED = ".harness-packing"
_RUN = """\
\"""Runs {count} of {repro} for Python {minor} on {platform}, without network: python{own} run.py

The same command continues if it was stopped. Then copy this folder back (wheels/, folders/ and harness/ are not needed)
and run `harness absorb PATH`.
\"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if sys.version_info[:2] != {version}:
    sys.exit("error: this bundle needs Python {own}, this is Python %d.%d" % sys.version_info[:2])
if not os.path.isdir(os.path.join(HERE, "harness", "harness")):
    sys.exit("error: the folder harness is missing; the bundle is incomplete")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "harness"))
from harness.cli import main

sys.argv = ["harness", "job", "run", HERE]
main()
"""


@frozen
class Packed:
    """The result of packing.

    `wheel_bytes` counts each packed file once; `known` are answers that the store has or that need no run, with their
    labels; `failed` are labels and the reasons why they were not packed.
    """

    jobs: tuple[ProbeJob, ...]
    wheel_bytes: int = 0
    known: tuple[tuple[str, Judgement | None, Observation], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


@frozen
class Packer:
    """Packs probes for machines with the same platform and minor version of Python."""

    prober: Prober
    reporter: Reporter = SILENT

    def pack(self, wanted: Mapping[str, Probe], output: Path, *, fresh: bool = False) -> Packed:
        """Pack the probes without an answer, or with `fresh` a new attempt of each.

        Raises `UserMistake` if the folder is in use, `NoSpace` if it can't be written, and `NoNetwork`.
        """
        try:
            _claim(output)
            packed = self._pack(wanted, output, fresh=fresh)
            if packed.jobs:
                self._finish(output, packed.jobs)
            else:
                _remove_own(output, "wheels")
                (output / _UNFINISHED).unlink()
                with contextlib.suppress(OSError):  # the user has put something there
                    output.rmdir()
        except OSError as error:
            why = "no space left" if is_out_of_space(error) else error.strerror or str(error)
            raise NoSpace(f"can't write to {output}: {why}", hint="--output chooses another folder") from error
        return packed

    def _pack(self, wanted: Mapping[str, Probe], output: Path, *, fresh: bool) -> Packed:
        jobs: dict[str, ProbeJob] = {}
        known, failed = [], []
        builder = self.prober.builder
        wheels = Wheels(output / "wheels", builder.uv, builder.interpreter)
        for i, (label, probe) in enumerate(wanted.items(), 1):
            self.reporter.report(Note(f"{i} of {len(wanted)}  {label}: resolving"))
            resolution = self.prober.resolve(probe)
            if resolution.lock is None:
                answer = self.prober.execute(self.prober.prepare(probe))
                known.append((label, judged(probe, answer, self.prober.store), answer))
                continue
            attempt, earlier = self._unanswered(probe, resolution.lock, fresh=fresh)
            if earlier is not None:
                known.append((label, judged(probe, earlier, self.prober.store), earlier))
                continue
            pins = resolution.lock.pins
            size = sum(pin.size or 0 for pin in pins)
            words = f"fetching {counted(len(pins), 'wheel')}{f' ({size_in_words(size)})' if size else ''}"
            self.reporter.report(Note(f"{i} of {len(wanted)}  {label}: {words}"))
            fetched = wheels.fetch(pins)
            if isinstance(fetched, str):
                failed.append((label, fetched))
                continue
            job = evolve(self._job(attempt, resolution, resolution.lock), label=label, wheels=fetched)
            if job.key in jobs:
                failed.append((label, f"same as {jobs[job.key].label}: both resolve to the same lock"))
                continue
            # The question keeps this lock, whatever is uploaded until the bundle comes back.
            self.prober.resolutions.pin(probe.combination, resolution)
            job.write(output / job.key, shared=output)
            jobs[job.key] = job
        size = wheels.size(wheel for job in jobs.values() for wheel in job.wheels)
        return Packed(tuple(jobs.values()), size, tuple(known), tuple(failed))

    def _unanswered(self, probe: Probe, lock: Lock, *, fresh: bool) -> tuple[Probe, Observation | None]:
        """The probe to run and its answer in the store, if any; with `fresh`, the first attempt without an answer."""
        while True:
            answer = self.prober.current(self._elsewhere.key(probe, lock))
            if answer is None or not fresh:
                return probe, answer
            probe = next_attempt(probe)

    @property
    def _elsewhere(self) -> Prober:
        """The prober of a machine whose GPU is not known yet."""
        return evolve(self.prober, gpus=())

    def _job(self, probe: Probe, resolution: Resolution, lock: Lock) -> ProbeJob:
        combination, store = probe.combination, self.prober.store
        hidden = evolve(
            combination,
            requirements=store.without_secrets(combination.requirements),
            holds=store.without_secrets(combination.holds),
        )
        key = self._elsewhere.key(probe, lock)
        job = ProbeJob.of(evolve(probe, combination=hidden), lock, key, self.prober)
        return evolve(job, drift=resolution.drift, is_carried=True)

    def _finish(self, output: Path, jobs: Sequence[ProbeJob]) -> None:
        """Add the harness, and last `bundle.json`, which makes the folder a bundle."""
        wanted = {wheel.wheel for job in jobs for wheel in job.wheels}
        for left in (path for path in (output / "wheels").glob("*.whl*") if path.name not in wanted):
            left.unlink()  # from a probe that could not be packed, or from an interrupted call
        _carry_harness(output / "harness")
        version = sys.version_info[:2]
        own = ".".join(map(str, version))
        lock, count = jobs[0].lock, counted(len(jobs), "probe")
        words = {"count": count, "repro": jobs[0].probe.repro.name, "platform": lock.platform, "minor": lock.minor}
        (output / "run.py").write_text(_RUN.format(own=own, version=tuple(version), **words), encoding="utf-8")
        manifest = {"schema": SCHEMA, "harness": __version__, "jobs": [job.key for job in jobs]}
        (output / "bundle.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (output / _UNFINISHED).unlink()


def _claim(output: Path) -> None:
    """Claim an empty folder, or one that an interrupted call left, whose wheels are reused."""
    if output.exists() and not (output / _UNFINISHED).exists() and (output.is_file() or any(output.iterdir())):
        raise UserMistake(f"{output} is not an empty folder", hint="--output takes a new or empty folder")
    (output / "wheels").mkdir(parents=True, exist_ok=True)
    (output / _UNFINISHED).touch()
    _remove_own(output)


def _remove_own(output: Path, *names: str) -> None:
    """Remove the folders of a bundle, also those in `names`, and nothing else."""
    for path in output.iterdir():
        is_own = path.name in ("harness", "folders", *names) or (path / "job.json").is_file()
        if is_own and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def _carry_harness(target: Path) -> None:
    """Copy the harness and the distributions that it needs into a folder, as `pip install --target` lays them out.

    They are copied from where they are installed, so that no index needs to have them, and versions are those of here.
    """
    package = Path(__file__).parents[1]
    ignored = shutil.ignore_patterns("__pycache__", "_repros")
    shutil.copytree(package, target / package.name, ignore=ignored)
    for name in sorted(_required(_NAME) - {_NAME}):
        installed = distribution(name)
        root = Path(str(installed.locate_file(""))).resolve()
        if installed.files is None:
            raise UserMistake(f"can't pack the harness: {name} has no list of its files", hint="install it with pip")
        for file in installed.files:
            source = Path(str(file.locate())).resolve()
            if source.suffix == ".pyc" or not source.is_file():
                continue
            if source.is_relative_to(root):
                place = target / source.relative_to(root)
            elif source.parent.name == "bin" and source.name == name:  # uv's program, the only one that is not Python
                place = target / "bin" / source.name
            else:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def _required(name: str) -> set[str]:
    """The normalised names of a distribution and all that it requires here."""
    names, waiting = set[str](), [name]
    while waiting:
        name = normalized_name(waiting.pop())
        if name not in names:
            names.add(name)
            needs = map(Requirement, distribution(name).requires or ())
            waiting += [
                requirement.name
                for requirement in needs
                if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ]
    return names


@frozen
class Wheels:
    """A folder of wheels for one interpreter, each as a pin with its hash. Existing ones are not downloaded again."""

    folder: Path
    uv: Uv
    interpreter: Interpreter
    _digests: dict[str, str] = field(factory=dict, init=False, repr=False, eq=False)

    def fetch(self, pins: Iterable[Pin]) -> tuple[Pin, ...] | str:
        """Download the wheels of these pins and check their hashes; returns the reason if that fails.

        Raises `NoNetwork` and `NoSpace`.
        """
        wheels = {pin: self._wheel(pin) for pin in pins}
        missing = {pin.name: pin for pin, wheel in wheels.items() if wheel is None}
        if missing:
            requirements = [f"{pin.name}=={pin.version}" for pin in missing.values()]
            try:
                answer, lock = self.uv.compile(requirements, "--no-deps", python=self.interpreter.path)
                if answer.returncode != 0:
                    return " ".join(answer.words.split())
                for file in locked_files(lock, self.interpreter):
                    pin, wheel = missing[file.pin.name], file.pin.wheel
                    if not pin.digests or file.pin.sha256 in pin.digests:
                        self._digests.pop(wheel, None)
                        download(self.uv.settings, file.url, self.folder / wheel, file.pin.sha256)
                        wheels[pin] = self._wheel(evolve(pin, wheel=wheel))
            except IndexFault as fault:
                return fault.message
        for pin, stored in wheels.items():
            if stored is None:
                return f"no index has a wheel of {pin.name} {pin.version} with the hash in the lock"
        return tuple(wheel for wheel in wheels.values() if wheel is not None)

    def size(self, wheels: Iterable[Pin]) -> int:
        """The size of these wheels in bytes; each file counts once."""
        return sum((self.folder / name).stat().st_size for name in {wheel.wheel for wheel in wheels})

    def _wheel(self, pin: Pin) -> Pin | None:
        """The wheel of a pin in this folder, if it is there with the right hash."""
        path = self.folder / pin.wheel
        if not path.is_file():
            return None
        digest = self._digests.get(pin.wheel) or self._digests.setdefault(pin.wheel, sha256_of(path))
        return Pin(pin.name, pin.version, pin.wheel, digest) if not pin.digests or digest in pin.digests else None


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


def absorb(folder: Path, store: Store) -> Absorbed:
    """Store the observations of a bundle. A second call changes nothing.

    To which lock a question resolves is not taken from it: the store that packed it knows that.

    Raises `UserMistake` if the folder is not a bundle, `NoSpace` if the store can't be written.
    """
    taken, missing, refused = [], [], []
    for place in jobs_in(folder):
        label = place.name
        try:
            job = ProbeJob.read(place).verified(place.name)
            label = job.label
            if not (place / "result.json").exists():
                problem = read_problem(place)
                missing.append((label, problem.message if problem is not None else "not run yet"))
                continue
            result = Result.read(place)
            taken.append(_take(job, result, result.of(job), store))
        except Refused as error:
            refused.append((label, str(error)))
    return Absorbed(tuple(taken), tuple(missing), tuple(refused))


def _take(job: ProbeJob, result: Result, observation: Observation, store: Store) -> Taken:
    probe, known = job.probe, store.get(observation.key)
    if known is None:
        store.put_repro(probe.repro)
        observation = store.put_from_elsewhere(observation, result.log)
    observation = known or observation
    return Taken(job.label, observation, judged(probe, observation, store), known is not None)


def judged(probe: Probe, observation: Observation, store: Store) -> Judgement | None:
    """The judgement of an observation; None without a signature."""
    signature = probe.repro.signature
    return Judge(signature, store)(observation) if signature is not None else None
