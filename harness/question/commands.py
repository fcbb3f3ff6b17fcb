"""Turns `--run`, `--repro`, `--project` and `--with` into a repro with requirements.

`--with` takes requirements, `-r FILE`, and folders in place of releases: `.`, `peft @ ./clone`, or a commit
`peft @ ./clone@1a2b3c4`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.arguments import OptionGroup, Options, Trait, as_path, documented, option_field, with_types
from harness.errors import UserMistake
from harness.model import Repro, normalized_name
from harness.model.repro import command_repro
from harness.model.requirements import required_name, unpinned
from harness.question.failed_tests import only_failed
from harness.question.lockfiles import environment_of, read_requirement_file
from harness.question.project import Project, Projects, find_project, last_commit
from harness.question.project_requirements import OWN_REQUIREMENTS, RequestedExtras
from harness.question.reference_ends import reference_of
from harness.question.repros import chosen_repro, digest_of, parameters, unwrapped
from harness.question.tools_in_use import plugin_of_option, project_of_program
from harness.repository.declared import listed_folders, local_sources
from harness.repository.git import Repository, clone_of
from harness.run.commands import is_python, module_at, program_at, recognised

if TYPE_CHECKING:
    from harness.settings import Settings

_INSTALLERS = ("setuptools", "pip", "wheel")
_NAMED_FOLDER = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[[^]]*\])?\s*@\s*(?P<path>[.~/].*|file://.*|git\+.*)$")


@frozen
class ChosenCommand:
    """The repro that the options name, the requirements of `--with`, and the choices made for the user.

    `replaced` are the projects of which `--with` gives a folder; `root` is the one in whose copies the command runs.
    """

    repro: Repro
    with_: tuple[str, ...]
    notes: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    root: Path | None = None


def chosen_command(
    repro: str | None,
    run: str | None,
    subject: str | None,
    settings: Settings,
    project: ChosenProject,
    projects: Projects,
) -> ChosenCommand:
    """Return the repro of a question; a command runs in a copy of its project. Raises `UserMistake` and `BadRepro`."""
    beside = read_with_option(settings.with_, projects)
    replaced = tuple(folder.name for folder in beside.folders)
    if not run:
        if project.folder is not None:
            raise UserMistake("--project goes with --run", hint='for example --project . --run "pytest"')
        named = chosen_repro(repro, run, subject, settings.params, settings.timeout)
        return ChosenCommand(with_folders(named, beside.folders), beside.requirements, beside.notes, replaced)
    if repro:
        raise UserMistake("give either --repro or --run")
    chosen = read_command(run, beside, projects, project, start=Path.cwd())
    configured = chosen.repro.with_params(parameters(settings.params)).within(settings.timeout)
    return evolve(chosen, repro=configured, replaced=replaced)


@frozen
class WithOption:
    """The values of `--with`: requirements, the user's own folders, and sentences about what was left out.

    `has_file` says that a requirements file was named.
    """

    requirements: tuple[str, ...] = ()
    folders: tuple[Project, ...] = ()
    notes: tuple[str, ...] = ()
    has_file: bool = False

    @property
    def all_requirements(self) -> tuple[str, ...]:
        """All requirements, including those of the folders, which add to the project's."""
        return (*self.requirements, *(text for folder in self.folders for text in folder.requirements))

    @property
    def is_whole(self) -> bool:
        """Whether they list everything that the tests need: a file, or pytest and at least one other package.

        Such a list replaces the requirements in the project's files, whose pins would hide what upgrades change.
        """
        given = _names(self.requirements)
        others = (name for name in given if not name.startswith("pytest") and name not in _INSTALLERS)
        return self.has_file or ("pytest" in given and any(others))


def read_with_option(given: Sequence[str], projects: Projects) -> WithOption:
    """Read `--with` values: requirements, `-r FILE`, folders (`.`, `peft @ ./clone`, `peft @ ./clone@1a2b3c4`).

    Raises `UserMistake`, and `BadRepository` for a missing commit.
    """
    requirements: list[str] = []
    folders: list[Project] = []
    notes: list[str] = []
    environment = environment_of(projects.interpreter.version)
    for text in given:
        if text.startswith("-r"):
            lines = read_requirement_file(Path(text.removeprefix("-r").strip(" =")).expanduser(), environment)
            requirements += lines.requirements
            notes += lines.notes
        elif (named := folder_of(text)) is not None:
            folder, name = named
            project = read_folder(folder, projects, name)
            folders.append(project)
            notes += [f"{project.name or folder}: {note}" for note in project.notes]
        else:
            requirements.append(text)
    has_file = any(text.startswith("-r") for text in given)
    return WithOption(tuple(requirements), tuple(folders), tuple(notes), has_file)


_project = partial(option_field, group=OptionGroup.PROJECT, not_for=(Trait.SCRIPT,))


@documented
@frozen(field_transformer=with_types)
class ChosenProject(Options):
    """The project that the options choose: its folder, the extras and dependency groups to install, and its tests.

    `good_day` (ISO 8601) is a day on which it worked, for a folder
    without a git history.
    """

    folder: Path | None = _project(  # noqa: RUF009 - an attrs field
        None,
        "--project",
        "Run the command in fresh copies of this project [default: the nearest one above].",
        metavar="DIR",
        converter=as_path,
    )
    extras: tuple[str, ...] = _project((), "--extra", "An extra of the project to install.", metavar="NAME")
    groups: tuple[str, ...] = _project((), "--group", "A dependency group of the project to install.", metavar="NAME")
    unpin: bool = _project(False, "--unpin", "Ignore the versions of the project's exact pins.")
    from_junit: Path | None = _project(  # noqa: RUF009
        None,
        "--from-junit",
        "Run only the tests that failed in this JUnit report, such as CI's [--run default: pytest].",
        metavar="FILE",
        converter=as_path,
    )
    good_day: str = ""

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that choose it, quoted for a shell."""
        return self.words_of_given()

    def command(self, run: str | None) -> str | None:
        """The command that runs: the one that was typed, else pytest if the project's tests are chosen."""
        return run or ("pytest" if self.from_junit is not None else None)


def read_command(
    run: str,
    beside: WithOption,
    projects: Projects,
    chosen: ChosenProject = ChosenProject(),
    *,
    start: Path,
) -> ChosenCommand:
    """Read a command that runs in a copy of the chosen project, or of the nearest one from `start` upwards.

    Without a project it runs in an empty folder.

    Raises `UserMistake` and `BadRepro`.
    """
    root = chosen.folder or find_project(start)
    run = unwrapped(run, root)
    if root is None and chosen.from_junit is not None:
        raise UserMistake(
            f"there is no project here whose tests {chosen.from_junit} could name",
            hint="go to its folder, or name it with --project",
        )
    if root is None:
        repro = command_repro(run, content_digest=digest_of(run))
        repro = with_folders(_with_tool(repro, _names(beside.all_requirements)), beside.folders)
        return ChosenCommand(repro, beside.requirements, beside.notes)
    inside, top = start.relative_to(root).as_posix() if chosen.folder is None else ".", root.expanduser().absolute()
    folders = [top / inside, *(folder for folder in (top / inside).parents if folder.is_relative_to(top))]
    argv, about_tests = only_failed(command_repro(run).argv, chosen.from_junit, folders)
    day = last_commit(root.expanduser()) or chosen.good_day
    wanted = RequestedExtras(chosen.extras, chosen.groups, find=not beside.is_whole, program=_program(run))
    project = projects.read(root, wanted, day)
    own = tuple(map(unpinned, project.requirements)) if chosen.unpin else project.requirements
    neighbours = _neighbours(root, own, projects, beside)
    repro = evolve(
        command_repro(run, content_digest=f"{project.digest} {inside}").running(argv),
        dependencies=tuple(text for text in own if required_name(text) != project.name),
        project=str(project.tree),
        inside=inside,
        search_path=project.search_path,
    )
    repro = _with_tool(repro, _names(beside.all_requirements) | {project.name})
    notes = [f"project: {root}, a fresh copy for each run (--project changes it)", *about_tests]
    notes += [*project.notes, *beside.notes]
    notes += [f"{folder.name}: {folder.root}, as the project says (--with changes it)" for folder in neighbours]
    if beside.requirements:
        what = "all that the tests require (other files of the project are not read)" if beside.is_whole else "added"
        notes.append(f"--with: {', '.join(beside.requirements)}: {what}")
    repro = with_folders(repro, (*beside.folders, *neighbours))
    return ChosenCommand(repro, beside.requirements, tuple(notes), root=root)


def _neighbours(root: Path, requirements: Iterable[str], projects: Projects, beside: WithOption) -> list[Project]:
    """Return the projects that a project requires from folders of its repository, and those that they require so."""
    given = _names(beside.requirements) | {folder.name for folder in beside.folders}
    listed = {} if beside.is_whole else listed_folders(root.expanduser())
    found = {name: projects.read(path, OWN_REQUIREMENTS) for name, path in listed.items() if name not in given}
    pending = [(root.expanduser(), requirements), *((project.root, project.requirements) for project in found.values())]
    while pending:
        folder, required = pending.pop(0)
        names = [name for name in map(required_name, required) if name not in given and name not in found]
        sources = local_sources(folder) if names else {}
        for name in names:
            if name in sources and name not in found:
                found[name] = projects.read(sources[name], OWN_REQUIREMENTS)
                pending.append((sources[name], found[name].requirements))
    return list(found.values())


def with_folders(repro: Repro, folders: Sequence[Project]) -> Repro:
    """Return the repro with the user's own folders in place of releases of these projects."""
    if not folders:
        return repro
    own = {folder.name for folder in folders}
    paths: list[str] = []
    for folder in folders:
        built = [str(folder.built)] if folder.built is not None else []
        paths += built or [str(folder.tree), str(folder.tree / "src")]
    return evolve(
        repro,
        digest=f"{repro.digest}-{'-'.join(folder.digest[:8] for folder in folders)}",
        dependencies=(
            *(text for text in repro.dependencies if required_name(text) not in own),
            *(text for folder in folders for text in folder.requirements if required_name(text) not in own),
        ),
        search_path=tuple(dict.fromkeys((*paths, *repro.search_path))),
    )


def _program(run: str) -> str:
    """Return the project whose program or module a command runs, "" if it runs tests, a script or a file."""
    words = command_repro(run, content_digest="").argv
    begin = program_at(words)
    at = module_at(words, begin) if begin < len(words) and is_python(words[begin]) else begin
    if recognised(words) is not None or at is None or at >= len(words) or "/" in words[at]:
        return ""
    return project_of_program(words[at])


def _with_tool(repro: Repro, given: frozenset[str]) -> Repro:
    """Return the repro with pytest, and what its options are of, among the dependencies if its command runs pytest."""
    command = recognised(repro.argv)
    if command is None or command.tool != "pytest":
        return repro
    known = _names(repro.dependencies) | given
    needed = dict.fromkeys(("pytest", *filter(None, map(plugin_of_option, repro.argv[1:]))))
    return evolve(repro, dependencies=(*repro.dependencies, *(name for name in needed if name not in known)))


def _names(requirements: Iterable[str]) -> frozenset[str]:
    return frozenset(map(required_name, requirements))


def folder_of(text: str) -> tuple[str, str] | None:
    """Return the folder that a `--with` value names, with `@REVISION` if it has one, and the project name or "".

    It may be the URL of a repository, git+URL@REVISION. None for a requirement.
    """
    if (named := _NAMED_FOLDER.match(text)) is not None:
        return named.group("path").removeprefix("file://"), named.group("name")
    return (text, "") if text.startswith((".", "/", "~")) else None


def read_folder(text: str, projects: Projects, name: str = "") -> Project:
    """Read the project in a folder, or in a commit of its repository, with its requirements.

    Raises `UserMistake` and `BadRepository`.
    """
    path = Path(text).expanduser()
    folder, at, revision = text.rpartition("@")
    reference = reference_of(f"{name} @ {text}", "--with")
    if reference is None and path.is_dir():
        project = projects.read(path, OWN_REQUIREMENTS)
    elif reference is None and (not at or not folder):
        raise UserMistake(f"--with {text}: there is no such folder")
    else:
        if reference is None:
            repository = Repository.open(Path(folder))
        else:
            revision = reference.revision
            repository = clone_of(reference.url, projects.workspace.clones, revision)
        commit = repository.commit(revision)
        project = projects.read_commit(repository, commit, name)
        project = evolve(project, notes=(f"commit {commit.described}", *project.notes))
    if name and project.name and normalized_name(name) != normalized_name(project.name):
        raise UserMistake(
            f"--with {name} @ {text}: the project in that folder is {project.name}",
            hint="name the folder of the project itself, the one with its pyproject.toml",
        )
    return project
