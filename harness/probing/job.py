"""A probe as one folder with nothing specific to this machine, which is answered here or elsewhere with one result.

    FOLDER/job.json             the probe with its lock, and how to run it
    FOLDER/folders/NAME.tar.gz  what its runs import from, or are given
    FOLDER/wheels/              its wheels, if it must run without an index
    FOLDER/result.json, log.gz  what happened, and its output; or problem.json, if it could not be run

A bundle is a folder of jobs that share `folders` and `wheels` beside them. Folders are named by the hash of their
content, so the other machine needs no path of this one, and unpacks each of them once.

What comes back is not trusted: a result says what happened in a run, and the job which run that was.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import stat
import tarfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen, resolve_types
from packaging.requirements import InvalidRequirement, Requirement

from harness.atomic import write_whole
from harness.environment.trees import Trees
from harness.errors import BadRepro, HarnessError, HarnessFault, NoNetwork, NoSpace, NoWorkers, UserMistake
from harness.model import Combination, Device, Lock, Observation, Pin, Repro, normalized_name
from harness.model.repro import parse_repro
from harness.model.text import plain
from harness.probing.probe import Probe, observation_without_run, probe_key
from harness.records import INVALID, as_record, read_record, value_of, write_record
from harness.redact import everywhere
from harness.run.devices import Gpu
from harness.run.launch import is_whole
from harness.run.locks import claimed_folder
from harness.run.runner import Terms, script_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environment import Workspace
    from harness.probing.prober import Prober

SCHEMA = 6
_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_KINDS: dict[str, type[HarnessError]] = {
    kind.__name__: kind for kind in (NoNetwork, NoSpace, NoWorkers, UserMistake, HarnessFault)
}
_OF_THE_JOB = "key repro repro_digest device params lock requirements as_of attempt mixture given outside"


class Refused(Exception):
    """A job or a result is refused; the message is one sentence that says why."""


@frozen
class MachineKind:
    """What two machines must share for a run on one to count as a run on the other.

    `harness` is its version with a digest of its source; `tags` are the platform tags of the wheels that the machine
    accepts.
    """

    harness: str
    platform: str
    python: str
    cache_tag: str
    tags: tuple[str, ...]


@frozen
class SentFolder:
    """A folder as a tar archive compressed by gzip; `name` is the digest of what it contains, as in `Trees`."""

    name: str
    content: bytes = field(default=b"", repr=False)

    def unpack(self, target: Path) -> None:
        """Write the content to a folder. Raises `tarfile.TarError` if a part of it would lie outside."""
        with tarfile.open(fileobj=io.BytesIO(self.content)) as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(target, filter="data")
                return
            for member in tar:  # Python before 3.11.4
                place = target / member.name
                ends = [place, *([place.parent / member.linkname] if member.issym() or member.islnk() else [])]
                if member.isdev() or not all(end.resolve().is_relative_to(target.resolve()) for end in ends):
                    raise tarfile.ExtractError(f"{member.name} would lie outside the folder")
                tar.extract(member, target)


@frozen
class ProbeJob:
    """One probe for another machine, with the lock to install.

    `key` is the key of the observation; a machine whose run would get another key refuses. It is that for an unknown
    GPU if the job is carried to a machine that nobody knows (`is_carried`), which may have another patch level of
    Python, too. `cache_tag` names the kind of interpreter; the lock has its version and platform. The repro imports
    from `folders`; each entry of its search path starts with the name of one. `wheels` are those in its folder.
    """

    probe: Probe
    key: str
    cache_tag: str
    terms: Terms
    label: str = ""
    drift: tuple[str, ...] = ()
    folders: tuple[SentFolder, ...] = ()
    wheels: tuple[Pin, ...] = ()
    is_carried: bool = False

    @classmethod
    def of(cls, probe: Probe, lock: Lock, key: str, prober: Prober) -> ProbeJob:
        """Make it from a probe that `prober` would run here with `lock`."""
        repro, folders = _packed(probe.repro, prober.trees)
        probe = evolve(probe, repro=evolve(repro, path=script_name(probe.repro)), near=None, lock=lock)
        return cls(probe, key, prober.builder.interpreter.cache_tag, prober.terms, folders=folders)

    @property
    def lock(self) -> Lock:
        """What to install."""
        if self.probe.lock is None:
            raise Refused("it has no lock")
        return self.probe.lock

    def key_with(self, lock: Lock, gpu: str) -> str:
        """The key of its observation with a lock, on a GPU with this name ("": none)."""
        return probe_key(self.probe, lock, (Gpu(0, gpu, 0, 0, ""),) if gpu else (), self.terms)

    def unpacked(self, workspace: Workspace) -> Probe:
        """Return the probe on this machine; unpacks the folders that it imports from into the cache."""
        return evolve(self.probe, repro=_unpacked(self.probe.repro, self.folders, workspace))

    def write(self, folder: Path, shared: Path | None = None) -> None:
        """Write the job; the archives of its folders go to `shared`, which is above it. Raises `OSError`."""
        for sent in self.folders:
            archive = (shared or folder) / "folders" / f"{sent.name}.tar.gz"
            if not archive.is_file():
                write_whole(archive, sent.content)
        bare = evolve(self, folders=tuple(SentFolder(sent.name) for sent in self.folders))
        write_record(folder / "job.json", bare, SCHEMA, indent=1)

    @classmethod
    def read(cls, folder: Path) -> ProbeJob:
        """Read the job in a folder, without its archives. Raises `Refused`."""
        try:
            job = read_record(regular(folder, "job.json"), cls, SCHEMA)
        except (*INVALID, BadRepro) as error:
            raise Refused(f"its job can't be read: {error}") from error
        if job is None:
            raise Refused("its job can't be read: it is no job of this release of the harness")
        return job

    def with_archives(self, folder: Path) -> ProbeJob:
        """Return the job with the archives that are in its folder or beside it. Raises `Refused`."""
        try:
            sent = [evolve(sent, content=_beside(folder, f"folders/{sent.name}.tar.gz")) for sent in self.folders]
        except OSError as error:
            raise Refused(f"its folder is incomplete: {error}") from error
        return evolve(self, folders=tuple(sent))

    def verified(self, key: str) -> ProbeJob:
        """Return the job with its repro as the script says. Raises `Refused` if any part that `key` names differs."""
        packed = self.probe.repro
        try:
            repro = parse_repro(packed.source, name=packed.name, path=packed.path).with_params(packed.params)
            repro = repro.with_given(*packed.given, step=packed.step) if packed.given else repro
            job = evolve(self, probe=evolve(self.probe, repro=repro.within(packed.timeout)))
            fits = key == self.key == job.key_with(job.lock, "") and all(map(self._is_locked, self.wheels))
        except (*INVALID, BadRepro) as error:
            raise Refused(f"its job can't be read: {error}") from error
        if not fits:
            raise Refused("its repro, parameters, device or lock are not those that were packed")
        if unmet := next(filter(self._is_unmet, self.probe.combination.requirements), None):
            raise Refused(f"its lock does not meet {unmet}")
        return job

    def _is_unmet(self, text: str) -> bool:
        """Whether the lock has another version than a requirement allows. Raises `Refused` if it is none."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise Refused(f"{text!r} is not a requirement") from error
        version = self.lock.version_of(normalized_name(requirement.name))
        return version is not None and not requirement.specifier.contains(version, prereleases=True)

    def _is_locked(self, wheel: Pin) -> bool:
        pin = next((pin for pin in self.lock.pins if pin.name == wheel.name), None)
        return pin is not None and pin.version == wheel.version and (not pin.digests or wheel.sha256 in pin.digests)


@frozen
class Result:
    """What came of a job: the observation, its compressed output, the kind of machine, and the name of its GPU."""

    observation: Observation
    kind: MachineKind
    gpu: str = ""
    log: bytes = field(default=b"", repr=False)
    log_digest: str = ""

    def write(self, folder: Path) -> None:
        """Write it to the folder of its job. Raises `OSError`."""
        write_whole(folder / "log.gz", self.log)
        record = as_record(evolve(self, log=b"", log_digest=hashlib.sha256(self.log).hexdigest()), SCHEMA)
        (folder / "problem.json").unlink(missing_ok=True)
        write_whole(folder / "result.json", json.dumps({"sha256": _seal(record), "result": record}, indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Result:
        """Read the result in the folder of a job. Raises `Refused` if it is damaged."""
        try:
            if folder.is_symlink():
                raise ValueError(f"{folder.name} is a link")
            sealed = json.loads(regular(folder, "result.json").read_text(encoding="utf-8"))
            result = value_of(sealed["result"], cls, SCHEMA)
            is_intact = _seal(sealed["result"]) == sealed["sha256"]
            log = regular(folder, "log.gz")
            content = log.read_bytes()
        except INVALID as error:
            raise Refused(f"its result is incomplete: {error}") from error
        if result is None or not is_intact:
            raise Refused("result.json was changed after the run")
        if hashlib.sha256(content).hexdigest() != result.log_digest:
            raise Refused("log.gz was changed after the run")
        if content and not is_whole(log):
            raise Refused("its log is damaged, or longer than a run can write")
        return evolve(result, log=content)

    def of(self, job: ProbeJob) -> Observation:
        """Return the observation of a run of this job. Raises `Refused` if it is of another run or kind of machine.

        What was run is taken from the job, and what happened from the result.
        """
        run, lock = self.observation, job.lock
        if self.kind.platform != lock.platform or not self._has_its_python(job):
            wanted = f"Python {lock.python} on {lock.platform}"
            raise Refused(f"it was run with Python {self.kind.python} on {self.kind.platform}, not {wanted}")
        if job.probe.combination.device is Device.CUDA and run.outcome.ran and not self.gpu:
            raise Refused("no GPU was found where it ran")
        lock = evolve(lock, python=self.kind.python)
        key = job.key_with(lock, self.gpu if job.probe.combination.device is Device.CUDA else "")
        if not job.is_carried and key != job.key:
            raise Refused(f"it was run on {self.gpu or 'no GPU'}, which makes it a different observation")
        if (run.key, run.repro_digest) != (key, job.probe.repro.digest) or run.lock not in (lock, None):
            raise Refused(f"the result belongs to another probe ({run.key})")
        own = observation_without_run(job.probe, key, run.outcome, "", lock, setup_s=0.0)
        known = {name: getattr(own, name) for name in _OF_THE_JOB.split()}
        observation: Observation = everywhere(run, str, plain)
        return evolve(observation, **known, drift=tuple(dict.fromkeys((*job.drift, *observation.drift))))

    def _has_its_python(self, job: ProbeJob) -> bool:
        python, wanted = self.kind.python, job.lock.python
        is_near = job.is_carried and python.split(".")[:2] == wanted.split(".")[:2]
        return self.kind.cache_tag == job.cache_tag and (python == wanted or is_near)


def _seal(record: object) -> str:
    """A hash that shows damage; who forges a result can make it, too."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def write_problem(folder: Path, error: HarnessError) -> None:
    """Say in the folder of a job why it could not be run. Raises `OSError`."""
    kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), HarnessFault.__name__)
    problem = {"kind": kind, "message": error.message, "hint": error.hint}
    write_whole(folder / "problem.json", json.dumps(problem) + "\n")


def read_problem(folder: Path) -> HarnessError | None:
    """Return why a job could not be run, None if its folder does not say."""
    try:
        problem = json.loads(regular(folder, "problem.json").read_text(encoding="utf-8"))
        return _KINDS[problem["kind"]](str(problem["message"]), hint=str(problem["hint"]))
    except INVALID:
        return None


def known_kind(error: HarnessError) -> HarnessError:
    """Return an error of one of the few kinds that can be sent, with a sentence that says that it is of a worker."""
    kind = next((kind for kind in _KINDS.values() if isinstance(error, kind)), HarnessFault)
    return kind(f"on a worker: {error.message}", hint=error.hint)


def regular(folder: Path, name: str) -> Path:
    """Return the path of a regular file directly in this folder.

    Raises `ValueError` if it is a link, a pipe, or elsewhere, `OSError` if it does not exist.
    """
    path = folder / name
    if Path(name).name != name or folder.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(f"{name} is not a regular file in its folder")
    return path


def jobs_in(bundle: Path) -> list[Path]:
    """Return the folders of the jobs in a bundle. Raises `UserMistake` if it is none of this release."""
    try:
        record = json.loads(regular(bundle.resolve(), "bundle.json").read_text(encoding="utf-8"))
        schema, keys = record["schema"], list(record["jobs"])
        if not all(map(_KEY.fullmatch, keys)):
            raise ValueError("one is not the key of a job")
    except INVALID as error:
        raise UserMistake(
            f"{bundle} is not a bundle: can't read its bundle.json", hint="name a folder made by harness bundle"
        ) from error
    if schema != SCHEMA:
        raise UserMistake(f"{bundle} is a bundle of schema {schema}, this harness reads {SCHEMA}")
    return [bundle / key for key in keys]


def place_of(folder: Path, name: str) -> Path:
    """Return where a part of a job is: in its folder, or beside it in a bundle."""
    return next((place / name for place in (folder, folder.parent) if (place / name).exists()), folder / name)


def _beside(folder: Path, name: str) -> bytes:
    return place_of(folder, name).read_bytes()


def _packed(repro: Repro, trees: Trees) -> tuple[Repro, tuple[SentFolder, ...]]:
    """Return the repro with names of folders in place of paths of this machine, and those folders.

    They are those that it imports from or is given, and its project; a search path inside of that stays as it is.
    """
    paths = [path for path in map(Path, repro.search_path) if path.is_absolute() and path.is_dir()]
    roots = [path for path in paths if not any(other in path.parents for other in paths)]
    folders = {root: _archive(root, trees) for root in roots}
    sent_as = {
        str(path): (Path(folder.name) / path.relative_to(root)).as_posix()
        for path in paths
        for root, folder in folders.items()
        if path.is_relative_to(root)
    }
    entries = [sent_as.get(text, text) for text in repro.search_path if text in sent_as or not Path(text).is_absolute()]
    others = [Path(tree.folder) for tree in repro.given if tree.folder]
    project = _archive(Path(repro.project), trees) if repro.project else SentFolder("")
    archives = (*folders.values(), *(_archive(folder, trees) for folder in others), project)
    bare = tuple(evolve(tree, folder="") for tree in repro.given)
    packed = evolve(repro, search_path=tuple(dict.fromkeys(entries)), given=bare, project=project.name)
    return packed, tuple({folder.name: folder for folder in archives if folder.name}.values())


def _unpacked(repro: Repro, folders: Iterable[SentFolder], workspace: Workspace) -> Repro:
    """Return the repro with folders of this machine's cache. Unpacks those that are not there yet."""
    trees, places = Trees(workspace), dict[str, str]()
    for folder in folders:
        if trees.folder(folder.name) is None:
            with claimed_folder(workspace.building, "sent-") as partial:
                folder.unpack(partial)
                if trees.keep(partial) != folder.name:
                    raise UserMistake(f"{folder.name}.tar.gz is not the folder that was packed", hint="copy it again")
        places[folder.name] = str(workspace.trees / folder.name)
    if not {repro.project, *(tree.digest for tree in repro.given)} - {""} <= places.keys():
        raise Refused("its folder is incomplete: a folder that its runs are given is not in it")

    def here(entry: str) -> str:
        name, _, rest = entry.partition("/")
        return str(Path(places[name], rest)) if name in places else entry

    given = tuple(evolve(tree, folder=places.get(tree.digest, "")) for tree in repro.given)
    search_path = tuple(map(here, repro.search_path))
    return evolve(repro, search_path=search_path, given=given, project=places.get(repro.project, ""))


@lru_cache(maxsize=4)  # a bisection of another package sends the same folder with each run
def _archive(folder: Path, trees: Trees) -> SentFolder:
    def portable(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isfile() or member.isdir() or member.issym()):
            return None
        if member.issym() and not (folder / member.name).resolve().is_relative_to(folder.resolve()):
            return None  # it points to files that only this machine has
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder, arcname=".", filter=portable)
    content = gzip.compress(archive.getvalue(), mtime=0)
    with claimed_folder(trees.workspace.building, "sent-") as unpacked:
        SentFolder("", content).unpack(unpacked)
        return SentFolder(trees.digest(unpacked), content)


resolve_types(Combination)
resolve_types(Probe, localns={"Path": Path})
