"""Runs one repro once in one interpreter: sandbox, guard, child driver, and the classified result."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from attrs import evolve, field, frozen

from harness.atomic import is_out_of_space, write_whole
from harness.errors import HarnessFault, MissingProgram, NoSpace, UserMistake
from harness.model import Device, Outcome, Repro
from harness.run.commands import Collection, TracedCommand, add_startup, recognised
from harness.run.devices import hidden, passed_variables
from harness.run.inside.emulation.card import DEFAULT_CAPABILITY
from harness.run.launch import (
    LOG_TAIL,
    Limits,
    ScratchFolder,
    keep_log,
    marshalled,
    process_environment,
    remove_tree,
    repro_variables,
    scratch_folder,
    user_path,
)
from harness.run.outside import outside_of
from harness.run.process import NoSandbox, run_guarded
from harness.run.programs import missing_program, mistake_in, needs_network, program_of, stub_folder
from harness.run.ranks import first_to_fail, launcher
from harness.run.result import REPORT_LIMIT, Ran, Unreadable, content_of, result_of, with_numbers_of_tools
from harness.run.sandbox import FileAccess, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harness.run.forks import Zygote

INSIDE = Path(__file__).with_name("inside")
_FICLONE = 0x40049409  # linux/fs.h
_PATHS_IN = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CUDA_HOME",
    "CUDA_PATH",
    "HF_HUB_CACHE",
)


@frozen
class Terms:
    """On which terms runs are made: what the user allows and gives them. A job is run on those of who asks.

    `capability` is the compute capability to emulate. `pass_env` names variables of the machine that runs; `rights`
    says what a run may do beyond the sandbox ("network", "unsandboxed"), which that machine sets up. `variables` is a
    hash of the user's variables where the question was asked.
    """

    capability: str = DEFAULT_CAPABILITY
    pass_env: tuple[str, ...] = ()
    torch_backend: str = ""
    rights: str = ""
    variables: str = ""
    is_sandbox_required: bool = False


@frozen
class Place:
    """Where a run happens, and what it can see there.

    `python` is the environment's interpreter, `scratch` the folder for what the run writes, `pycache` the prefix of its
    bytecode (None: the default one). The paths of a command are relative to `invoked_from`. In `sandbox` (None: no
    sandbox) the run can also read `readable` and write `writable`; what it uses of these and of the folders in `own` is
    part of what is run. Runs share the folders of stubs below `stubs` (None: each has its own).
    """

    python: Path
    scratch: Path
    pycache: Path | None = None
    invoked_from: Path = field(factory=Path.cwd)
    sandbox: Sandbox | None = None
    own: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    stubs: Path | None = None


@frozen
class Recorded:
    """What is recorded of a run: what it does in installed `files` (None: nothing), which makes it slower.

    `imports` is the file to which the graph of its imports is written, None if that is not recorded.
    """

    files: frozenset[str] | None = None
    imports: Path | None = None


@frozen
class Job:
    """What to run, and how.

    `log_path` is where to write the log, compressed by gzip. `variables` are added to those of `terms`. With `zygote`
    the run is forked from that process, in its sandbox. `hash_seed` is for Python's hashes of strings, which order
    sets. `keep` gets the folder that a first step wrote, and returns the hash of its content.
    """

    repro: Repro
    place: Place
    log_path: Path
    device: Device = Device.CPU
    terms: Terms = Terms()
    variables: dict[str, str] = field(factory=dict)
    recorded: Recorded = Recorded()
    zygote: Zygote | None = None
    hash_seed: int = 0
    keep: Callable[[Path], str] | None = None

    @property
    def traced(self) -> dict[str, Any] | None:
        """The files to trace, and whether calls are counted, which says where time and memory go; None: no trace."""
        signature, files = self.repro.signature, self.recorded.files
        counts = signature is not None and signature.is_cost
        return {"files": sorted(files), "counts": counts} if files is not None else None


def run_repro(job: Job) -> Ran:
    """Run a repro once and return its result.

    On return its processes have ended and its files, except the log, are removed. Raises `MissingProgram` if the
    environment lacks a command's program, `Cancelled`, `NoSpace` if the disk is full, and
    `HarnessFault` on an internal error.
    """
    try:
        with scratch_folder(job.place.scratch) as scratch:
            return _run_in(scratch, job)
    except OSError as error:
        if is_out_of_space(error):
            raise NoSpace(f"no space left for a run below {job.place.scratch}: {error}") from error
        raise


def _run_in(scratch: ScratchFolder, job: Job) -> Ran:
    if job.repro.project:
        copy_tree(Path(job.repro.project), scratch.work)
    if job.zygote is None or job.repro.argv:  # the forks of a script share the folders of their zygote
        job = evolve(job, repro=with_own_folders(job.repro, scratch.root / "built"))
    # Keep the log open, so that nothing is lost if the script removes its folder.
    with scratch.log.open("x+b") as log:
        ran = _run_with(log, scratch, job)
        keep_log(log, job.log_path)
        if job.recorded.imports is not None:
            with contextlib.suppress(Unreadable):
                if (graph := content_of(scratch.imports, REPORT_LIMIT)) is not None:
                    write_whole(job.recorded.imports, graph)
        if job.keep is not None and ran.outcome is Outcome.COMPLETED:
            ran = evolve(ran, wrote=job.keep(scratch.artifacts))
    if job.place.pycache is not None:
        # Remove the bytecode of modules in the working folder, which no later run can use.
        remove_tree(Path(f"{job.place.pycache}{scratch.root}"))
    return ran


def _run_with(log: BinaryIO, scratch: ScratchFolder, job: Job) -> Ran:
    """Run a job, and classify how it ended."""
    root = scratch.work / job.repro.inside if job.repro.project else job.place.invoked_from.absolute()
    beside = [scratch.work / folder for folder in job.repro.search_path]
    if why := missing_program(job.repro.argv, job.place.python, user_path(os.environ), root, beside):
        raise MissingProgram(why, program_of(job.repro.argv))
    stubs = stub_folder(job.place.stubs or scratch.root / "stubs", job.place.python, user_path(os.environ))
    scratch.stubs.symlink_to(stubs)
    recorder, limits = _recorder(job, scratch), Limits(job.repro.timeout, job.repro.memory)
    if isinstance(recorder, Collection):
        job = evolve(job, repro=evolve(job.repro, argv=recorder.command.argv))
    env = environment_of(scratch, job, root)
    argv = _started_by(scratch, job, env)
    if recorder is not None:
        argv = recorder.start(argv, env)
    try:
        sandbox: list[str] = []
        if job.place.sandbox is not None and job.zygote is None:  # a fork shares the sandbox of its zygote
            sandbox = job.place.sandbox.around(file_access(scratch, job, argv, env))
        since = math.floor(time.time())  # some file systems keep whole seconds
        ended = run_guarded(
            argv,
            env=env,
            cwd=scratch.work / job.repro.inside,
            limits=limits,
            output=scratch.log,
            sandbox=sandbox,
            forked=job.zygote.guard if job.zygote is not None else None,
        )
    except NoSandbox as words:
        raise UserMistake(f"the sandbox of a run failed: {words}", hint="--sandbox off runs without it") from None
    except (FileNotFoundError, PermissionError) as error:
        if not job.repro.argv:
            raise HarnessFault(f"the interpreter {job.place.python} can't be started: {error.strerror}") from error
        program = program_of(job.repro.argv)
        raise MissingProgram(f"{program} can't be started: {error.strerror}", program) from error
    log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
    tail = log.read().decode("utf-8", "replace")
    ended, report = first_to_fail(ended, tail, scratch.report, job.repro)
    shown = None if job.repro.argv else report
    ran = result_of(ended, tail, shown, scratch.metrics, device=job.device, limits=limits)
    ran = with_numbers_of_tools(ran, scratch.work / job.repro.inside, job.repro.argv, since)
    if recorder is not None:
        ran = recorder.added_to(ran, job.device)
    is_offline = job.place.sandbox is not None and not job.place.sandbox.network
    if mistake := mistake_in(ran, job.repro.argv, root) or (needs_network(ran) if is_offline else ""):
        ran = evolve(ran, mistake=mistake, detail=ran.detail if mistake in ran.detail else f"{ran.detail}; {mistake}")
    sandboxed = job.place.sandbox.label if job.place.sandbox is not None else "none"
    used = outside_of(_outside(scratch, job), job.repro.argv, root, job.place.python.parent)
    machine = {**ran.machine, "sandbox": sandboxed, "hash_seed": job.hash_seed}
    machine |= {"launch": job.repro.launch, "ranks": job.repro.ranks} if job.repro.launch else {}
    return evolve(ran, outside=used, machine={**machine, "forked": True} if job.zygote is not None else machine)


def _outside(scratch: ScratchFolder, job: Job) -> dict[str, Any]:
    """How the processes of a run record what they use besides what is its own."""
    folders = (*job.place.own, *job.place.readable, *job.place.writable)
    own = {str(place) for folder in folders for place in (folder, folder.resolve())}
    return {"record": str(scratch.outside), "scratch": str(scratch.root), "own": sorted(own)}


def _started_by(scratch: ScratchFolder, job: Job, env: dict[str, str]) -> list[str]:
    """Return the command line of a run, for a script that of the child driver, whose order is written.

    Adds to `env` what makes a command record what it uses besides what is its own.
    """
    outside = _outside(scratch, job)
    if job.repro.argv:
        add_startup(env, scratch.order, outside)
        if job.recorded.imports is not None:
            env["HARNESS_IMPORTS"] = str(scratch.imports)
        return _command(job)
    script = scratch.script / script_name(job.repro)
    script.write_text(job.repro.source, encoding="utf-8")
    emulation = {"package": str(INSIDE / "emulation"), "capability": job.terms.capability}
    order = {
        "script": str(script),
        "report": str(scratch.report),
        "launched": bool(job.repro.launch),
        "emulation": emulation if job.device is Device.EMULATED else None,
        "trace": job.traced,
        "imports": str(scratch.imports) if job.recorded.imports is not None else None,
        "outside": outside,
    }
    scratch.order.write_bytes(marshalled(order))
    return [str(job.place.python), *launcher(job.repro, job.device, env), str(INSIDE / "child.py"), str(scratch.order)]


def _recorder(job: Job, scratch: ScratchFolder) -> Collection | TracedCommand | None:
    """What records the tests of a command, or what a traced one uses; None for a script, whose driver does it."""
    if (command := recognised(job.repro.argv)) is not None:
        return Collection(command, scratch.report.parent)
    if not job.repro.argv or job.traced is None:
        return None
    return TracedCommand(job.traced, scratch.report.parent / "traced")


def environment_of(scratch: ScratchFolder, job: Job, root: Path) -> dict[str, str]:
    """Return the environment variables of a run; relative paths in them start at `root`."""
    repro = job.repro
    importable = [scratch.work / folder for folder in repro.search_path]
    given = {tree.variable: tree.folder for tree in repro.given} | ({"HARNESS_STEP": repro.step} if repro.step else {})
    if repro.step == "make":
        scratch.artifacts.mkdir(exist_ok=True)
        given["HARNESS_ARTIFACTS"] = str(scratch.artifacts)
    env = process_environment(
        scratch,
        ours=os.environ,
        python=job.place.python,
        pass_env=(*job.terms.pass_env, *passed_variables()),
        extra={
            **repro_variables(repro.params, job.device.value, job.hash_seed),
            "HARNESS_ROOT": str(root),
            **({"PYTHONPATH": os.pathsep.join(map(str, importable))} if importable else {}),
            **given,
            **(hidden() if job.device is Device.CPU else {}),
            **({"PYTHONPYCACHEPREFIX": str(job.place.pycache)} if job.place.pycache is not None else {}),
            **job.variables,
        },
    )
    # Programs that were built for the repro come first, then those of the environment.
    built = [Path(path, "bin") for path in repro.search_path if Path(path).is_absolute()]
    env["PATH"] = os.pathsep.join(map(str, [*built, job.place.python.parent, scratch.stubs, user_path(os.environ)]))
    return env


def file_access(scratch: ScratchFolder, job: Job, argv: Iterable[str], env: Mapping[str, str]) -> FileAccess:
    """The paths beyond the system folders that a run can see and write.

    Nothing that a package or a repro's author wrote opens a path, only what the user typed.
    """
    files = [env[name] for name in _PATHS_IN if env.get(name, "").startswith("/")]
    files += _folders(env.get("LD_LIBRARY_PATH", ""))
    typed = [value for name, value in job.repro.params.items() if name in job.repro.typed]
    files += [value for value in typed if isinstance(value, str) and value.startswith("/")]
    files += [path for word in argv if (path := _path_in(word)).startswith("/")]
    writable = (job.place.pycache,) if job.place.pycache is not None else ()
    return FileAccess(
        scratch=scratch.root,
        work=scratch.work / job.repro.inside,
        python=job.place.python,
        readable=(
            *job.place.readable,
            *([job.place.stubs] if job.place.stubs is not None else []),
            job.place.invoked_from.absolute(),
            *map(Path, [*files, *_folders(user_path(os.environ))]),
        ),
        writable=(*job.place.writable, *writable),
    )


def _folders(path: str) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if folder.startswith("/")]


def _path_in(word: str) -> str:
    """The path in an argument such as `--rootdir=/x` or `/x/test_y.py::test_z`."""
    return (word.partition("=")[2] if word.startswith("-") else word).partition("::")[0]


def with_own_folders(repro: Repro, target: Path) -> Repro:
    """Return the repro with copies below `target` of the folders outside its project that it imports from.

    Built projects are such folders: whatever a run changes in them is gone with the run.
    """
    folders = [path for path in map(Path, repro.search_path) if path.is_absolute() and path.is_dir()]
    roots = [path for path in dict.fromkeys(folders) if not any(other in path.parents for other in folders)]
    copies = {root: target / str(number) for number, root in enumerate(roots)}
    for root, copy in copies.items():
        copy_tree(root, copy)
    own = {
        str(path): str(copy / path.relative_to(root))
        for path in folders
        for root, copy in copies.items()
        if path.is_relative_to(root)
    }
    return evolve(repro, search_path=tuple(own.get(text, text) for text in repro.search_path))


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder that a run may change; on file systems with reflinks, files share their blocks until then."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=_clone)
    if not source.stat().st_mode & stat.S_IWUSR:  # it is kept read-only in the cache
        for parent, names, files in os.walk(target):
            for path in (Path(parent, name) for name in ("", *names, *files)):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | stat.S_IWUSR)


def _clone(source: str, target: str) -> None:
    try:
        with Path(source).open("rb") as old, Path(target).open("wb") as new:
            fcntl.ioctl(new, _FICLONE, old.fileno())
    except OSError:
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def script_name(repro: Repro) -> str:
    """Return the file name of a repro's script in its scratch folder."""
    return Path(repro.path).name or f"{repro.name}.py"


def _command(job: Job) -> list[str]:
    """Return the command with existing relative paths made absolute, because it runs in another folder.

    A command that runs in a copy of a project stays as typed.
    """
    if job.repro.project:
        return list(job.repro.argv)
    program, *arguments = job.repro.argv
    if os.sep in program:
        program = _absolute(program, job.place.invoked_from)
    return [program, *(_absolute(argument, job.place.invoked_from) for argument in arguments)]


def _absolute(argument: str, folder: Path) -> str:
    """Make the path in an argument absolute, including `tests/test_x.py::test_y` and `--rootdir=tests`."""
    option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    path, colons, rest = value.partition("::")
    try:
        exists = bool(path) and not path.startswith("-") and (folder / path).exists()
    except (OSError, ValueError):  # not a path: too long, or with a null byte
        exists = False
    return f"{option}{equals}{(folder / path).absolute()}{colons}{rest}" if exists else argument
