"""Calls uv: under a guard, quietly, with pip's index settings, and tells lasting failures from temporary ones.

A build of a stranger's code runs in the sandbox, without network, with few variables, and with a time limit. What it
requires is fetched before (`source_builds.py`), so it needs no index and sees none.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import uv as uv_package
from attrs import evolve, field, frozen

from harness.environment.manifest import Ledger
from harness.environment.pages import (
    access_refused,
    failing_status,
    host_of,
    no_list,
    unreachable,
)
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.errors import HarnessFault, NoNetwork, NoSpace, UserMistake
from harness.model import Combination, parsed_version
from harness.redact import SECRET_NAME
from harness.run.launch import Limits, bounded
from harness.run.locks import claimed_folder
from harness.run.process import EndReason, NoSandbox, run_guarded
from harness.run.sandbox import FileAccess, Sandbox

_LONGEST_S, _LONGEST_RESOLUTION_S = 3600.0, 600.0
# uv reads pages of an index into memory, also one without an end. It needs some hundred MiB to resolve a large stack.
_MOST_MEMORY = 4 << 30
TORCH_BACKEND = "UV_TORCH_BACKEND"
# Settings of the user's shell and project that must not affect what is built here.
_NOT_PASSED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PROJECT_ENVIRONMENT", "UV_EXCLUDE_NEWER")


# Only lasting errors, about the releases themselves, may be stored: one caused by a login page or a broken download
# must not come back after the index works again. If in doubt, an error counts as temporary. The patterns match uv 0.9
# to 0.13, as printed for misbehaving servers (`tests/environment`).
_SPACE = re.compile(r"No space left on device|os error 28|Disk quota exceeded", re.IGNORECASE)
_REFUSED = re.compile(r"\(?(401|403|407)(?: Unauthorized| Forbidden| Proxy Authentication Required)\b", re.IGNORECASE)
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3})")
_GONE = ("404", "410", "451")  # the index lists a file that it does not have: an error of one release
_NETWORK = re.compile(
    r"error sending request|Failed to fetch|dns error|tcp connect error|Network is unreachable|"
    r"Connection refused|operation timed out|request or response body error|"
    r"error decoding response body|connection closed before message completed|"
    r"too many redirects|invalid peer certificate",
    re.IGNORECASE,
)
_OFFLINE = re.compile(r"network (?:connectivity is|was) disabled|`UV_OFFLINE`[^`]* cannot be used with", re.IGNORECASE)
_NO_PROJECT = re.compile(r"\bbecause (\S+) was not found in .{1,60} and you require \1(?![\w.-])", re.IGNORECASE)
_NO_INDEX_PAGE = re.compile(r"Received some unexpected (?:JSON|HTML)|Unsupported `Content-Type`", re.IGNORECASE)
# The first bytes of the supposed wheel, as a number. Those of a web page begin with "<".
_HEADER = re.compile(r"unexpected header \(actual: 0x([0-9a-f]{1,8})\b", re.IGNORECASE)

# What the resolver concludes about releases that it read, and says about those that it could not read.
_CONCLUDED = re.compile(r"we can conclude|which are incompatible|Failed to build `")
_UNSEEN = re.compile(
    r"was not found in|there (?:is|are) no versions? of|invalid package format|could not be (?:read|queried|found)|"
    r"Failed to (?:read|fetch|download|extract)|metadata (?:was|could|is)|unexpected|mismatch|offline|exclude-newer",
    re.IGNORECASE,
)


_OF_INDEX = re.compile(r"UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|INDEX_STRATEGY)")
_PASSED = re.compile(
    r"""PATH | HOME | USER | LOGNAME | TMPDIR | TZ | LANG | LANGUAGE | LC_(ALL|[CM][A-Z]+|NUMERIC|TIME)
    | (https?|all|ftp|no)_proxy
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE
    | UV_(CACHE_DIR|LINK_MODE|CONCURRENT_\w+|PYTHON_INSTALL_DIR|PYTHON_PREFERENCE)
    | CC | CXX | FC | F77 | LD | AR | (C|CXX|CPP|F|LD|RUST|MAKE)FLAGS | CMAKE_[A-Z_]+ | (MAX|NPY_NUM_BUILD)_JOBS
    | (DY)?LD_LIBRARY_PATH | PKG_CONFIG_PATH | CUDA_(HOME|PATH) | TORCH_CUDA_ARCH_LIST
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROJECT = "a-question"  # requires what is asked for where a list of requirements is not enough
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


def _readable(env: Mapping[str, str]) -> Iterator[Path]:
    """The certificates that the user's settings name."""
    return (Path(env[name]) for name in _FILES if env.get(name, "").startswith("/"))


@frozen
class UvAnswer:
    """How a call ended: exit code 0 is success; `words` is what uv printed, or that it took too long."""

    returncode: int
    words: str


def _binary() -> Path:
    try:
        return Path(uv_package.find_uv_bin())
    except FileNotFoundError as error:
        raise HarnessFault("the uv program is missing", hint="pip install --force-reinstall uv") from error


@frozen
class Uv:
    """The installed uv, with the user's index settings.

    Its builds run in `sandbox`, the one that runs are in (None: they have the user's rights), for at most
    `longest_build_s` seconds each. What a call needs for itself is written below `scratch`. `ledger` knows the hashes
    of local wheels that locks named (None: nothing does).
    """

    settings: PipSettings = field(factory=read_pip_settings)
    binary: Path = field(factory=_binary)
    extra_environment: Mapping[str, str] = field(factory=dict)
    sandbox: Sandbox | None = None
    longest_build_s: float = 900.0
    scratch: Path = field(factory=lambda: Path(tempfile.gettempdir()))
    ledger: Ledger | None = None

    @cached_property
    def cache_folder(self) -> Path:
        """The folder where it unpacks wheels; its configuration may name one."""
        named = self.environment.get("UV_CACHE_DIR")
        if not named:
            answer = self.call("cache", "dir", cwd=Path.cwd())
            named = answer.words.strip() if answer.returncode == 0 else ""
        return Path(named).absolute() if named else Path.home() / ".cache" / "uv"

    @property
    def wheels_folder(self) -> Path:
        """The part of uv's cache with unpacked wheels, of the newest layout; it may not exist."""
        folders = self.cache_folder.glob("wheels-v*")
        return max(folders, key=lambda folder: (len(folder.name), folder.name), default=self.cache_folder / "wheels")

    def offering(self, folders: Sequence[Path]) -> list[str]:
        """Options that offer the wheels in these folders, beside the user's own folders."""
        given = self.environment.get("UV_FIND_LINKS", "").split(",")
        links = (*filter(None, given), *map(str, folders)) if folders else ()
        return [word for folder in links for word in ("--find-links", folder)]

    def from_own_index(self, projects: Iterable[str]) -> list[str]:
        """Options with which exact releases of these projects are installed, also from the indexes of their own."""
        own = dict(self.settings.own)
        urls = dict.fromkeys(own[name] for name in projects if name in own)
        strategy = ["--index-strategy", "unsafe-best-match"] if urls else []
        return [*strategy, *(word for url in urls for word in ("--index", url))]

    @property
    def has_torch_backend(self) -> bool:
        """Whether uv is configured, by us or by the user, to take PyTorch's builds from another index."""
        return TORCH_BACKEND in self.environment

    def call(self, *arguments: str | Path, cwd: Path) -> UvAnswer:
        """Run uv. Raises `NoNetwork` and `NoSpace`; any other failure is in the answer.

        If an index may have been wrong, uv runs again without its cache: it treats a network's login page as a project
        without releases, and caches that for ten minutes.
        """
        answer = self._answer(arguments, cwd)
        if answer.returncode == 0 or "pip" not in arguments or "--refresh" in arguments or is_lasting(answer.words):
            return answer
        return self._answer((*arguments, "--refresh"), cwd)

    def compile(
        self,
        requirements: Iterable[str],
        *options: str | Path,
        python: Path,
        constraints: Iterable[str] = (),
        preferences: str = "",
        settings: str = "",
        from_cache: bool = False,
    ) -> tuple[UvAnswer, str]:
        """Resolve requirements for a Python to wheels; returns its answer, and the text of the lock, "" if it failed.

        `preferences` are a lock whose versions are kept where possible, `settings` the text of a `uv.toml`. With
        `from_cache` it asks no index, and fails if its cache lacks anything that it would have read. Raises as `call`.
        """
        with claimed_folder(self.scratch, "resolve-") as folder:
            wanted, own = list(requirements), self.settings.own
            source = "pyproject.toml" if own else "requirements.in"
            text = _as_project(wanted, own) if own else "".join(f"{line}\n" for line in wanted)
            (folder / source).write_text(text, encoding="utf-8")
            (folder / "constraints.txt").write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
            (folder / "uv.toml").write_text(settings, encoding="utf-8")  # uv would look for one in the folders above
            lock = folder / "pylock.toml"
            if preferences:
                lock.write_text(preferences, encoding="utf-8")
            words = ("--quiet", "pip", "compile", source, "--constraints", "constraints.txt")
            form = ("--only-binary", ":all:", "--python", python, "--format", "pylock.toml", "--output-file", lock.name)
            arguments = (*words, *form, *options)
            local, seen_ns = self._local_files(), time.time_ns()
            links = self._links_with_hashes(local, folder)
            uv = evolve(self, extra_environment={**self.extra_environment, **links})
            ask = uv._from_cache if from_cache else uv.call  # noqa: SLF001 - another one of this class
            answer = ask(*arguments, cwd=folder)
            answer = evolve(answer, words=answer.words.replace(f"{_PROJECT} depends on", "you require"))
            if answer.returncode != 0:
                return answer, ""
            text = lock.read_text(encoding="utf-8")
            if self.ledger is not None and local:
                self.ledger.note_settled(_named_in(text, local), seen_ns)
            return answer, text

    def _local_files(self) -> dict[str, dict[str, os.stat_result]]:
        """The files of each local find-links folder by their paths, by the folder as the setting names it."""
        folders: dict[str, dict[str, os.stat_result]] = {}
        for link in filter(None, self.environment.get("UV_FIND_LINKS", "").split(",")):
            folder = Path(unquote(urlsplit(link).path) if link.startswith("file:") else link)
            if self.ledger is not None and folder.is_absolute() and folder.is_dir():
                folders[link] = {str(path): path.stat() for path in folder.iterdir() if path.is_file()}
        return folders

    def _links_with_hashes(self, local: Mapping[str, Mapping[str, os.stat_result]], own: Path) -> dict[str, str]:
        """The variable for find-links folders, with a page below `own` for each that has a wheel of a known hash.

        uv reads a wheel in such a folder to its end whenever it resolves, and a page tells it the hash.
        """
        pages: dict[str, str] = {}
        for number, (link, files) in enumerate(local.items()):
            hashes = self.ledger.known(files) if self.ledger is not None else {}
            if hashes:
                page = own / f"links-{number}.html"
                page.write_text(_page_of(files, hashes), encoding="utf-8")
                pages[link] = page.as_uri().replace(",", "%2C")
        links = self.environment.get("UV_FIND_LINKS", "").split(",")
        return {"UV_FIND_LINKS": ",".join(pages.get(link, link) for link in links)} if pages else {}

    def _from_cache(self, *arguments: str | Path, cwd: Path) -> UvAnswer:
        """Run uv without network. It would pass over a release that its cache lacks, with a warning in its log."""
        warning = evolve(self, extra_environment={**self.extra_environment, "RUST_LOG": "warn"})
        try:
            answer = warning._answer(("--offline", *arguments), cwd)  # noqa: SLF001 - another one of this class
        except NoNetwork as why:
            return UvAnswer(1, str(why))
        return UvAnswer(answer.returncode or bool(answer.words), answer.words)

    def _answer(self, arguments: Sequence[str | Path], cwd: Path) -> UvAnswer:
        argv = [str(self.binary), "--no-progress", "--color", "never", *map(str, arguments)]
        env, sandbox = self.environment, list[str]()
        if env.get("UV_NO_INDEX") and "pip" in arguments and not self.settings.own:  # uv takes it only as an option
            argv.append("--no-index")
        memory: int | None = _MOST_MEMORY
        wall_s = _LONGEST_RESOLUTION_S if "compile" in arguments else _LONGEST_S
        is_build = "build" in arguments[:2]
        with claimed_folder(self.scratch, "uv-") as folder:
            log = folder / "log"
            log.touch()
            if is_build:
                env, sandbox = self._of_build(argv, cwd, folder / "build")
                wall_s, memory = self.longest_build_s, None
            try:
                ended = run_guarded(
                    argv,
                    env=env,
                    cwd=cwd,
                    limits=Limits(wall_s, memory),
                    output=log,
                    sandbox=sandbox,
                )
            except NoSandbox as why:
                hint = "--sandbox off builds without it"
                raise UserMistake(f"the sandbox of a build failed: {why}", hint=hint) from None
            with log.open("rb") as printed:
                words = bounded(printed).decode("utf-8", "replace").strip()
        if ended.reason is EndReason.TIMEOUT and is_build:
            return UvAnswer(1, f"the build timed out after {wall_s:.0f} s")
        if not is_build and ended.reason in (EndReason.TIMEOUT, EndReason.MEMORY):
            spent = f"{wall_s:.0f} s" if ended.reason is EndReason.TIMEOUT else f"{_MOST_MEMORY >> 20} MiB of memory"
            hint = "run the same command again; does the package index send what it should?"
            raise NoNetwork(f"uv used more than {spent} and was stopped", hint=hint)
        if ended.returncode != 0:
            if is_build:  # it has no network, and what it prints is a stranger's
                _raise_if_full(words)
            else:
                raise_surroundings(words)
        return UvAnswer(ended.returncode, words)

    def _of_build(self, argv: Sequence[str], cwd: Path, own: Path) -> tuple[dict[str, str], list[str]]:
        """The variables of a build in the folder `cwd`, and the command line of its sandbox, empty without one.

        The folder `own` is made for its home. Our own variables are passed on whatever their names are.
        """
        passed = {name for name in self.environment if _PASSED.fullmatch(name) and not SECRET_NAME.search(name)}
        variables = {name: _LOGIN.sub("", self.environment[name]) for name in passed}
        variables |= {**self.extra_environment, "UV_NO_CONFIG": "1"}
        if self.sandbox is None:
            return variables, []
        home = own / "home"
        home.mkdir(parents=True)
        # A cache of its own: what one build leaves there is not used by the next.
        variables |= {"HOME": str(home), "UV_CACHE_DIR": str(own / "uv")}
        variables.pop("TMPDIR", None)
        access = FileAccess(
            scratch=own,
            work=cwd,
            python=Path(argv[argv.index("--python") + 1]),
            readable=(Path(argv[0]), *_readable(variables)),
            writable=(cwd,),
        )
        return variables, self.sandbox.around(access)

    def find_python(self, wanted: str | None) -> Path:
        """The path of an interpreter for a version; None: the base interpreter of the running one."""
        if wanted is None:
            return Path(getattr(sys, "_base_executable", None) or sys.executable)
        # By itself uv only sees those of pyenv that it has activated.
        root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
        pyenv = {version: path for path in root.glob("*/bin") if (version := parsed_version(path.parent.name))}
        folders = [str(pyenv[version]) for version in sorted(pyenv, reverse=True)]
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])
        uv = evolve(self, extra_environment={**self.extra_environment, "PATH": path})
        answer = uv.call("python", "find", "--no-project", "--system", wanted, cwd=Path.cwd())
        python = Path(answer.words.splitlines()[-1]) if answer.returncode == 0 and answer.words else None
        if python is None or not python.exists():
            raise UserMistake(
                f"no Python {wanted} on this machine",
                hint=f"--python takes a path too; uv python install '{wanted}' installs one",
            )
        return python

    def resolution_key(self, combination: Combination) -> str:
        """Identifies the resolver's question with the user's index settings: another index may answer otherwise."""
        variables = {
            name: _LOGIN.sub("", value) for name, value in self.environment.items() if _OF_INDEX.fullmatch(name)
        }
        if self.settings.own:
            variables["own"] = " ".join(f"{name}={_LOGIN.sub('', url)}" for name, url in self.settings.own)
        if variables.keys() <= {"UV_NO_INDEX"}:  # no index at all can't answer otherwise
            return combination.resolution_key
        index = hashlib.sha256(json.dumps(variables, sort_keys=True).encode()).hexdigest()[:8]
        return f"{combination.resolution_key}-{index}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it runs with: ours, and the user's index settings."""
        environ = {
            key: value for key, value in os.environ.items() if key not in _NOT_PASSED and not key.startswith("GIT_")
        }
        merged = {**environ, **self.settings.as_uv_environment(environ), **self.extra_environment}
        if not merged.get(TORCH_BACKEND):  # uv refuses an empty one
            merged.pop(TORCH_BACKEND, None)
        return merged


def _page_of(files: Iterable[str], hashes: Mapping[str, str]) -> str:
    """A page of an index with these local files, and those of their hashes that are known."""
    urls = {path: f"{Path(path).as_uri()}{f'#sha256={hashes[path]}' if path in hashes else ''}" for path in files}
    rows = (f'<a href="{html.escape(urls[path])}">{html.escape(Path(path).name)}</a>' for path in sorted(urls))
    return "".join(f"{row}\n" for row in rows)


def _named_in(lock: str, local: Mapping[str, Mapping[str, os.stat_result]]) -> Iterator[tuple[os.stat_result, str]]:
    """The states of the local files that a lock names, with the hashes that it has of them."""
    states = {path: state for files in local.values() for path, state in files.items()}
    wheels = (wheel for package in tomllib.loads(lock).get("packages", ()) for wheel in package.get("wheels", ()))
    for wheel in wheels:
        state = states.get(unquote(urlsplit(wheel.get("url", "")).path))
        sha256 = wheel.get("hashes", {}).get("sha256")
        if state is not None and sha256:
            yield state, sha256


def _as_project(requirements: Iterable[str], own: Iterable[tuple[str, str]]) -> str:
    """A project that requires these, with an index for some projects only, which a list of requirements can't name."""
    needs = [f"  {json.dumps(text)},\n" for text in requirements]
    parts = [f'[project]\nname = "{_PROJECT}"\nversion = "0"\ndependencies = [\n', *needs, "]\n\n[tool.uv.sources]\n"]
    parts += [f'{name} = {{ index = "own-{name}" }}\n' for name, _ in own]
    parts += [
        f'\n[[tool.uv.index]]\nname = "own-{name}"\nurl = {json.dumps(url)}\nexplicit = true\n' for name, url in own
    ]
    return "".join(parts)


def spoken_by_uv(words: str) -> str:
    """The resolver's message on one line, without its marks."""
    lines = (re.sub(r"^(error|cause|hint|x|\u00d7|╰─▶|├─▶)\s*:?\s*", "", line.strip()) for line in words.splitlines())
    text = " ".join(line for line in lines if line)
    return re.sub(r"^No solution found when resolving dependencies:?\s*", "", text)


def is_lasting(words: str) -> bool:
    """Whether an installer's error is about the releases themselves, so that a second attempt fails in the same way."""
    return _CONCLUDED.search(words) is not None and _UNSEEN.search(words) is None


def unknown_project(words: str) -> str:
    """The required project that the resolver did not find on any index, "" if it found all."""
    missing = _NO_PROJECT.search(words)
    return missing[1] if missing else ""


def raise_surroundings(words: str) -> None:
    """Raise `NoSpace`, `NoNetwork` or `IndexFault` if an installer's error means a full disk or a failing index."""
    _raise_if_full(words)
    if _OFFLINE.search(words):
        problem = "uv is set to work offline, and this needs the package index"
        raise NoNetwork(problem, hint="unset UV_OFFLINE, or see `offline` in uv.toml, and run the same command again")
    address = re.search(r"https?://[^\s`'\")]{1,2000}", words)
    host = host_of(address.group()) if address else ""
    if refused := _REFUSED.search(words):
        raise access_refused(host, int(refused.group(1)))
    if status := _STATUS.search(words):
        if status.group(1) not in _GONE:
            raise failing_status(host, int(status.group(1)))
        return
    if _NO_INDEX_PAGE.search(words):
        raise no_list(host, "what it sends is not a page of a package index")
    if (header := _HEADER.search(words)) and int(header.group(1), 16).to_bytes(4, "little").startswith(b"<"):
        raise no_list(host, "it sends a web page in place of a wheel")
    if _NETWORK.search(words):
        raise unreachable(host)


def _raise_if_full(words: str) -> None:
    if _SPACE.search(words):
        raise NoSpace("no space left on the disk while installing", hint="harness clean frees old environments")
