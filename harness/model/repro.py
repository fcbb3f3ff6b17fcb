"""A repro: a script with its requirements, its bounds and the signature of its bug (inline metadata, PEP 723).

A run may be given two folders besides its packages: what its first step wrote, and the inputs that it declares. Each is
named by a hash over its whole content, so that another byte makes it another run.
"""

from __future__ import annotations

import functools
import hashlib
import json
import posixpath
import re
import shlex
import signal
import tomllib
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, frozen
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.errors import BadRepro
from harness.model.regression import Regression, regression
from harness.model.release import normalized_name
from harness.model.signature import Signature, check_pattern
from harness.model.table import (
    Reader,
    a_table,
    is_number,
    number,
    one_of,
    parsed,
    read_table,
    requirements,
    switch,
    table_of,
    text,
    that,
)
from harness.model.text import parse_size

MAKE, USE = "make", "use"
ARTIFACTS, INPUTS = "HARNESS_ARTIFACTS", "HARNESS_INPUTS"


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


# The regular expression for such a block in the specification:
# Python packaging specifications, "Inline script metadata", reference implementation.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

_DEFAULT_TIMEOUT_S = 600.0
_LONGEST_TIMEOUT_S = 30 * 24 * 3600.0
_MOST_GPUS = 64


@frozen
class Bounds:
    """The bounds of a repro for one project that it can be bisected over.

    `good` and `bad` are versions; `as_of` is "era", "none" or a date; `hold` are requirements that are kept if
    possible. None leaves the choice to the caller. `default` makes this repro the one that `harness bisect` takes if
    only the project is named.
    """

    good: str | None = None
    bad: str | None = None
    as_of: str | None = None
    hold: tuple[str, ...] = ()
    default: bool = False

    @property
    def is_regression(self) -> bool:
        """Whether both bounds are known and the good one is older."""
        return self.good is not None and self.bad is not None and Version(self.good) < Version(self.bad)


@frozen
class Made:
    """The first step of a repro: what writes the files that its runs read.

    `with_` are the requirements of the step that differ from those of a run; `subjects` are bounds for `--made`.
    """

    with_: tuple[str, ...]
    subjects: dict[str, Bounds] = field(factory=dict)


@frozen
class GpuNeed:
    """What a run needs of GPUs: `free` bytes on each of `count` GPUs of one model before it starts."""

    free: int = 2**30  # a CUDA context with library workspaces takes several hundred MiB before the first tensor
    count: int = 1


@frozen
class Case:
    """A named set of a repro's parameters with its own bounds and signature."""

    params: dict[str, Any] = field(factory=dict)
    signature: Signature | None = None
    subjects: dict[str, Bounds] = field(factory=dict)
    known: Regression | None = None


@frozen
class Repro:
    """A script to run (`source`), or a command (`argv`), with its metadata.

    `digest` identifies its content; `subjects` maps project names to bounds, the default first; `timeout` is in seconds
    of wall time, `memory` in bytes (None: the machine's limit); `gpus` is what a run on GPUs needs of them. `launch` is
    the launcher that starts a process for each GPU, "" for a single process. `reported` is the report that the repro
    comes from, `known` what is true of its bug. `project` is a folder ("": none): each run gets a fresh copy and starts
    in the folder `inside` of the copy. `search_path` are folders with modules, relative to the copy unless absolute.
    `made` is its first step and `inputs` a folder, relative to its own ("": none); `given` are the folders that its
    runs get for them, and `step` is the step to run, "" without a first step. `typed` names the parameters that the
    user gave. `is_limit_own` says that `timeout` is the user's or the repro's, not a shorter one of a search.
    """

    name: str
    digest: str
    source: str = ""
    path: str = ""
    argv: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    device: str = "cpu"
    timeout: float = _DEFAULT_TIMEOUT_S
    memory: int | None = None
    gpus: GpuNeed = GpuNeed()
    launch: str = ""
    subjects: dict[str, Bounds] = field(factory=dict)
    signature: Signature | None = None
    cases: dict[str, Case] = field(factory=dict)
    params: dict[str, Any] = field(factory=dict)
    summary: str = ""
    reported: str = ""
    known: Regression | None = None
    project: str = ""
    inside: str = ""
    search_path: tuple[str, ...] = ()
    made: Made | None = None
    inputs: str = ""
    given: tuple[Given, ...] = ()
    step: str = ""
    typed: tuple[str, ...] = field(default=(), eq=False)
    is_limit_own: bool = field(default=True, eq=False)

    @property
    def ranks(self) -> int:
        """The number of processes that run the script: one for each GPU if a launcher starts them, else one."""
        return self.gpus.count if self.launch else 1

    @property
    def without_copies(self) -> Repro:
        """The repro without the folders of this machine that its copies were in, as a report may show it.

        `search_path` is relative to the folder that the user typed the command in; folders with built modules are gone.
        """
        typed_in = PurePosixPath(self.inside or ".")
        own = (path for path in self.search_path if not PurePosixPath(path).is_absolute())
        search_path = tuple(posixpath.relpath(path, typed_in) for path in own)
        return evolve(self, project="", inside="", search_path=search_path)

    def with_params(self, params: dict[str, Any], *, typed: bool = True) -> Repro:
        """Return the repro with these parameters; the parameter `case` selects a case's bounds and signature.

        With `typed=False` they come from a record instead of the user. Raises `BadRepro` if there is no such case.
        """
        given = tuple(dict.fromkeys((*self.typed, *(params if typed else ()))))
        name = params.get("case")
        if name is None or not self.cases:
            return evolve(self, params={**self.params, **params}, typed=given)
        case = self.cases.get(str(name))
        if case is None:
            raise BadRepro(f"{self.name} has no case {name!r}; it has: {', '.join(self.cases)}")
        return evolve(
            self,
            params={**self.params, **case.params, **params},
            typed=given,
            signature=case.signature or self.signature,
            subjects=case.subjects or self.subjects,
            known=case.known,
        )

    def within(self, timeout: float | None, *, is_own: bool = True) -> Repro:
        """Return the repro with another time limit in seconds; None keeps its own.

        With `is_own=False` the limit is not what the user would change.
        """
        return evolve(self, timeout=timeout, is_limit_own=is_own) if timeout is not None else self

    def running(self, argv: tuple[str, ...]) -> Repro:
        """Return the repro with another command line, which makes it another repro."""
        digest = hashlib.sha256("\0".join([self.digest, *argv]).encode()).hexdigest()[:16]
        return evolve(self, argv=argv, digest=digest) if argv != self.argv else self

    @property
    def first_step(self) -> Repro:
        """The repro as its first step runs it, with the requirements of that step only."""
        return evolve(self, step=MAKE, digest=f"{self.digest}+{MAKE}")

    def with_given(self, *given: Given, step: str = "") -> Repro:
        """Return the repro with folders for its runs, and the step that they are for."""
        folders = (*self.given, *given)
        description = "\0".join(f"{folder.variable}={folder.digest}{folder.flaw}" for folder in folders)
        digest = self.digest.partition("+")[0]
        if folders:
            digest = f"{digest}+{hashlib.sha256(description.encode()).hexdigest()[:12]}"
        return evolve(self, given=folders, step=step, digest=digest)


@functools.lru_cache(maxsize=512)
def parse_repro(source: str, *, name: str, path: str = "") -> Repro:
    """Parse a repro's metadata. Raises `BadRepro`, whose message says what to change.

    All repros that there are are read more than once, to find the one for a subject.
    """
    where = path or name
    source = source.removeprefix("\ufeff")  # some editors write a byte order mark
    blocks = [m for m in _BLOCK.finditer(source) if m.group("type") == "script"]
    if not blocks:
        raise BadRepro(
            f"{where} has no inline script metadata",
            hint="start it with a '# /// script' block that lists its dependencies, as harness init repro writes one, "
            f"or run it as a command: --run 'python {where}' --with PACKAGE",
        )
    if len(blocks) > 1:
        raise BadRepro(f"{where} has {len(blocks)} '# /// script' blocks; keep one")
    content = "".join(
        line[2:] if line.startswith("# ") else line[1:] for line in blocks[0].group("content").splitlines(keepends=True)
    )
    try:
        metadata = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadRepro(f"{where}: its script metadata is not valid TOML: {why}") from error
    try:
        return _of_metadata(metadata, source, name, path)
    except ValueError as error:
        raise BadRepro(f"{where}: {error}") from error


def _of_metadata(metadata: dict[str, Any], source: str, name: str, path: str) -> Repro:
    """Return a repro. Raises `ValueError` with a sentence that names the key."""
    needs = {key: metadata[key] for key in _REQUIRES if key in metadata}
    tool = a_table(a_table(metadata.get("tool", {}), "tool").get("harness", {}), "tool.harness")
    return Repro(
        name=name,
        digest=hashlib.sha256(source.encode()).hexdigest()[:16],
        source=source,
        path=path,
        summary=_summary(source),
        **read_table(needs, "", _REQUIRES),
        **_with_gpus(read_table(tool, "", TOOL)),
    )


def _with_gpus(given: dict[str, Any]) -> dict[str, Any]:
    """Join what the metadata says of GPUs. Raises `ValueError`."""
    count, free = given.pop("gpus", 1), given.pop("gpu_memory", None)
    if "launch" in given:
        if count < 2:
            raise ValueError(f'launch = "{given["launch"]}" starts a process for each GPU: add gpus = 2 or more')
        given.setdefault("device", "any")
    return {**given, "gpus": GpuNeed(free or GpuNeed().free, count)}


def command_repro(command: str, *, content_digest: str = "", timeout: float = _DEFAULT_TIMEOUT_S) -> Repro:
    """Return a repro for a command line; `content_digest` identifies the files that it names."""
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise BadRepro(f"--run {command!r} can't be parsed: {error}") from error
    if not argv:
        raise BadRepro("--run needs a command", hint='for example --run "pytest -x tests/test_training.py"')
    digest = hashlib.sha256(f"{command}\0{content_digest}".encode()).hexdigest()[:16]
    return Repro(name=command, digest=digest, argv=argv, timeout=timeout, device="any")


def _params(value: Any, where: str) -> dict[str, Any]:
    params = dict(a_table(value, where))
    try:
        json.dumps(params, allow_nan=False)  # the script gets them as JSON
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{where} must be valid JSON; put dates in quotes ({error})") from error
    return params


def _version(value: Any, where: str) -> str:
    return str(Version(parsed(Version, "a version")(value, where)))


def _bytes(value: Any, where: str) -> int | None:
    return parse_size(_size(value, where))


_size = that(lambda value: isinstance(value, str) and bool(parse_size(value)), "a size such as '8 GiB'")
_BOUNDS: dict[str, Reader] = {"good": _version, "bad": _version, "as-of": text, "hold": requirements, "default": switch}
# A shell and a sandbox exit with 128 and the number after these signals (as in run/guard.py). SIGKILL is no crash: it
# comes from the machine, unless a signature says that it is the bug.
_FATAL = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTERM)
_SIGNATURE: dict[str, Reader] = {
    **dict.fromkeys(("exception", "message", "frame", "metric"), text),
    **dict.fromkeys(("above", "below"), number),
    **dict.fromkeys(("hang", "crash"), switch),
    "exit-code": that(
        lambda value: is_number(value) and isinstance(value, int) and value != 0, "a whole number other than 0"
    ),
    "output": parsed(check_pattern, "a regular expression"),
}


def _subjects(value: Any, where: str) -> dict[str, Bounds]:
    subjects = table_of(lambda table, at: Bounds(**read_table(table, at, _BOUNDS)))(value, where)
    return {normalized_name(project): bounds for project, bounds in subjects.items()}


def _signature(value: Any, where: str) -> Signature:
    given = read_table(value, where, _SIGNATURE)
    if not given:
        raise ValueError(f"the {where} has nothing; it takes {', '.join(sorted(_SIGNATURE))}")
    if ("metric" in given) != ("above" in given or "below" in given):
        raise ValueError(f"{where}: metric needs above or below, and above or below need metric")
    if (given.get("exception") or "").rpartition(".")[2] == "SystemExit":
        raise ValueError(f"{where}: SystemExit is recognised by its exit code: write exit-code = 1, not exception")
    if (given.get("exit_code") or 0) - 128 in _FATAL:
        raise ValueError(f"{where}: exit code {given['exit_code']} stands for a signal: write crash = true")
    return Signature(**given)


_CASE: dict[str, Reader] = {
    "params": _params,
    "signature": _signature,
    "subjects": _subjects,
    "known": regression,
}


def _made(value: Any, where: str) -> Made:
    made = read_table(value, where, {"with": requirements, "subjects": _subjects})
    if not made.get("with"):
        raise ValueError("[tool.harness.made] needs with = the requirements of the first step: ['peft==0.17.1']")
    return Made(made["with"], made.get("subjects", {}))


_REQUIRES: dict[str, Reader] = {
    "dependencies": requirements,
    "requires-python": parsed(SpecifierSet, "a version specifier such as '>=3.10'"),
}
TOOL: dict[str, Reader] = {
    "device": one_of("cpu", "cuda", "any"),
    "timeout": that(
        lambda value: is_number(value) and 0 < value <= _LONGEST_TIMEOUT_S,
        "a number of seconds above 0 and at most 30 days",
    ),
    "memory": _bytes,
    "gpu-memory": _bytes,
    "gpus": that(lambda value: type(value) is int and 1 <= value <= _MOST_GPUS, f"a number from 1 to {_MOST_GPUS}"),
    "launch": one_of("torchrun", "accelerate"),
    **_CASE,
    "cases": table_of(lambda table, where: Case(**read_table(table, where, _CASE))),
    "reported": text,
    "made": _made,
    "inputs": that(
        lambda value: isinstance(value, str) and bool(value.strip()), "a folder beside the repro, such as 'data'"
    ),
}


def _summary(source: str) -> str:
    """The first sentence of the script's docstring, read without running it."""
    match = re.search(r'^"""(.+?)(?:\n|""")', source, re.MULTILINE)
    return match.group(1).strip() if match else ""
