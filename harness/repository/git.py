"""Runs git, and reads a repository with it: revisions, trees, files, history.

`run_git` is the only place that starts git. It passes on no `GIT_*` variable, which a hook sets to the repository that
runs it, and runs no program that a checkout's configuration names: hooks, the file system monitor, external diffs, text
converters, filters. `Repository` only reads.

It also knows the web pages of repositories, commits and pull requests.
"""

from __future__ import annotations

import email.parser
import hashlib
import io
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath

from attrs import evolve, frozen

from harness.errors import BadRepository, NoNetwork
from harness.model.culprit import Commit
from harness.run.locks import UNFINISHED, acquire, claimed_folder, made_once

_SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"),
    *("-c", "protocol.ext.allow=never", "-c", "log.showSignature=false", "-c", "core.pager=cat"),
)
# Git would fetch missing objects of a partial clone. GIT_NO_LAZY_FETCH needs git 2.44, so also allow no protocol.
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
_FIELDS = "%H%x00%an%x00%aI%x00%P%x00%s%x00%b"
_PULL_REQUEST = re.compile(r"\(#(\d+)\)\s*$|^Merge pull request #(\d+)\b|\(!(\d+)\)\s*$")
_TIMEOUT_S = 300.0
_COMPLETE = "the clone is partial: git fetch --refetch --filter=blob:limit=1t, or clone it again in full"
_CLONE_S = 1800.0
_FETCHED = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")  # not the refs of pull requests
_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
_CREDENTIALS = re.compile(r"://(?:(?<=ssh://)(?P<user>[^:/@\s]+))?[^/\s]*@")
_REGULAR, _EXECUTABLE = "100644", "100755"


def run_git(
    folder: Path,
    *arguments: str,
    given: bytes = b"",
    limit_s: float = _TIMEOUT_S,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder with the input `given`; `variables` replace the safe ones, such as those without network.

    Raises `BadRepository` if git is not installed, or does not end within `limit_s` seconds.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", *_SAFE, *arguments],
            cwd=folder,
            env={**inherited, **_ENVIRONMENT, **(variables or {})},
            input=given,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise BadRepository("git is not installed", hint="install git to search commits") from error
    except subprocess.TimeoutExpired as error:
        raise BadRepository(f"git {arguments[0]} in {folder} timed out after {limit_s:g} s") from error


def git_output(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """Return what git prints, without white space at its ends; "" if it fails, or is not installed."""
    try:
        ended = run_git(folder, *arguments, variables=variables)
    except (BadRepository, OSError):
        return ""
    return ended.stdout.decode("utf-8", "surrogateescape").strip() if ended.returncode == 0 else ""


@frozen
class TreeEntry:
    """One file of a commit: the hash of its content, and git's mode (a file, a program, a link, a submodule)."""

    blob: str
    mode: str = _REGULAR

    @property
    def is_regular(self) -> bool:
        """Whether it is a file, not a link or a submodule."""
        return self.mode in (_REGULAR, _EXECUTABLE)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link; its content is the target."""
        return self.mode == "120000"


@frozen
class Repository:
    """A clone in `folder`, bare or with a work tree. Methods raise `BadRepository` if git fails.

    `inside` is the folder in the clone that the user named, with slashes ("" for all of it). `url` is that of which the
    clone is a copy in the cache, "" for a clone of the user.
    """

    folder: Path
    inside: str = ""
    url: str = ""

    def __str__(self) -> str:
        return self.url or str(self.folder)

    @classmethod
    def open(cls, folder: Path) -> Repository:
        """Open the repository of a folder. Raises `BadRepository` if git finds none there."""
        place = folder.expanduser().absolute()
        if not place.is_dir():
            raise BadRepository(f"no such folder: {folder}", hint="--git takes a clone or the URL of a repository")
        repository = cls(place)
        # Some git commands take paths relative to the working directory, so run all of them at the top.
        inside = repository.call("rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").strip("\n")
        if not inside:
            return repository
        top = repository.call("rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").strip("\n")
        return cls(Path(top), inside.rstrip("/"))

    def call(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run a git command that only reads, with the input `given`; return its output."""
        ended = run_git(self.folder, *arguments, given=given)
        if ended.returncode != 0:
            words = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            raise BadRepository(
                f"git {arguments[0]} failed in {self}: {words[-1] if words else 'no reason given'}",
                hint=self.what_is_missing(" ".join(words)),
            )
        return ended.stdout

    def lines(self, *arguments: str) -> list[str]:
        """Run a git command; return the lines of its output, without empty ones."""
        return [line for line in self.call(*arguments).decode("utf-8", "replace").splitlines() if line]

    def commit(self, revision: str) -> Commit:
        """Return the commit that a revision names: a hash, a tag, or a branch, also one that only `origin` has.

        Raises `BadRepository` if there is none.
        """
        if revision.startswith("-") or not revision.strip():
            raise BadRepository(f"{revision!r} is not a revision")
        for name in (revision, f"refs/remotes/origin/{revision}"):
            words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if output := git_output(self.folder, *words):
                return self.describe(output.splitlines()[-1])
        hint = self.what_is_missing() or self._heads()
        raise BadRepository(f"{self} has no commit {revision!r}", hint=hint)

    def describe(self, sha: str) -> Commit:
        """Return a commit with its author, date, parents, subject, and the pull request that its message names."""
        text = self.call("show", "--no-patch", "--no-notes", f"--format={_FIELDS}", sha).decode("utf-8", "replace")
        name, author, date, parents, subject, body = text.rstrip("\n").split("\0", 5)
        return Commit(
            sha=name,
            author=author,
            date=date,
            subject=subject,
            parents=tuple(parents.split()),
            pull_request=_pull_request(subject, body),
        )

    def tags(self) -> dict[str, str]:
        """Map each tag to the hash of its commit; tags of other objects are left out."""
        lines = self.lines("for-each-ref", "--format=%(objectname) %(refname:strip=2)", "refs/tags")
        tagged = [line.split(" ", 1) for line in lines]
        resolved = self._checked(f"{sha}^{{commit}}" for sha, _ in tagged)
        return {name: words[0] for (_, name), words in zip(tagged, resolved, strict=True) if words[1:2] == ["commit"]}

    def tree(self, sha: str) -> dict[str, TreeEntry]:
        """Map each path in a commit to its file."""
        files = {}
        for line in self.call("ls-tree", "-r", "-z", "--full-tree", sha).decode("utf-8", "surrogateescape").split("\0"):
            if line:
                about, _, path = line.partition("\t")
                mode, _, blob = about.split(" ")[:3]
                files[path] = TreeEntry(blob, mode)
        return files

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Map these hashes to the contents of the files. Raises `BadRepository` if a partial clone lacks one."""
        wanted = dict.fromkeys(blobs)
        objects = "".join(f"{blob}\n" for blob in wanted).encode()
        answer = io.BytesIO(self.call("cat-file", "--batch", given=objects) if objects else b"")
        contents: dict[str, bytes] = {}
        for blob in wanted:
            *_, size = answer.readline().split()
            if size == b"missing":
                raise BadRepository(f"{self} lacks the file contents {blob[:12]}", hint=_COMPLETE)
            contents[blob] = answer.read(int(size))
            answer.readline()
        return contents

    def file(self, sha: str, path: str) -> bytes | None:
        """Return the content of a file of a commit, None if it has none with this path (with slashes, from the top)."""
        words = self._checked([f"{sha}:{path}"])[0] if "\n" not in path else []
        return self.contents(words[:1])[words[0]] if words[1:2] == ["blob"] else None

    def last_before(self, moment: datetime) -> Commit | None:
        """Return the last commit of the checked-out branch before a moment, None if its history is younger."""
        found = self.lines("rev-list", "-1", "--first-parent", f"--before={moment.isoformat()}", "HEAD", "--")
        return self.describe(found[0]) if found else None

    def changing(self, *paths: str) -> tuple[str, ...]:
        """The commits of the checked-out branch that changed one of these files, the newest first."""
        only = (f":(top,literal){path}" for path in paths)
        return tuple(self.lines("rev-list", "--first-parent", "HEAD", "--", *only))

    def existing(self, blobs: Iterable[str]) -> frozenset[str]:
        """Return those of these hashes that the repository has, in any commit."""
        return frozenset(words[0] for words in self._checked(dict.fromkeys(blobs)) if words[-1] != "missing")

    def full_hash(self, commit: str) -> str:
        """The whole hash of a commit, "" if the repository does not have it."""
        ((name, *words),) = self._checked([commit])
        return name if words[0] == "commit" else ""

    def _checked(self, names: Iterable[str]) -> list[list[str]]:
        """What git says of each of these objects: its hash, kind and size, or its name and "missing"."""
        objects = "".join(f"{name}\n" for name in names).encode()
        answer = self.call("cat-file", "--batch-check", given=objects) if objects else b""
        return [line.split(" ") for line in answer.decode().splitlines()]

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether one commit is in the history of another. Raises `BadRepository` if they have no common history."""
        return self.merge_base(older, newer) == older

    def merge_base(self, commit: str, other: str) -> str:
        """Return the best common ancestor of two commits. Raises `BadRepository` if there is none."""
        output = git_output(self.folder, "merge-base", commit, other)
        if not output:
            hint = self.what_is_missing() or "are they from the same project?"
            raise BadRepository(f"{commit[:12]} and {other[:12]} have no common history", hint=hint)
        return output.splitlines()[0]

    def first_parents(self, older: str, newer: str, *paths: str) -> tuple[str, ...]:
        """The commits after `older` up to `newer`, oldest first, along first parents (no merged branches).

        With `paths`, only those that changed one of these files of the repository.
        """
        only = (f":(top,literal){path}" for path in paths)
        return tuple(self.lines("rev-list", "--first-parent", "--reverse", newer, f"^{older}", "--", *only))

    def dates(self, shas: Iterable[str]) -> dict[str, datetime]:
        """Map each of these commits to the committer's date."""
        wanted = tuple(dict.fromkeys(shas))
        if not wanted:
            return {}
        pairs = (line.split(" ") for line in self.lines("log", "--no-walk=unsorted", "--format=%H %cI", *wanted))
        return {sha: datetime.fromisoformat(date) for sha, date in pairs}

    def _heads(self) -> str:
        """A hint for a revision that does not exist: the repository's branches."""
        heads = self.lines("for-each-ref", "--format=%(refname:strip=2)", "refs/heads")
        if not heads:
            return "it has no branches; is it empty?"
        fetch = "" if self.url else "; run git fetch for new commits and tags"
        return f"its branches: {', '.join(heads[:5])}{fetch}"

    @property
    def is_shallow(self) -> bool:
        """Whether it lacks older commits."""
        return git_output(self.folder, "rev-parse", "--is-shallow-repository") == "true"

    def what_is_missing(self, words: str = "") -> str:
        """A hint why the clone lacks something, "" if unknown: a shallow clone lacks history, a partial one contents.

        `words` are git's error message.
        """
        if "dubious ownership" in words:
            return f"git does not trust folders of other users: git config --global --add safe.directory {self.folder}"
        if self.is_shallow:
            return "the clone is shallow and lacks older commits: git fetch --unshallow --tags"
        if git_output(self.folder, "config", "--get-regexp", r"^remote\..*\.promisor$|^extensions\.partialclone$"):
            return _COMPLETE
        if any(word in words for word in ("missing", "bad object", "unable to read", "unable to find")):
            return "the clone is damaged; git fsck says how"
        return ""


def is_url(text: str) -> bool:
    """Whether a value of `--git` is a URL, not a folder."""
    return text.startswith(_SCHEMES) or (text.startswith("git@") and ":" in text)


def without_credentials(url: str) -> str:
    """Return a URL without user name and password; for ssh the user name stays, because it is part of the address."""
    return _CREDENTIALS.sub(lambda match: f"://{match['user']}@" if match["user"] else "://", url)


def clone_of(url: str, cache: Path, ref: str = "") -> Repository:
    """Return a bare clone of a repository in `cache`, updated on each call if the network allows.

    It has the branches and tags, and `ref` if that is another ref, such as refs/pull/1/head of a pull request.
    Credentials in the URL are used to fetch and are not stored. Raises `NoNetwork` if the URL can't be cloned and was
    not cloned before, `BadRepository` if git is not installed.
    """
    address = without_credentials(url)
    folder = cache / hashlib.sha256(address.encode()).hexdigest()[:20]
    cache.mkdir(parents=True, exist_ok=True)
    with acquire(cache / f"{folder.name}.lock"):
        if folder.is_dir():
            # Without network, the clone still has the commits fetched before.
            _fetch(folder, url, "fetch", "--quiet", "--force", "--prune", "origin", *_FETCHED)
            return _with_ref(folder, url, ref)
        with claimed_folder(cache, UNFINISHED) as partial:
            words = _fetch(partial, url, "clone", "--quiet", "--bare", "--template=", address, ".")
            if words:
                raise NoNetwork(
                    f"can't clone {address}: {words}", hint="check the URL, or pass your own clone to --git"
                )
            partial.rename(folder)
        return _with_ref(folder, url, ref)


def _with_ref(folder: Path, url: str, ref: str) -> Repository:
    """The clone with a ref that is neither a branch nor a tag, as it is now."""
    if ref.startswith("refs/"):
        _fetch(folder, url, "fetch", "--quiet", "--force", "origin", f"+{ref}:{ref}")
    return evolve(Repository.open(folder), url=without_credentials(url))


def _fetch(folder: Path, url: str, *arguments: str) -> str:
    """Run git with network and the credentials in `url`; return its error message, "" if it succeeded.

    Raises `BadRepository` if git is not installed.
    """
    address = without_credentials(url)
    variables = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    if address != url:  # not an argument, which any user of this machine can read, nor the clone's configuration
        variables |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{url}.insteadOf",
            "GIT_CONFIG_VALUE_0": address,
        }
    try:
        ended = run_git(folder, *arguments, limit_s=_CLONE_S, variables=variables)
    except BadRepository as error:
        if "timed out" in error.message:
            return error.message
        raise
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if ended.returncode == 0 else without_credentials(lines[-1] if lines else "git gave no reason")


def archive_of(repository: Repository, commit: Commit, cache: Path) -> Path:
    """Return a folder with the files of a commit as they are stored, cached by its hash.

    Filters and export attributes do not apply; submodules are empty folders. Raises `BadRepository` if a file would be
    written outside the folder, or a link points there.
    """
    return made_once(cache / commit.sha, lambda folder: _write_files(repository, commit, folder))


def _write_files(repository: Repository, commit: Commit, folder: Path) -> None:
    tree = repository.tree(commit.sha)
    contents = repository.contents(entry.blob for entry in tree.values() if entry.is_regular or entry.is_link)
    top = folder.resolve()
    # Links come last, so that no file is written through one.
    for path, entry in sorted(tree.items(), key=lambda item: item[1].is_link):
        place = folder / path
        if not _stays_inside(path):
            raise BadRepository(f"commit {commit.short} has a file outside its folder: {path!r}")
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_link:
            place.symlink_to(os.fsdecode(contents[entry.blob]))
        elif entry.is_regular:
            place.write_bytes(contents[entry.blob])
            place.chmod(0o755 if entry.mode == _EXECUTABLE else 0o644)
        else:
            place.mkdir(exist_ok=True)
    for path in (path for path, entry in tree.items() if entry.is_link):
        if not (folder / path).resolve().is_relative_to(top):
            raise BadRepository(f"commit {commit.short} has a link that points outside its folder: {path!r}")


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and not any(part == ".." or part.lower() == ".git" for part in parts)


def _pull_request(subject: str, body: str) -> int | None:
    matches = filter(None, (_PULL_REQUEST.search(text.strip()) for text in (subject, *body.splitlines())))
    return next((int(match[match.lastindex or 0]) for match in matches), None)


# What follows a repository's address for a pull request and for a commit.
_PAGES = {
    "github.com": ("/pull/", "/commit/"),
    "gitlab.com": ("/-/merge_requests/", "/-/commit/"),
    "codeberg.org": ("/pulls/", "/commit/"),
    "bitbucket.org": ("/pull-requests/", "/commits/"),
}
_REPOSITORY = re.compile(
    rf"^https?://(?:www\.)?({'|'.join(map(re.escape, _PAGES))})/([\w.-]+)/([\w.-]+?)"
    r"(?:\.git)?(?:/(?:-/)?tree/[^/]+|/)?$"
)
# Labels of a project's source (packaging specifications, "Well-known project URLs").
_SOURCE_LABELS = ("source", "repository", "sourcecode", "github", "code", "homepage")


def repository_url(metadata: str) -> str | None:
    """Return the repository's URL in the text of a METADATA file, or None if it has none on a known host."""
    headers = email.parser.HeaderParser().parsestr(metadata)
    urls = {}
    for value in headers.get_all("Project-URL", []):
        label, _, url = str(value).partition(",")
        urls[re.sub(r"[\W_]", "", label.lower())] = url.strip()
    urls.setdefault("homepage", str(headers.get("Home-page", "")).strip())
    return next(filter(None, (_known_address(urls.get(label, "")) for label in _SOURCE_LABELS)), None)


def _known_address(url: str) -> str:
    """Return the web page of a repository from its clone URL, "" if the host is not known."""
    match = _REPOSITORY.match(url.removeprefix("git+"))
    return f"https://{match[1]}/{match[2]}/{match[3]}" if match else ""


def pull_request_url(repository: str, number: int | None) -> str:
    """The URL of a pull request, "" if the repository or the number is not known."""
    return f"{repository}{_pages(repository)[0]}{number}" if repository and number is not None else ""


def commit_url(repository: str, sha: str) -> str:
    """The URL of a commit, "" if the repository is not known."""
    return f"{repository}{_pages(repository)[1]}{sha}" if repository else ""


def range_url(repository: str, older: str, newer: str) -> str:
    """The URL of the commits between two, "" if the repository is not known."""
    compare = "/-/compare/" if "//gitlab.com/" in repository else "/compare/"
    return f"{repository}{compare}{older}...{newer}" if repository else ""


def _pages(repository: str) -> tuple[str, str]:
    """What the addresses of pull requests and of commits have after that of the repository."""
    return _PAGES.get(repository.split("/")[2], _PAGES["github.com"])
