"""A user's project: a fresh copy of the files tracked by git, built once as a wheel, with its own requirements."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import zipfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.atomic import write_whole
from harness.environment.manifest import Ledger, read_states
from harness.environment.source_builds import SourceBuilds
from harness.errors import UserMistake
from harness.events import SILENT, Reporter
from harness.model import normalized_name, parsed_version
from harness.model.requirements import required_name
from harness.model.text import counted, listed
from harness.question.lockfiles import environment_of
from harness.question.project_requirements import OWN_REQUIREMENTS, RequestedExtras, requirements_of
from harness.repository.declared import FILES, declared_in, project_folder, read_toml
from harness.repository.git import archive_of, git_output
from harness.run.launch import remove_tree
from harness.run.locks import acquire, claimed_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.environment import Index, Interpreter, Uv, Workspace
    from harness.model.culprit import Commit
    from harness.repository.git import Repository
    from harness.session import Session


_PROGRAM = re.compile(r"\w[\w.+ -]*")
# A copy has no git history from which a build could take its version.
_VERSION_VARIABLES = ("SETUPTOOLS_SCM_PRETEND_VERSION", "PDM_BUILD_SCM_VERSION", "POETRY_DYNAMIC_VERSIONING_BYPASS")
_IN_A_TAG = re.compile(r"\d+(\.\d+)*[\w.]*$")
_NOT_COPIED = {
    *(".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", "node_modules", "__pycache__"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs", "results", ".harness"),
}
_TEST_FOLDERS = ("tests", "test")
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1024  # bytes
# Projects that publish their wheels under another name.
_WITH_WHEELS = {"psycopg2": "psycopg2-binary"}


@frozen
class Project:
    """A project as used by a probe.

    Each run gets a copy of `tree`; `built` is the unpacked wheel, None if it could not be built; `notes` are sentences
    about the choices made. `requirements` are its own, with the chosen extras and groups.
    """

    root: Path
    digest: str
    tree: Path
    built: Path | None
    name: str = ""
    requirements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def search_path(self) -> tuple[str, ...]:
        """Where its modules are found: the built ones first, then the copy itself."""
        built = [str(self.built)] if self.built is not None else []
        return (*built, ".", *(["src"] if (self.tree / "src").is_dir() else []))


def find_project(start: Path) -> Path | None:
    """Return the nearest project folder from `start` upwards, or None.

    The search ends at the root of a git repository and at the home folder. A folder with tests but without any file of
    a project is one too, and so is a repository with requirements below its root, as those of its documentation.
    """
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in (*FILES, "Pipfile")) or any(folder.glob("requirements*.txt")):
            return folder
        if (folder / ".git").exists():
            is_project = _has_tests(folder) or _has_tests(start) or any(folder.glob("*/requirements*.txt"))
            return folder if is_project else None
        if folder == Path.home():
            break
    folder = start.parent if start.name in _TEST_FOLDERS else start
    return folder if folder not in (Path.home(), Path(folder.anchor)) and _has_tests(folder) else None


def _has_tests(folder: Path) -> bool:
    if any((folder / name).is_file() for name in ("conftest.py", "pytest.ini", "tox.ini")):
        return True
    places = [folder, *(folder / name for name in _TEST_FOLDERS)]
    return any(next(place.glob(pattern), None) for place in places for pattern in ("test_*.py", "*_test.py"))


@frozen
class Projects:
    """Reads projects and builds them, each content once.

    With an `index`, test requirements without a file for this machine are left out. A build that takes minutes is
    reported to `reporter`.
    """

    workspace: Workspace
    uv: Uv
    interpreter: Interpreter
    index: Index | None = None
    reporter: Reporter = SILENT

    @classmethod
    def of(cls, session: Session) -> Projects:
        """What reads the projects of a session."""
        uv = session.local.builder.uv
        return cls(session.workspace, uv, session.interpreter, session.index, session.reporter)

    def read(self, root: Path, wanted: RequestedExtras = RequestedExtras(), day: str = "") -> Project:
        """Copy and build a project and read the requirements that are wanted.

        It is built with the packages of a day (ISO 8601), "" for that of its last commit. Raises `UserMistake` if the
        folder is missing or lacks what was named.
        """
        root = root.expanduser().absolute()
        if not root.is_dir():
            raise UserMistake(f"{root} is not a folder", hint="--project takes a project's folder")
        files = sorted(files_of(root))
        if not files:
            raise UserMistake(f"{root} has no files tracked by git", hint="git add its files first")
        digest = content_digest(root, files)
        home = self.workspace.projects / digest
        with acquire(self.workspace.locks / f"project-{digest}.lock"), self._unchanged(home):
            if not (home / "tree").is_dir():
                home.mkdir(parents=True, exist_ok=True)
                with claimed_folder(self.workspace.building, "project-") as partial:
                    copy_files(root, files, partial)
                    partial.rename(home / "tree")
            built, words = self._unpacked(home, day or last_commit(root), version_of_tag(root))
        required = requirements_of(home / "tree", built, wanted, environment_of(self.interpreter.version))
        notes = required.notes
        if words:
            notes = (*notes, f"could not be built, so its modules are imported from the folder: {words}")
        if untracked := _untracked(root):
            what = f"not in the copy, because git does not track {'it' if len(untracked) == 1 else 'them'}"
            notes = (
                *notes,
                f"{listed(untracked)}: {what}; git add copies {'it' if len(untracked) == 1 else 'them'} too",
            )
        if pointers := _lfs_pointers(home / "tree", files):
            what = f"Git LFS pointers, not the files themselves: {listed(pointers)}"
            notes = (*notes, f"{counted(len(pointers), 'file')} are {what}; git lfs pull gets them")
        missing = [text for text in required.for_tests if not self._can_be_had(text)]
        if missing:
            notes = (
                *notes,
                f"not installed for the tests, because there is no file for this machine: {listed(missing)}",
            )
        available = (text for text in required.requirements if text not in missing)
        requirements = (
            *available,
            *(_WITH_WHEELS[name] for name in map(required_name, missing) if name in _WITH_WHEELS),
        )
        return Project(root, digest, home / "tree", built, required.name, requirements, notes)

    @contextlib.contextmanager
    def _unchanged(self, home: Path) -> Iterator[None]:
        """Remove a copy that was changed since it was made, and note at the end of the context what is in it.

        Without a sandbox a run can write there.
        """
        record, ledger = self.workspace.records / f"project-{home.name}.json", Ledger.of(self.workspace)
        if home.is_dir() and ledger.compare(home, read_states(record)) != ([], []):
            remove_tree(home)
        yield
        write_whole(record, json.dumps(ledger.below(home)))

    def read_commit(self, repository: Repository, commit: Commit, name: str = "") -> Project:
        """Read a project as it was in a commit of its repository, with its own requirements; `name` may be "".

        Raises `UserMistake` and `BadRepository`.
        """
        files = archive_of(repository, commit, self.workspace.clones / "commits")
        return self.read(files / project_folder(repository, commit.sha, name), OWN_REQUIREMENTS, commit.date)

    def _unpacked(self, home: Path, day: str, version: str) -> tuple[Path | None, str]:
        """Return the folder of the unpacked wheel of `home / "tree"`, or None and the reason ("" if not installable).

        `version` is for a project that takes its version from git. The build uses the packages of `day` (ISO 8601),
        because build tools may have changed since, and today's if that fails.
        """
        site, note = home / f"built-{self.interpreter.cache_tag}", home / f"not-built-{self.interpreter.cache_tag}.txt"
        if site.is_dir():
            return site, ""
        if note.is_file():
            return None, note.read_text(encoding="utf-8")
        if not _is_installable(home / "tree"):
            return None, ""
        with claimed_folder(self.workspace.building, "build-") as folder:
            wheel = self._build(home / "tree", folder, day, version)
            if isinstance(wheel, Path):
                _unpack(wheel, folder / "site")
                (folder / "site").rename(site)
                return site, ""
        if "timed out" not in wheel:  # the machine may have been busy
            note.write_text(wheel, encoding="utf-8")
        return None, wheel

    def _build(self, tree: Path, folder: Path, day: str, version: str) -> Path | str:
        """Build the wheel of a project's files below an empty folder; returns the reason if that fails."""
        source = folder / "source"
        shutil.copytree(tree, source, symlinks=True)
        make_repository(source)
        variables = {**self.uv.extra_environment, **dict.fromkeys(_VERSION_VARIABLES, version)}
        uv = evolve(self.uv, extra_environment=variables)
        return SourceBuilds(uv, self.interpreter, self.workspace, self.reporter).build_wheel(
            source, folder / "out", day
        )

    def wheel_of(self, repository: Repository, commit: Commit, name: str, target: Path) -> Path:
        """Build the wheel of a project as it was in a commit, into a new folder.

        Raises `UserMistake` and `BadRepository`.
        """
        files = archive_of(repository, commit, self.workspace.clones / "commits")
        tree = files / project_folder(repository, commit.sha, name)
        with claimed_folder(self.workspace.building, "build-") as folder:
            wheel = self._build(tree, folder, commit.date, version_of_tag(repository.folder, commit.sha))
            if isinstance(wheel, str):
                raise UserMistake(f"{name} can't be built at commit {commit.short}: {wheel}")
            if normalized_name(wheel.name.partition("-")[0]) != normalized_name(name):
                raise UserMistake(f"the project in that repository is {wheel.name.partition('-')[0]}, not {name}")
            target.mkdir()
            return Path(shutil.move(wheel, target))

    def _can_be_had(self, text: str) -> bool:
        """Whether the index has a usable release, or no compiled wheel at all: such sources rarely need a compiler."""
        if self.index is None:
            return True
        releases = self.index.known_releases(required_name(text))
        compiled = any(not wheel.endswith("-any.whl") for release in releases for wheel in release.wheels)
        fitting = (release.left_out_because(self.interpreter.target) is None for release in releases)
        return any(fitting) if compiled else bool(releases)


def _is_installable(tree: Path) -> bool:
    is_named = (tree / "setup.py").is_file() or declared_in(tree).name != ""
    return is_named or "build-system" in read_toml(tree / "pyproject.toml")


def _unpack(wheel: Path, site: Path) -> None:
    """Unpack a wheel like an installer; console scripts become small programs in `bin`."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    places = {"purelib": site, "platlib": site, "scripts": site / "bin"}
    for data in list(site.glob("*.data/*")):
        if data.name in places:
            shutil.copytree(data, places[data.name], dirs_exist_ok=True)
    for info in site.glob("*.dist-info"):
        for point in metadata.Distribution.at(info).entry_points.select(group="console_scripts"):
            if not _PROGRAM.fullmatch(point.name):
                raise UserMistake(
                    f"the project's wheel has an entry point named {point.name!r}, which is not a valid program name",
                    hint="it would be written outside its folder",
                )
            (site / "bin").mkdir(exist_ok=True)
            program = (
                "#!/usr/bin/env python\nimport sys\n"
                "from importlib import import_module\nfrom operator import attrgetter\n"
                f"sys.exit(attrgetter({point.attr!r})(import_module({point.module!r}))())\n"
            )
            (site / "bin" / point.name).write_text(program, encoding="utf-8")
    for script in (site / "bin").glob("*"):
        script.chmod(0o755)


def files_of(root: Path) -> Iterator[Path]:
    """Yield files relative to the folder: those tracked by git, or without git all except environments and caches."""
    listed = git_output(root, "ls-files", "-z", "--cached", "--recurse-submodules")
    if listed:
        yield from (Path(name) for name in listed.split("\0") if name and _is_there(root / name))
        return
    yield from files_below(root)


def files_below(root: Path) -> Iterator[Path]:
    """Yield all files relative to the folder except environments, caches and results."""
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not _is_made(Path(parent, name))]
        # In a worktree and in a submodule `.git` is a file that names the repository.
        yield from (Path(parent, name).relative_to(root) for name in names if name != ".git")


def _untracked(root: Path) -> list[str]:
    """Return the files and folders that git neither tracks nor ignores, without environments and caches.

    Where git tracks nothing yet, all files are copied, so none is left out.
    """
    if not git_output(root, "ls-files", "--cached"):
        return []
    names = git_output(root, "ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
    return sorted(name for name in names.split("\0") if name and not _is_made(root / name))


def _is_made(path: Path) -> bool:
    """Whether a folder is an environment, a cache or results: nothing that somebody wrote."""
    is_results = (path / "observations").is_dir() and (path / "locks").is_dir()
    is_named_so = path.name in _NOT_COPIED or path.suffix == ".egg-info"
    return is_named_so or is_results or (path / "pyvenv.cfg").exists()


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _lfs_pointers(tree: Path, files: Iterable[Path]) -> list[str]:
    """Return the files that are pointers of Git LFS: a few lines in place of the content."""
    small = (
        file for file in files if not (tree / file).is_symlink() and (tree / file).stat().st_size < _LONGEST_POINTER
    )
    return [str(file) for file in small if (tree / file).read_bytes().startswith(_LFS_POINTER)]


def last_commit(root: Path) -> str:
    """Return the time of the last commit (ISO 8601), "" if there is none."""
    return git_output(root, "log", "-1", "--format=%cI")


def version_of_tag(root: Path, commit: str = "HEAD") -> str:
    """Return the version of the nearest tag with the local label "copy": "1.2+copy"; "0+copy" if there is none."""
    tag = git_output(root, "describe", "--tags", "--abbrev=0", commit)
    match = _IN_A_TAG.search(tag)
    version = parsed_version(match[0]) if match else None
    return f"{version.public}+copy" if version else "0+copy"


def make_repository(folder: Path) -> None:
    """Make a folder a git repository with all its files, because some builds only use tracked files."""
    # Without the user's configuration: it may name filters, which the copy's .gitattributes would start.
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": str(folder / ".git")}
    own |= {f"GIT_{who}_{what}": "copy" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "--template="], ["add", "--all", "--force"], ["commit", "--no-verify", "-m", "A copy"]):
        git_output(folder, *words, variables=own)


def content_digest(root: Path, files: Iterable[Path]) -> str:
    """Return the digest of all files, so that a changed test is a new question."""
    digest = hashlib.sha256()
    for file in files:
        path = root / file
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        mode = b"" if path.is_symlink() or not path.stat().st_mode & 0o100 else b"x"
        digest.update(b"\0".join([os.fsencode(file), mode, hashlib.sha256(content).digest()]))
    return digest.hexdigest()[:20]


def copy_files(root: Path, files: Iterable[Path], target: Path) -> None:
    """Copy files of a folder to another one."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target / file, follow_symlinks=False)
