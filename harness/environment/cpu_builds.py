"""PyTorch's builds for CPUs, where uv can get them: a tenth of what a build for CUDA downloads.

The release is the one that was resolved from the main index, which has dates; only the file differs. uv knows where the
builds are. What it found is remembered, also that it can't reach them, so that a machine without them asks seldom.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import asdict, evolve, field, frozen

from harness.atomic import write_whole
from harness.environment.pylock import read_lock
from harness.errors import IndexFault, NoNetwork
from harness.events import SILENT, Note
from harness.model import Pin

if TYPE_CHECKING:
    from harness.environment.interpreter import Interpreter
    from harness.environment.uv import Uv
    from harness.environment.workspace import Workspace
    from harness.events import Reporter
    from harness.model import Lock

BACKEND = "cpu"
_PROJECTS = ("torch", "torchvision", "torchaudio")
_ASK_AGAIN_S = 86400.0
_QUICKLY = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
# Their own code for CUDA is chosen by PyTorch's build (`torch.version.cuda`), also with the stand-in for CUDA.
_NEED_CUDA = re.compile(
    "apex|auto-gptq|bitsandbytes|causal-conv1d|deepspeed|fbgemm-gpu|flash-attn|flashinfer-python|gptqmodel"
    "|liger-kernel|mamba-ssm|sglang|torch-tensorrt|torchcodec|torchrec|unsloth|unsloth-zoo|vllm|xformers"
)


@frozen
class CpuBuilds:
    """The builds for CPUs that uv finds for one interpreter; `reporter` is told once if it can't reach them."""

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    reporter: Reporter = SILENT
    _found: dict[str, tuple[Pin, ...]] = field(factory=dict, init=False, repr=False, eq=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False, repr=False, eq=False)

    def of(self, lock: Lock) -> tuple[Pin, ...]:
        """The builds of the releases of PyTorch in a lock, () unless there is one for each, and nothing needs CUDA."""
        if any(_NEED_CUDA.fullmatch(pin.name) for pin in lock.pins):
            return ()
        asked = " ".join(f"{pin.name}=={pin.version}" for pin in lock.pins if pin.name in _PROJECTS)
        with self._asking:
            if asked not in self._found:
                self._found[asked] = self._kept(asked) or self._ask(asked)
            return self._found[asked]

    @property
    def _path(self) -> Path:
        return self.workspace.records / f"cpu-builds-{self.interpreter.cache_tag}-{self.interpreter.platform}.json"

    def _known(self) -> dict[str, object]:
        try:
            return dict(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}

    def _kept(self, asked: str) -> tuple[Pin, ...]:
        try:
            rows = self._known()[asked]
            return tuple(Pin(**{**row, "siblings": tuple(row["siblings"])}) for row in rows)  # type: ignore[attr-defined]
        except (KeyError, TypeError, AttributeError):
            return ()

    def _ask(self, asked: str) -> tuple[Pin, ...]:
        known = self._known()
        since = known.get("unreachable")
        if not asked or (isinstance(since, float) and 0 <= time.time() - since < _ASK_AGAIN_S):
            return ()
        uv = evolve(self.uv, extra_environment={**self.uv.extra_environment, **_QUICKLY})
        with tempfile.TemporaryDirectory(prefix="harness-builds-") as folder:
            here = Path(folder)
            (here / "requirements.in").write_text(asked.replace(" ", "\n"), encoding="utf-8")
            try:
                answer = uv.call(
                    *("--quiet", "pip", "compile", "requirements.in", "--no-deps", "--only-binary", ":all:"),
                    *("--torch-backend", BACKEND, "--python", self.interpreter.path),
                    *("--format", "pylock.toml", "--output-file", "pylock.toml"),
                    cwd=here,
                )
            except (NoNetwork, IndexFault):
                self._keep("unreachable", time.time())
                self.reporter.report(Note("uv can't reach PyTorch's builds for CPUs, so those for CUDA are installed"))
                return ()
            if answer.returncode != 0:  # this release has none
                return ()
            pins = read_lock((here / "pylock.toml").read_text(encoding="utf-8"), self.interpreter).pins
        if not all(_is_for_cpu(pin) and pin.sha256 for pin in pins):
            return ()
        self._keep(asked, [asdict(pin) for pin in pins])
        return pins

    def _keep(self, name: str, value: object) -> None:
        write_whole(self._path, json.dumps({**self._known(), name: value}))


def _is_for_cpu(pin: Pin) -> bool:
    """Whether a build is one for CPUs: "2.7.0+cpu", "2.6.0+cpu.cxx11.abi"."""
    return pin.version.partition("+")[2].partition(".")[0] == BACKEND
