"""A repro: a script with its requirements, its bounds and the signature of its bug (inline metadata, PEP 723).

A run may be given folders besides its packages: files that its first step made, and inputs that it declares.
Each is named by a hash over its whole content, so that another byte makes it another run.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
import shlex
import tomllib
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, fields_dict, frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.errors import BadRepro
from harness.model.regression import Regression, checked, parse_regression
from harness.model.release import normalized_name
from harness.model.signature import Signature, check_pattern
from harness.model.text import parse_size

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


def _input(name: str, table: Any) -> Input:
    where = f"inputs.{name}"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: a name is letters, digits, dots and dashes, because it names a folder")
    sources = [key for key in _KEYS if isinstance(table, dict) and key in table]
    if len(sources) != 1:
        raise ValueError(f"{where} must name one of folder, archive and hub")
    (source,) = sources
    given = checked(table, where, (source, *_KEYS[source]))
    if not _text(given, source, where):
        raise ValueError(f"{where}.{source} must not be empty")
    sha256, files = given.get("sha256", ""), given.get("files", [])
    if source == "archive" and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise ValueError(
            f"{where} needs sha256 = the archive's hash in 64 hexadecimal digits (sha256sum FILE shows it)"
        )
    if source == "hub" and not _HUB.fullmatch(given["hub"]):
        raise ValueError(f"{where}: hub = {given['hub']!r} must be 'owner/name@revision', where revision is a commit")
    if source == "hub" and not (files and isinstance(files, list) and all(isinstance(one, str) for one in files)):
        raise ValueError(f"{where} needs files = a list of the files wanted, such as ['config.json', '*.safetensors']")
    return Input(name, **{source: given[source]}, sha256=sha256, files=tuple(files))


# The regular expression for such a block in the specification:
# Python packaging specifications, "Inline script metadata", reference implementation.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

_DEVICES = ("cpu", "cuda", "any")
TOP_KEYS = (
    "device",
    "timeout",
    "memory",
    "gpu-memory",
    "subjects",
    "signature",
    "cases",
    "params",
    "reported",
    "known",
    "made",
    "inputs",
)
_DEFAULT_TIMEOUT_S = 600.0
_LONGEST_TIMEOUT_S = 30 * 24 * 3600.0
# Parts of a signature that are not text.
_SIGNATURE_TYPES = {"above": int | float, "below": int | float, "exit_code": int, "hang": bool, "crash": bool}


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
class Case:
    """A named set of a repro's parameters with its own bounds and signature."""

    params: dict[str, Any]
    signature: Signature | None
    subjects: dict[str, Bounds]
    known: Regression | None = None


@frozen
class Repro:
    """A script to run (`source`), or a command (`argv`), with its metadata.

    `digest` identifies its content; `subjects` maps project names to bounds, the default first; `timeout` is in seconds
    of wall time, `memory` in bytes (None: the machine's limit); `gpu_memory` is how many bytes must be free on a GPU
    before a run starts (None: a modest amount). `reported` is the report that the repro comes from, `known`
    what is true of its bug. `project` is a folder ("": none): each run gets a fresh copy and starts in the folder
    `inside` of the copy. `search_path` are folders with modules, relative to the copy unless absolute. `made` is its
    first step and `inputs` what it declares; `given` are the folders that its runs get for them, and `step` is the step
    to run, "" without a first step. `typed` names the parameters that the user gave. `is_limit_own` says that `timeout`
    is the user's or the repro's, not a shorter one of a search.
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
    gpu_memory: int | None = None
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
    inputs: tuple[Input, ...] = ()
    given: tuple[Given, ...] = ()
    step: str = ""
    typed: tuple[str, ...] = field(default=(), eq=False)
    is_limit_own: bool = field(default=True, eq=False)

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

    @property
    def is_pinned_offline(self) -> bool:
        """Whether it has files of a hub, which its runs must not ask for anything else."""
        return any(one.hub for one in self.inputs)

    @property
    def first_step(self) -> Repro:
        """The repro as its first step runs it, with the requirements of that step only."""
        return evolve(self, step=MAKE, digest=f"{self.digest}+{MAKE}")

    def with_given(self, *given: Given, step: str = "") -> Repro:
        """Return the repro with folders for its runs, and the step that they are for."""
        known = (*self.given, *given)
        told = "\0".join(f"{one.variable}={one.digest}{one.flaw}" for one in known)
        digest = self.digest.partition("+")[0]
        if known:
            digest = f"{digest}+{hashlib.sha256(told.encode()).hexdigest()[:12]}"
        return evolve(self, given=known, step=step, digest=digest)


def parse_repro(source: str, *, name: str, path: str = "") -> Repro:
    """Parse a repro's metadata. Raises `BadRepro`, whose message says what to change."""
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
    table = checked(_table(_table(metadata, "tool"), "harness"), "[tool.harness]", TOP_KEYS)
    device = table.get("device", "cpu")
    if device not in _DEVICES:
        raise ValueError(f"device = {device!r} must be one of {', '.join(_DEVICES)}")
    return Repro(
        name=name,
        digest=hashlib.sha256(source.encode()).hexdigest()[:16],
        source=source,
        path=path,
        dependencies=_requirements(metadata, "dependencies"),
        requires_python=_requires_python(metadata),
        device=device,
        timeout=_timeout(table),
        memory=_bytes(table, "memory"),
        gpu_memory=_bytes(table, "gpu-memory"),
        subjects=_subjects(table),
        signature=_signature(table),
        cases={key: _case(key, case) for key, case in _table(table, "cases").items()},
        params=_params(table),
        summary=_summary(source),
        reported=_text(table, "reported") or "",
        known=parse_regression(table["known"]) if "known" in table else None,
        made=_made(table["made"]) if "made" in table else None,
        inputs=tuple(_input(key, one) for key, one in _table(table, "inputs").items()),
    )


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


def _case(name: str, table: Any) -> Case:
    case = checked(table, f"cases.{name}", ("params", "signature", "subjects", "known"))
    known = parse_regression(case["known"]) if "known" in case else None
    return Case(_params(case), _signature(case), _subjects(case), known)


def _made(table: Any) -> Made:
    made = checked(table, "[tool.harness.made]", ("with", "subjects"))
    if not made.get("with"):
        raise ValueError("[tool.harness.made] needs with = the requirements of the first step: ['peft==0.17.1']")
    return Made(_requirements(made, "with"), _subjects(made))


def _params(table: dict[str, Any]) -> dict[str, Any]:
    params = dict(_table(table, "params"))
    try:
        json.dumps(params, allow_nan=False)  # the script gets them as JSON
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"params must be valid JSON; put dates in quotes ({error})") from error
    return params


def _requires_python(metadata: dict[str, Any]) -> str | None:
    text = _text(metadata, "requires-python")
    try:
        SpecifierSet(text or "")
    except InvalidSpecifier as error:
        raise ValueError(f"requires-python = {text!r} is not a version specifier such as '>=3.10'") from error
    return text


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a table")  # noqa: TRY004 - the caller reports all alike
    return value


def _requirements(table: dict[str, Any], key: str) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list):
        raise ValueError(f"{key} must be a list of requirements")  # noqa: TRY004 - as above
    for value in values:
        try:
            Requirement(value)
        except (InvalidRequirement, TypeError) as error:
            raise ValueError(f"{value!r} is not a requirement: {str(error).splitlines()[0]}") from error
    return tuple(values)


def _subjects(table: dict[str, Any]) -> dict[str, Bounds]:
    subjects = {}
    for project, given in _table(table, "subjects").items():
        where = f"subjects.{project}"
        bounds = checked(given, where, ("good", "bad", "as-of", "hold", "default"))
        subjects[normalized_name(project)] = Bounds(
            good=_version(bounds, "good", where),
            bad=_version(bounds, "bad", where),
            as_of=_text(bounds, "as-of", where),
            hold=_requirements(bounds, "hold"),
            default=bounds.get("default", False) is True,
        )
    return subjects


def _signature(table: dict[str, Any]) -> Signature | None:
    if "signature" not in table:
        return None
    keys = [name.replace("_", "-") for name in fields_dict(Signature) if name != "captured"]
    given = {key.replace("-", "_"): value for key, value in checked(table["signature"], "signature", keys).items()}
    if not given:
        raise ValueError(f"the signature has nothing; it takes {', '.join(keys)}")
    for key, value in given.items():
        wanted = _SIGNATURE_TYPES.get(key, str)
        is_wrong = not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)
        if is_wrong or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"the signature's {key} can't be {value!r}")
    if ("metric" in given) != ("above" in given or "below" in given):
        raise ValueError("in a signature, metric needs above or below, and above or below need metric")
    if "output" in given:
        try:
            check_pattern(given["output"])
        except ValueError as error:
            raise ValueError(f"the signature's output is not a regular expression: {error}") from error
    return Signature(**given)


def _text(table: dict[str, Any], key: str, where: str = "") -> str | None:
    value = table.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{where}{'.' if where else ''}{key} must be a string in quotes, not {value!r}")


def _version(table: dict[str, Any], key: str, where: str) -> str | None:
    text = _text(table, key, where)
    try:
        return text if text is None else str(Version(text))
    except InvalidVersion as error:
        raise ValueError(f"{where}.{key} = {text!r} is not a version") from error


def _timeout(table: dict[str, Any]) -> float:
    value = table.get("timeout", _DEFAULT_TIMEOUT_S)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _LONGEST_TIMEOUT_S:
        return float(value)
    raise ValueError(f"timeout must be a number of seconds above 0 and at most 30 days, not {value!r}")


def _bytes(table: dict[str, Any], key: str) -> int | None:
    """A size such as "8 GiB"."""
    value = table.get(key)
    size = parse_size(value) if isinstance(value, str) else None
    if value is not None and not size:
        raise ValueError(f"{key} must be a size such as '8 GiB', not {value!r}")
    return size


def _summary(source: str) -> str:
    """The first sentence of the script's docstring, read without running it."""
    match = re.search(r'^"""(.+?)(?:\n|""")', source, re.MULTILINE)
    return match.group(1).strip() if match else ""
