"""How a build of a stranger's code runs: in the sandbox, with few variables of the user's, and with a time limit.

uv fetches what the build requires and starts the build backend in one call, so the whole call is in the sandbox and has
the network. It can write only its folder, a scratch folder and a cache of uv for builds alone: no wheel that is
installed elsewhere comes from that cache.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from attrs import evolve, frozen

from harness.errors import UserMistake
from harness.run.sandbox import FileAccess, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LIMIT_S = 900.0
_LIMIT_VARIABLE = "HARNESS_BUILD_TIMEOUT"
_PASSED = re.compile(
    r"""PATH | HOME | USER | LOGNAME | TMPDIR | TZ | LANG | LANGUAGE | LC_[A-Z]+ | (https?|all|ftp|no)_proxy
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | UV_(?!PUBLISH).*
    | CC | CXX | FC | F77 | LD | AR | (C|CXX|CPP|F|LD|RUST|MAKE)FLAGS | CMAKE_[A-Z_]+ | (MAX|NPY_NUM_BUILD)_JOBS
    | (DY)?LD_LIBRARY_PATH | PKG_CONFIG_PATH | CUDA_(HOME|PATH) | TORCH_CUDA_ARCH_LIST
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "UV_CONFIG_FILE")
_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


@frozen
class Builds:
    """The `sandbox` of builds (None: they have the user's rights), and the cache that uv has in it."""

    sandbox: Sandbox | None = None
    cache: Path | None = None

    @classmethod
    def inside(cls, sandbox: Sandbox | None, cache: Path) -> Builds:
        """Builds in the sandbox that runs are in, but with the network."""
        return cls(evolve(sandbox, network=True) if sandbox is not None else None, cache)

    @property
    def limit_s(self) -> float:
        """The seconds that a build may take. Raises `UserMistake` if the variable is no number."""
        text = os.environ.get(_LIMIT_VARIABLE)
        try:
            limit = float(text) if text else _LIMIT_S
        except ValueError:
            limit = 0.0
        if not 0 < limit < float("inf"):
            raise UserMistake(f"{_LIMIT_VARIABLE} is {text!r}, not a number of seconds", hint="for example 1800")
        return limit

    @property
    def timed_out(self) -> str:
        """What is said about a build that took too long."""
        return f"the build timed out after {self.limit_s:g} s ({_LIMIT_VARIABLE} changes it)"

    @contextlib.contextmanager
    def entered(
        self, argv: Sequence[str], env: Mapping[str, str], own: Mapping[str, str], cwd: Path
    ) -> Iterator[tuple[dict[str, str], list[str]]]:
        """Yield the variables of a build in the folder `cwd`, and the command line of its sandbox, empty without one.

        `own` are variables that are passed on whatever their names are.
        """
        told = {**{name: value for name, value in env.items() if _PASSED.fullmatch(name)}, **own}
        if self.sandbox is None or self.cache is None:
            yield told, []
            return
        settings = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config", "uv", "uv.toml")
        if settings.is_file():
            told.setdefault("UV_CONFIG_FILE", str(settings))
        with tempfile.TemporaryDirectory(prefix="harness-build-") as folder:
            home = Path(folder, "home")
            home.mkdir()
            told |= {"HOME": str(home), "UV_CACHE_DIR": str(self.cache)}
            told.pop("TMPDIR", None)
            access = FileAccess(
                scratch=Path(folder),
                work=cwd,
                python=Path(argv[argv.index("--python") + 1]),
                readable=(Path(argv[0]), *_readable(told)),
                writable=(cwd, self.cache),
            )
            yield told, self.sandbox.command(access)


def _readable(env: Mapping[str, str]) -> Iterator[Path]:
    """The files and local indexes that the user's settings of uv name."""
    for name in _FILES:
        if env.get(name, "").startswith("/"):
            yield Path(env[name])
    for name in _INDEXES:
        for text in re.split(r"[\s,]+", env.get(name, "")):
            address = text.partition("=")[2] if re.match(r"[\w-]+=", text) else text
            path = unquote(urlsplit(address).path) if address.startswith("file:") else address
            if path.startswith("/"):
                yield Path(path)
