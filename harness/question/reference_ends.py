"""Ends that are commits of a package's repository, such as `main` and a pull request: `NAME @ git+URL@REVISION`.

Each becomes a release: its wheel is built and goes to an index of its own in the cache, with the commit in the local
part of its version. The good end gets the newer of their two version numbers and the bad end the next one, because the
bad end is the newer release.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from attrs import evolve, frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import parse_wheel_filename

from harness.atomic import sha256_of
from harness.environment.own_pages import Link, with_version, write_page
from harness.errors import UserMistake
from harness.events import Note
from harness.model import normalized_name
from harness.question.project import Projects
from harness.repository.git import clone_of, without_credentials
from harness.run.locks import made_once
from harness.session import local_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.version import Version

    from harness.events import Reporter
    from harness.model.culprit import Commit
    from harness.question.request import Request
    from harness.repository.git import Repository
    from harness.session import Session
    from harness.settings import Settings

_EXAMPLE = "for example 'peft @ git+https://github.com/huggingface/peft@refs/pull/1/merge'"


@frozen
class Reference:
    """A commit as typed: the project `name`, the `url` of its repository, and a hash, a branch, a tag or a ref."""

    name: str
    url: str
    revision: str


def reference_of(text: str, option: str) -> Reference | None:
    """Read an end of this kind, None for any other. Raises `UserMistake` if it names no revision."""
    if re.search(r"@\s*git\+", text) is None:
        return None
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        requirement = None
    address = (requirement.url if requirement is not None else None) or ""
    url, _, revision = address.partition("#")[0].removeprefix("git+").rpartition("@")
    # Without a revision, what is left of the last @ is no repository: a scheme with a user.
    if requirement is None or not revision or "/" not in url.partition("://")[2]:
        raise UserMistake(f"{option} {without_credentials(text)} is not NAME @ git+URL@REVISION", hint=_EXAMPLE)
    return Reference(normalized_name(requirement.name), url, revision)


def at_references(request: Request, settings: Settings, reporter: Reporter) -> tuple[Request, Settings]:
    """Return the question between the builds of two commits, with the settings for their index; any other unchanged.

    Raises `UserMistake`, `BadRepository`, `NoNetwork` and `NoSpace`.
    """
    typed = {"--good": request.good, "--bad": request.bad}
    references = [reference_of(text, option) for option, text in typed.items() if text]
    good, bad = references if len(references) == len(typed) else (None, None)
    if not any(references):
        return request, settings
    if good is None or bad is None or good.name != bad.name:
        hint = f"both ends are such commits of one package; {_EXAMPLE}"
        raise UserMistake("a commit of a repository has no other kind of end beside it", hint=hint)
    if request.subject is not None and normalized_name(request.subject) != good.name:
        raise UserMistake(f"the ends are commits of {good.name}, not of {request.subject}")
    if request.policy.find_fix:
        raise UserMistake("--find-fix does not apply to two commits that are built", hint="leave it out")
    if settings.executor:
        raise UserMistake("two commits that are built do not apply with --on and --scheduler", hint="leave it out")
    folder = _built(good, bad, local_session(settings, reporter))
    versions = sorted(parse_wheel_filename(path.name)[1] for path in (folder / good.name).glob("*.whl"))
    older, newer = (version.public for version in versions)
    given = (*settings.index, f"{good.name}={folder.as_uri()}")
    return evolve(request, subject=good.name, good=older, bad=newer), evolve(settings, index=given)


def _built(good: Reference, bad: Reference, session: Session) -> Path:
    """Return the index with the wheels of two commits, which are built now unless they were before."""
    projects, built = Projects.of(session), session.workspace.clones / "wheels"
    commits: list[tuple[Repository, Commit]] = []
    for option, end in (("--good", good), ("--bad", bad)):
        repository = clone_of(end.url, session.workspace.clones, end.revision)
        commit = repository.commit(end.revision)
        commits.append((repository, commit))
        session.reporter.report(Note(f"{option}: {end.name} at {end.revision}, commit {commit.described}"))
    older, newer = (commit.sha for _, commit in commits)
    if older == newer:
        raise UserMistake(f"both ends are commit {older[:10]}; there is nothing between them")
    folder = built / f"{good.name}-{older[:12]}-{newer[:12]}-{session.interpreter.cache_tag}"

    def build(partial: Path) -> None:
        wheels = {}
        for repository, commit in commits:
            session.reporter.report(Note(f"building {good.name} at {commit.short}"))
            wheels[commit.sha] = projects.wheel_of(repository, commit, good.name, partial / commit.sha)
        _write_index(partial, good.name, wheels)

    return made_once(folder, build)


def _write_index(folder: Path, name: str, wheels: Mapping[str, Path]) -> None:
    """Write a page with these wheels, by commit, in the order of their new versions."""
    newer = max(parse_wheel_filename(path.name)[1] for path in wheels.values())
    links = []
    for (sha, path), number in zip(wheels.items(), (newer.public, _next(newer)), strict=True):
        wheel = with_version(path, f"{number}+g{sha[:10]}", folder / name)
        links.append(Link(wheel.name, f"{quote(wheel.name)}#sha256={sha256_of(wheel)}").tag())
    write_page(folder, name, links)


def _next(version: Version) -> str:
    """The next version number after one: 5.0.dev1 after 5.0.dev0, 5.0.post1 after 5.0."""
    if version.dev is not None:
        return f"{version.public.rpartition('.dev')[0]}.dev{version.dev + 1}"
    return f"{version.public.partition('.post')[0]}.post{(version.post or 0) + 1}"
