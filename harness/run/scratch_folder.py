"""The scratch folder of a run: fresh folders for everything a process writes, and an environment without secrets.

Standard library only, because a node without the harness uses this file too.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PASSED = re.compile(
    r"""LANG | LANGUAGE | LC_[A-Z]+ | TZ | USER | LOGNAME
    | SSL_CERT_(FILE|DIR) | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE
    | (DY)?LD_LIBRARY_PATH | CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|HOME|PATH) | NVIDIA_[A-Z_]+
    | (OMP|MKL|OPENBLAS|NUMEXPR)_NUM_THREADS | OMP_WAIT_POLICY
    """,
    re.VERBOSE,
)
_PROXIES = re.compile(r"(https?|all|ftp)_proxy", re.IGNORECASE)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH")
_CACHES = {
    "CUDA_CACHE_PATH": "cuda",
    "HF_HOME": "huggingface",
    "MPLCONFIGDIR": "matplotlib",
    "NUMBA_CACHE_DIR": "numba",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "torch-extensions",
    "TORCH_HOME": "torch",
    "TRITON_CACHE_DIR": "triton",
    "XDG_CACHE_HOME": "xdg-cache",
    "XDG_CONFIG_HOME": "xdg-config",
    "XDG_DATA_HOME": "xdg-data",
    "XDG_STATE_HOME": "xdg-state",
    "XDG_RUNTIME_DIR": "xdg-runtime",
}
# Threads of OpenMP that wait sleep instead of spinning, which would take CPU time from runs on other lanes. It changes
# no result, unlike fewer threads, which may add numbers in another order.
_SHARED_CPUS = {"OMP_WAIT_POLICY": "PASSIVE"}
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class ScratchFolder:
    """The folders of one run; `root` contains the others and is removed after the run."""

    root: Path

    @property
    def work(self) -> Path:
        """The working directory, empty at the start."""
        return self.root / "work"

    @property
    def script(self) -> Path:
        """The folder of the script, separate from the working directory."""
        return self.root / "script"

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files."""
        return self.root / "tmp"

    @property
    def metrics(self) -> Path:
        """The metrics file of the repro."""
        return self.root / "metrics.json"

    @property
    def report(self) -> Path:
        """The report file of the child driver, in a folder that scripts don't use."""
        return self.root / "harness" / "report.json"

    @property
    def imports(self) -> Path:
        """The file with the import graph, which the child driver of a traced run writes."""
        return self.root / "harness" / "imports.json"

    @property
    def job(self) -> Path:
        """The file with the job for the child driver."""
        return self.root / "harness" / "job.json"

    @property
    def log(self) -> Path:
        """The file for stdout and stderr."""
        return self.root / "harness" / "log"

    @property
    def stubs(self) -> Path:
        """The folder of stubs that replace the user's Python tools on the PATH."""
        return self.root / "not-in-the-environment"

    def variables(self) -> dict[str, str]:
        """The environment variables that point a process to these folders."""
        places = {name: str(self.root / "cache" / folder) for name, folder in _CACHES.items()}
        return {
            **places,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "HARNESS_METRICS": str(self.metrics),
        }


@contextlib.contextmanager
def scratch_folder(scratch_root: Path) -> Iterator[ScratchFolder]:
    """Create a folder below `scratch_root` and remove it when the context ends."""
    scratch_root.mkdir(parents=True, exist_ok=True)
    # Keep the path short: paths of sockets, such as those of multiprocessing below TMPDIR, have at most 108 characters.
    scratch = ScratchFolder(Path(tempfile.mkdtemp(prefix="r", dir=scratch_root)).resolve())
    try:
        for folder in (scratch.work, scratch.script, scratch.home, scratch.temporary, scratch.report.parent):
            folder.mkdir()
        for cache in _CACHES.values():
            (scratch.root / "cache" / cache).mkdir(parents=True, mode=0o700)
        yield scratch
    finally:
        remove_tree(scratch.root)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, even if read-only. Ignores what can't be removed."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_dir():
        return
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def process_environment(
    scratch: ScratchFolder,
    *,
    ours: Mapping[str, str],
    python: Path,
    pass_env: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    pycache_prefix: Path | None = None,
    stubs: bool = False,
) -> dict[str, str]:
    """Return all environment variables of a probe, made from the harness's own (`ours`).

    Only variables known to be harmless and those in `pass_env` are passed on; `extra` is added last. The folder of
    `python` comes first on PATH, then the stubs if there are any. Bytecode goes below `pycache_prefix` if given.
    """
    environment = dict(_SHARED_CPUS)
    environment |= {name: value for name, value in ours.items() if name in pass_env or _is_harmless(name, value)}
    environment |= scratch.variables()
    if hub := _hub_cache(ours):
        environment["HF_HUB_CACHE"] = str(hub)
    environment |= {
        "PATH": os.pathsep.join([str(python.parent), *([str(scratch.stubs)] if stubs else []), user_path(ours)]),
        "VIRTUAL_ENV": str(python.parent.parent),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if pycache_prefix is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(pycache_prefix)
    return environment | dict(extra or {})


def user_path(ours: Mapping[str, str]) -> str:
    """Return the user's own PATH."""
    return ours.get("PATH") or _SYSTEM_PATH


def _is_harmless(name: str, value: str) -> bool:
    if _PROXIES.fullmatch(name):
        return not _has_credentials(value)
    return _PASSED.fullmatch(name) is not None and _SECRET.search(name) is None


def _has_credentials(url: str) -> bool:
    try:
        return "@" in urlsplit(url if "//" in url else f"//{url}").netloc
    except ValueError:
        return True


def _hub_cache(ours: Mapping[str, str]) -> Path | None:
    """The user's download cache of model files. It is addressed by content, so it is safe to share."""
    home = Path(ours.get("HOME", "/nonexistent"))
    for folder in (
        ours.get("HF_HUB_CACHE"),
        ours.get("HUGGINGFACE_HUB_CACHE"),
        ours.get("HF_HOME") and Path(ours["HF_HOME"], "hub"),
        Path(ours.get("XDG_CACHE_HOME") or home / ".cache", "huggingface", "hub"),
    ):
        if folder and Path(folder).is_dir():
            return Path(folder).absolute()
    return None
