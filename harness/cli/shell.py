"""`harness shell`: a shell in the environment of either side of an answer."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from attrs import evolve, frozen

from harness.cli.options import complete_answers, settings_options
from harness.environment import Builder, CannotBuild, watched_environment
from harness.errors import UserMistake
from harness.model import Device, Lock, Observation, Repro, Verdict
from harness.question.project import Project, Projects, find_project
from harness.report.archive import Archive, StoredAnswer
from harness.run.devices import hidden
from harness.run.launch import remove_tree, repro_variables
from harness.run.runner import copy_tree, with_own_folders
from harness.session import Session, local_session
from harness.settings import Settings
from harness.store import Store


class _Command(click.Command):
    """A command whose words after `--` are another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta["harness.command"] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])


@frozen
class Entered:
    """What a person enters: a run with its lock, and what ran, with the copy of its project if there was one."""

    label: str
    observation: Observation
    repro: Repro


@click.command(cls=_Command, options_metavar="[OPTIONS] [-- COMMAND]")
@click.argument("side", type=click.Choice(["good", "bad"]), default="bad")
@click.option(
    "--answer",
    "id",
    metavar="ID",
    shell_complete=complete_answers,
    help="The answer whose ID begins so [default: the newest].",
)
@click.option("--package", metavar="NAME", help="The culprit whose side it is [default: the first].")
@settings_options()
def shell(side: str, id: str | None, package: str | None, settings: Settings) -> None:  # noqa: A002
    """Open a shell in the environment of either side of an answer, good or bad [default: bad].

    It has exactly the packages of that run, and starts in a fresh copy of the project, or in a folder with the repro.
    You may change anything: it is a copy, and gone when you leave. What comes after -- runs instead of a shell, and its
    exit status is passed on. Nothing is sandboxed here: it is your own shell.

    \b
    harness shell
    harness shell good -- python
    harness shell bad -- pytest -x --pdb
    """
    command: list[str] = click.get_current_context().meta["harness.command"]
    if not command and not sys.stdin.isatty():
        raise UserMistake("a shell needs a terminal", hint=f"harness shell {side} -- COMMAND runs a command there")
    stored = Archive(Store.opened(settings.results)).get(id)
    stored = stored.about_package(package) if package is not None else stored
    observation = side_of(stored, side)
    python = observation.lock.python if observation.lock is not None else None
    session = local_session(evolve(settings, python=python))
    entered = entered_side(session, stored, side, observation)
    sys.exit(enter(session.local.builder, entered, command))


def side_of(stored: StoredAnswer, side: str) -> Observation:
    """The run of the good or the bad side of an answer. Raises `UserMistake` if there is none."""
    answer = stored.answer
    if answer.boundary.change.unit == "commit":
        raise UserMistake(
            "the sides of this answer are commits, which are built for each run and not kept",
            hint="harness report shows them; check one out to look around in it",
        )
    if not answer.boundary.by_verdict:
        raise UserMistake(f"answer {stored.id} has no good and bad side: {answer.sentence}")
    return answer.boundary.by_verdict[Verdict(side)]


def entered_side(session: Session, stored: StoredAnswer, side: str, observation: Observation) -> Entered:
    """What a person enters for one side of an answer. Raises `UserMistake` if its project is gone."""
    answer = stored.answer
    ends = answer.boundary.ends
    version = ends[(side == "bad") != answer.boundary.is_fix] or "absent"
    label = f"{side}: {answer.subject} {version}"
    digest, inside = answer.question.copied
    repro = answer.question.repro
    if digest:
        project = _copy_of(session, digest)
        repro = evolve(repro, project=str(project.tree), search_path=project.search_path, inside=inside)
    return Entered(label, observation, repro)


def enter(builder: Builder, entered: Entered, command: list[str]) -> int:
    """Run a shell or a command in what is entered, and return its exit status. Raises `UserMistake`."""
    lock = entered.observation.lock
    if lock is None:
        raise UserMistake(f"nothing was installed for {entered.label}, so there is nothing to enter")
    with _environment(builder, lock) as (python, scratch):
        folder = _folder(entered, scratch)
        repro = with_own_folders(entered.repro, scratch / "built")
        link_sources(repro, folder)
        variables = repro_variables(entered.repro.params, entered.observation.device.value, 0)
        variables.pop("PYTHONHASHSEED")
        if entered.observation.device is Device.CPU:
            variables |= hidden()
        path = [folder / entry for entry in repro.search_path]
        start = folder / repro.inside
        env = shell_environment(os.environ, python, search_path=path, variables=variables)
        (settings := scratch / "settings").mkdir()
        if command:
            argv = [shutil.which(command[0], path=env["PATH"]) or command[0], *command[1:]]
        else:
            argv = interactive_shell(os.environ.get("SHELL") or "/bin/sh", settings, env)
        if not command:
            _greet(entered)
        try:
            return run_for_person(argv, env, start)
        except OSError as error:
            raise UserMistake(f"{argv[0]} can't be started: {error.strerror}") from error


@contextlib.contextmanager
def _environment(builder: Builder, lock: Lock) -> Iterator[tuple[Path, Path]]:
    """A copy of the environment of a lock that shares no file, built again if it is gone, and a folder to work in."""
    try:
        with watched_environment(builder, builder.build(lock), apart=True) as place:
            yield place.environment.python, place.scratch
    except CannotBuild as error:
        raise UserMistake(f"the packages of this run can't be installed any more: {error}") from error


def _folder(entered: Entered, scratch: Path) -> Path:
    """A fresh copy of the project, or a folder with the repro."""
    folder = scratch / "work"
    if entered.repro.project:
        copy_tree(Path(entered.repro.project), folder)
    else:
        folder.mkdir()
    if entered.repro.source:
        (folder / f"{entered.repro.name}.py").write_text(entered.repro.source, encoding="utf-8")
    return folder


def link_sources(repro: Repro, folder: Path) -> None:
    """Let what was built import its packages from the project in `folder`, so that edits there count, and new files.

    What only the build made, such as compiled modules, is copied there, and what it made otherwise.
    """
    sources = [folder / text for text in reversed(repro.search_path) if not Path(text).is_absolute()]
    for entry in [entry for text in repro.search_path if Path(text).is_absolute() for entry in Path(text).iterdir()]:
        same = next((path for path in (source / entry.name for source in sources) if path.exists()), entry)
        if same is entry or same.is_dir() != entry.is_dir() or not same.resolve().is_relative_to(folder.resolve()):
            continue
        for made in entry.rglob("*") if entry.is_dir() else [entry]:
            own = same / made.relative_to(entry)
            is_inside = own.parent.resolve().is_relative_to(folder.resolve())
            if made.is_file() and is_inside and not own.is_symlink() and not _is_same(own, made):
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(made, own)
        remove_tree(entry) if entry.is_dir() else entry.unlink()
        entry.symlink_to(same)


def _is_same(path: Path, other: Path) -> bool:
    return path.is_file() and filecmp.cmp(path, other, shallow=False)


def _copy_of(session: Session, digest: str) -> Project:
    """The copied project with a digest; the present one if the copy is gone. Raises `UserMistake` without either."""
    home = session.workspace.projects / digest
    built = home / f"built-{session.interpreter.cache_tag}"
    if (home / "tree").is_dir():
        return Project(home, digest, home / "tree", built if built.is_dir() else None)
    root = find_project(Path.cwd())
    if root is None:
        raise UserMistake(
            "the copy of the project is gone", hint="run it in the project's folder, which is copied again"
        )
    project = Projects.of(session).read(root)
    if project.digest != digest:
        click.echo("  the project has changed since; this is how it is now", err=True)
    return project


def _greet(entered: Entered) -> None:
    lock = entered.observation.lock
    what = f"{entered.label}, Python {lock.python}, {len(lock.pins)} packages" if lock is not None else entered.label
    click.echo(f"  {what}; all of it is a copy that is gone when you leave (exit)", err=True)
    repro = entered.repro
    ran = " ".join(repro.argv) if repro.argv else f"python {repro.name}.py"
    click.echo(f"  what ran: {ran}", err=True)
    if entered.observation.device is Device.EMULATED:
        click.echo("  the stand-in for CUDA is not here; harness probe --again runs with it", err=True)


_OURS = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "PYTHONDONTWRITEBYTECODE",
    "__PYVENV_LAUNCHER__",
)


def shell_environment(
    ours: Mapping[str, str], python: Path, *, search_path: Sequence[Path], variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a person's shell in an environment: their own, with its programs and modules first.

    `search_path` are folders with modules, and with programs in their `bin`.
    """
    env = {name: value for name, value in ours.items() if name not in _OURS}
    programs = [folder / "bin" for folder in search_path if (folder / "bin").is_dir()]
    env["PATH"] = os.pathsep.join(map(str, [*programs, python.parent, ours.get("PATH", os.defpath)]))
    env |= {"VIRTUAL_ENV": str(python.parent.parent), "PYTHONNOUSERSITE": "1", **variables}
    if search_path:
        env["PYTHONPATH"] = os.pathsep.join(map(str, search_path))
    return env


def run_for_person(argv: Sequence[str], env: Mapping[str, str], folder: Path) -> int:
    """Run a program with this process's terminal, and return its exit status, 128 + N after signal N.

    Ctrl-C is for the program alone. Raises `OSError` if it can't be started.
    """
    is_main = threading.current_thread() is threading.main_thread()
    # A handler, unlike SIG_IGN, does not reach the program.
    before = signal.signal(signal.SIGINT, lambda *_: None) if is_main else None
    try:
        code = subprocess.Popen(argv, env=dict(env), cwd=folder).wait()
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def interactive_shell(shell: str, settings: Path, env: dict[str, str]) -> list[str]:
    """Return the command of a shell; `settings` is an empty folder for its settings.

    bash and zsh read the user's own settings first. These may put other programs first in PATH, so it is set again.
    """
    again = f"export PATH={shlex.quote(env['PATH'])} VIRTUAL_ENV={shlex.quote(env['VIRTUAL_ENV'])}\n"
    match Path(shell).name:
        case "bash":
            (settings / "bashrc").write_text(f"[ -f ~/.bashrc ] && . ~/.bashrc\n{again}", encoding="utf-8")
            return [shell, "--rcfile", str(settings / "bashrc"), "-i"]
        case "zsh":
            own = f"ZDOTDIR={shlex.quote(env.get('ZDOTDIR', env.get('HOME', '')))}\n"
            own += '[ -f "$ZDOTDIR/.zshrc" ] && . "$ZDOTDIR/.zshrc"\n'
            (settings / ".zshrc").write_text(own + again, encoding="utf-8")
            env["ZDOTDIR"] = str(settings)
    return [shell]
