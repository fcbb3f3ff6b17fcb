"""How a build of a stranger's code runs: in the sandbox, without network, with few variables, and with a time limit.

What it requires is fetched before (`offline_build.py`), so it needs no index and sees none. It can write only its
folder and a scratch folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness.errors import UserMistake
from harness.run.sandbox import FileAccess, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LIMIT_S = 900.0
_LIMIT_VARIABLE = "HARNESS_BUILD_TIMEOUT"
_PASSED = re.compile(
    r"""PATH | HOME | USER | LOGNAME | TMPDIR | TZ | LANG | LANGUAGE | LC_[A-Z]+ | (https?|all|ftp|no)_proxy
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE
    | UV_(CACHE_DIR|LINK_MODE|CONCURRENT_\w+|PYTHON_INSTALL_DIR|PYTHON_PREFERENCE)
    | CC | CXX | FC | F77 | LD | AR | (C|CXX|CPP|F|LD|RUST|MAKE)FLAGS | CMAKE_[A-Z_]+ | (MAX|NPY_NUM_BUILD)_JOBS
    | (DY)?LD_LIBRARY_PATH | PKG_CONFIG_PATH | CUDA_(HOME|PATH) | TORCH_CUDA_ARCH_LIST
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


@frozen
class Builds:
    """The `sandbox` of builds, the one that runs are in (None: they have the user's rights)."""

    sandbox: Sandbox | None = None

    @property
    def has_network(self) -> bool:
        """Whether a build can use the network."""
        return self.sandbox is None or self.sandbox.network

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
        told = {name: _LOGIN.sub("", value) for name, value in env.items() if _PASSED.fullmatch(name)}
        told |= {**own, "UV_NO_CONFIG": "1"}
        if self.sandbox is None:
            yield told, []
            return
        with tempfile.TemporaryDirectory(prefix="harness-build-") as folder:
            home = Path(folder, "home")
            home.mkdir()
            # A cache of its own: what one build leaves there is not used by the next.
            told |= {"HOME": str(home), "UV_CACHE_DIR": str(Path(folder, "uv"))}
            told.pop("TMPDIR", None)
            access = FileAccess(
                scratch=Path(folder),
                work=cwd,
                python=Path(argv[argv.index("--python") + 1]),
                readable=(Path(argv[0]), *_readable(told)),
                writable=(cwd,),
            )
            yield told, self.sandbox.command(access)


def _readable(env: Mapping[str, str]) -> Iterator[Path]:
    """The certificates that the user's settings name."""
    return (Path(env[name]) for name in _FILES if env.get(name, "").startswith("/"))
