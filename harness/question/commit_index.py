"""An index with a folder for each commit (`https://host/{commit}`), as vLLM has: the builds between two commits.

Git lists the commits. The links to their builds become the page of an index in the cache, with the day of each commit,
so that the question is about releases like any other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from harness.environment import Workspace
from harness.environment.index import at_once
from harness.environment.own_pages import Link, links_of, written
from harness.environment.pages import read_page
from harness.errors import BadRepository, UserMistake
from harness.events import Note
from harness.model import normalized_name, parsed_version
from harness.model.text import counted
from harness.question.ends import TODAY, moment_in
from harness.repository.git import Repository, clone_of, is_url
from harness.repository.releases import tags_of
from harness.settings import COMMIT, Settings, repository_of_builds

if TYPE_CHECKING:
    from harness.events import Reporter
    from harness.model.culprit import Commit
    from harness.question.request import Request

_MOST_COMMITS = 2000


def at_commits(request: Request, settings: Settings, reporter: Reporter) -> tuple[Request, Settings]:
    """Return the question between the builds of two commits, with the settings for their index; any other unchanged.

    Raises `UserMistake`, `BadRepository`, `NoNetwork` and `IndexFault`.
    """
    indexes = dict(settings.own_indexes)
    for name, url in indexes.items():
        if COMMIT in url:
            if name != normalized_name(request.subject or ""):
                raise UserMistake(f"an index with {COMMIT} is for the package in question, not for {name}")
            request, indexes[name] = _of_commits(request, name, url, reporter)
    return request, evolve(settings, index=tuple(f"{name}={url}" for name, url in indexes.items()))


def _of_commits(request: Request, name: str, url: str, reporter: Reporter) -> tuple[Request, str]:
    """The question between the builds of two commits, and the address of their index."""
    git = request.policy.git if request.policy.git not in ("", "auto") else repository_of_builds(name)
    if not git:
        raise UserMistake(f"--index {url} needs the repository of the commits", hint="--git takes its URL or a clone")
    workspace = Workspace.opened()
    repository = clone_of(git, workspace.clones) if is_url(git) else Repository.open(Path(git))
    good, bad = (_commit(repository, text, name) for text in (request.good, request.bad or "HEAD"))
    older, newer = (bad, good) if request.policy.find_fix else (good, bad)
    if older.sha == newer.sha or not repository.is_ancestor(older.sha, newer.sha):
        raise UserMistake(f"{older.described} is not before {newer.described}", hint="swap --good and --bad")
    chain = (older.sha, *repository.first_parents(older.sha, newer.sha))
    if len(chain) > _MOST_COMMITS:
        raise UserMistake(f"there are {len(chain)} commits between the ends", hint="choose ends that are closer")
    pages = at_once(partial(_links_of_commit, url, name), chain)
    builds = {sha: links for sha, links in zip(chain, pages, strict=True) if links}
    reporter.report(Note(f"{counted(len(builds), 'build')} of {counted(len(chain), 'commit')} of {name}"))
    versions = [version for links in builds.values() for link in links[:1] if (version := link.version) is not None]
    if len(builds) < 2 or versions[0] == versions[-1]:
        has = f"{url} has builds of {len(builds)} of the {counted(len(chain), 'commit')} between the ends"
        raise UserMistake(has if len(builds) < 2 else f"all these builds of {name} are called {versions[0]}")
    dates = repository.dates(builds)
    tags = (link.tag(dates[sha]) for sha, links in builds.items() for link in links)
    address = written(workspace, f"{url} {chain[0]} {chain[-1]}", name, tags)
    first, last = str(versions[0]), str(versions[-1])
    first, last = (last, first) if request.policy.find_fix else (first, last)
    return evolve(request, good=first, bad=last), address


def _commit(repository: Repository, text: str | None, name: str) -> Commit:
    """The commit that an end names: a day, a release with a tag, or a revision."""
    if text is None:
        raise UserMistake(f"an index with {COMMIT} needs a good end", hint="--good takes a commit, a day or a release")
    if text != TODAY and (moment := moment_in(text, datetime.now(UTC))) is not None:
        last = repository.last_before(moment)
        if last is None:
            raise BadRepository(f"the repository of {name} has no commit up to {text}")
        return last
    tags = tags_of(text, repository.tags(), name) if parsed_version(text) is not None else ()
    return repository.commit(tags[0] if tags else text.replace(TODAY, "HEAD"))


def _links_of_commit(url: str, name: str, sha: str) -> tuple[Link, ...]:
    """The links to the builds of a commit, none if the index has no folder of it."""
    address = f"{url.replace(COMMIT, sha).rstrip('/')}/"
    has_any = any(release.wheels for release in read_page(address, name).releases)
    return tuple(link for link in links_of(f"{address}{name}/") if link.version is not None) if has_any else ()
