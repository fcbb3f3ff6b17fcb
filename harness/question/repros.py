"""Finds the repro of a question: a path, a name, the one that names the subject, or a command; with its parameters.

Named repros are in `repros/` of the working directory, or shipped with the harness.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.environment.index import check_project_name
from harness.errors import BadRepro, UnknownProject, UserMistake
from harness.model import Repro, normalized_name
from harness.model.repro import command_repro, parse_repro
from harness.model.requirements import required_name
from harness.question.project import files_below
from harness.question.tools_in_use import WELL_KNOWN
from harness.repository.declared import read_toml, text_to_read
from harness.run.commands import recognised
from harness.run.programs import HARMLESS_OPTIONS, WRAPPERS
from harness.run.sandbox import hidden_folders

_WRAPPERS = (*((name, "run") for name in WRAPPERS), ("uv", "tool", "run"), ("uvx",))
_ENVIRONMENTS = ("nox", "tox", "hatch")


def unwrapped(command: str, project: Path | None = None) -> str:
    """Return a command without the wrapper that would choose its packages; any other command is returned as it is.

    `project` is the folder whose files name its scripts. Raises `UserMistake`, which says what to type instead.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    inner = _inner(words, command, project)
    return command if inner == words else unwrapped(shlex.join(inner), project)


def _inner(words: list[str], command: str, project: Path | None) -> list[str]:
    named = words[2:] if words and words[0].startswith("python") and words[1:2] == ["-m"] else words
    if named and named[0] in _ENVIRONMENTS:
        raise UserMistake(
            f"{named[0]} makes its own environments, so {command!r} can't run with the packages of a release",
            hint='give the command that it runs, for example --run "pytest"; --with, --extra and --group add packages',
        )
    wrapper = next((known for known in _WRAPPERS if tuple(named[: len(known)]) == known), None)
    if wrapper is None:
        return words
    inner = _without_options(named[len(wrapper) :], command)
    scripts = _scripts(wrapper[0], project)
    if inner and inner[0] in scripts:
        return [*shlex.split(scripts[inner[0]]), *inner[1:]]
    if inner and wrapper == ("uv", "run") and inner[0].endswith(".py"):
        return ["python", *inner]
    return inner


def _without_options(words: Sequence[str], command: str) -> list[str]:
    for at, word in enumerate(words):
        if word in ("-m", "--module"):
            return ["python", "-m", *words[at + 1 :]]
        if word == "--":
            return list(words[at + 1 :])
        if not word.startswith("-"):
            return list(words[at:])
        if word not in HARMLESS_OPTIONS:
            raise UserMistake(
                f"{word} in {command!r} changes what is installed, which the harness chooses",
                hint="type the command without its wrapper; harness has --python, --with, --extra and --group",
            )
    raise UserMistake(f"{command!r} names no command to run")


def _scripts(program: str, project: Path | None) -> dict[str, str]:
    """Return the commands that a project's file names for `pdm run NAME` or `pipenv run NAME`."""
    if project is None or program not in ("pdm", "pipenv"):
        return {}
    if program == "pipenv":
        scripts = read_toml(project / "Pipfile").get("scripts", {})
    else:
        scripts = read_toml(project / "pyproject.toml").get("tool", {}).get("pdm", {}).get("scripts", {})
    texts = {name: script.get("cmd") if isinstance(script, dict) else script for name, script in scripts.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str) and text.strip()}


_MOST_BESIDE = 5000
_SMALL = 2**20  # bytes
_SHIPPED = Path(__file__).parent.parent / "_repros"


def chosen_repro(
    repro: str | None, run: str | None, subject: str | None, params: tuple[str, ...], timeout: float | None = None
) -> Repro:
    """Return the repro that the options name, with its parameters and time limit in seconds (None: its own).

    Raises `UserMistake` and `BadRepro`.
    """
    if subject is not None:
        check_project_name(subject)
    if repro and run:
        raise UserMistake("give either --repro or --run")
    if run:
        run = unwrapped(run)
        chosen = command_repro(run, content_digest=digest_of(run))
    elif repro:
        chosen = find_repro(repro)
    elif subject:
        chosen = repro_for_subject(subject)
    else:
        raise UserMistake("nothing to run", hint='name a repro with --repro, or give a command with --run "COMMAND"')
    return chosen.with_params(parameters(params)).within(timeout)


def required_python(repro: str | None, run: str | None, subject: str | None) -> str | None:
    """Return the Python requirement of the named repro; None for a command, or if nothing is named."""
    return None if run or not (repro or subject) else chosen_repro(repro, None, subject, ()).requires_python


def runs_tests(run: str) -> bool:
    """Whether a command runs a test tool whose results can be read."""
    try:
        return recognised(shlex.split(unwrapped(run, Path.cwd()))) is not None
    except ValueError:
        return False


def parameters(params: Sequence[str]) -> dict[str, Any]:
    """Parse the values of `--param`: JSON, or text if it is not JSON. Raises `UserMistake`."""
    return dict(_parameter(text) for text in params)


def typed_words(repro: str | None, run: str | None, params: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options that name the repro, quoted for a shell, for commands shown to the user."""
    words = ["--repro", repro] if repro else ["--run", run] if run else []
    words += [word for param in params for word in ("--param", param)]
    return tuple(map(shlex.quote, words))


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserMistake(f"--param takes NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def digest_of(command: str) -> str:
    """Return the digest of what a command can read, so that a changed test, or module beside it, is a new question.

    That is the files that it names, and those below their folders and the working directory. A folder with more than
    some thousand files is no project, and is left out, and so is one that the sandbox hides.
    """
    digest = hashlib.sha256()
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    folders = {Path()}
    for word in words:
        named = Path(word.partition("::")[0])
        if named.is_file():
            folders.add(named.parent)
        for path in _files(named):
            digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    hidden = {*hidden_folders(), Path("/")}
    for folder in sorted(folder for folder in folders if folder.resolve() not in hidden):
        beside = list(itertools.islice(files_below(folder), _MOST_BESIDE + 1))
        for path in sorted(beside) if len(beside) <= _MOST_BESIDE else ():
            digest.update(str(path).encode() + b"\0" + _state(folder / path) + b"\0")
    return digest.hexdigest()


def _state(path: Path) -> bytes:
    """The content of a file, of a large one its size and time of change, which are read sooner."""
    with contextlib.suppress(OSError):
        state = path.stat()
        return path.read_bytes() if state.st_size <= _SMALL else f"{state.st_size} {state.st_mtime_ns}".encode()
    return b""


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from sorted(file for file in path.rglob("*.py") if file.is_file())


def list_repros(where: Path | None = None) -> list[Repro]:
    """Return every valid repro, sorted by name; one in the working directory hides a shipped one of the same name."""
    paths = _named_repros(where)
    repros = []
    for name in sorted(paths):
        try:
            repros.append(read_repro(paths[name]))
        except BadRepro:
            continue
    return repros


def find_repro(name: str, where: Path | None = None) -> Repro:
    """Return a repro by name or path. Raises `BadRepro`."""
    path = Path(name).expanduser()
    if path.suffix == ".py" or "/" in name:
        return read_repro(path)
    known = _named_repros(where)
    if name in known:
        return read_repro(known[name])
    close = difflib.get_close_matches(name, known, n=1)
    raise BadRepro(
        f"no repro named {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
        hint="harness repros lists them; a path to a file works too",
    )


def similar_package(name: str, requirements: Iterable[str] = (), where: Path | None = None) -> str | None:
    """Return the package that a misspelled name probably means.

    It is one that is required, a subject of some repro, or a well-known tool of tests.
    """
    known = {subject for repro in list_repros(where) for subject in repro.subjects} | WELL_KNOWN
    close = difflib.get_close_matches(normalized_name(name), known | set(map(required_name, requirements)), n=1)
    return close[0] if close else None


@contextlib.contextmanager
def names_meant(requirements: Iterable[str]) -> Iterator[None]:
    """Say which package was probably meant where the index has no project of a name.

    Raises `UnknownProject` again, with a name that `similar_package` knows.
    """
    try:
        yield
    except UnknownProject as error:
        unknown = normalized_name(error.project)
        close = similar_package(unknown, (text for text in requirements if required_name(text) != unknown))
        if close in (None, unknown):
            raise
        raise UnknownProject(error.project, hint=f"did you mean {close}?") from error


def repro_for_subject(subject: str, where: Path | None = None) -> Repro:
    """Return the repro that fits a subject best. Raises `BadRepro` if none names it.

    The one that says it is the default comes first; then repros that name it earlier, then those with both bounds, and
    of these those of a regression.
    """
    name = normalized_name(subject)
    naming = [repro for repro in list_repros(where) if name in repro.subjects]
    if not naming:
        close = similar_package(name, where=where)
        raise BadRepro(
            f"no repro names {subject} as its subject" + (f"; did you mean {close}?" if close else ""),
            hint='name one with --repro PATH, or give a command with --run "COMMAND"',
        )

    def fit(repro: Repro) -> tuple[bool, int, bool, bool]:
        bounds = repro.subjects[name]
        known = bounds.good is not None and bounds.bad is not None
        return not bounds.default, list(repro.subjects).index(name), not known, known and not bounds.is_regression

    return min(naming, key=fit)


def read_repro(path: Path) -> Repro:
    """Read one repro. Raises `BadRepro`."""
    return parse_repro(text_to_read(path, "the repro", BadRepro), name=path.stem, path=str(path))


def _named_repros(where: Path | None) -> dict[str, Path]:
    """Return the files of the repros by name; one in the working directory hides a shipped one."""
    checkout = Path(__file__).parent.parent.parent / "repros"  # a checkout has the shipped ones there
    folders = (checkout, _SHIPPED, (where or Path.cwd()) / "repros")
    return {path.stem: path for folder in folders for path in folder.glob("*.py")}
