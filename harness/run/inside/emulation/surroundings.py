"""The process environment: what a package may change because it sees a GPU, and what it must not."""

from __future__ import annotations

import os
import shlex
from typing import Any

# Python wrappers around torch's functions can't be traced; rewriting of sources by unsloth stays on, which
# UNSLOTH_COMPILE_DISABLE would switch off, together with the workaround that decides the verdict.
_VARIABLES = {
    "TORCHDYNAMO_DISABLE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # else Inductor starts processes to compile in, for nothing
    "CUDA_VISIBLE_DEVICES": "0",
}


def prepare() -> None:
    """Set the variables that the stand-in needs, and keep packages from linking CUDA as root.

    unsloth runs `ldconfig` if it finds no libcuda, which changes the machine for everyone.
    """
    os.environ.update(_VARIABLES)
    run = os.system

    def system(command: Any) -> int:
        return 0 if _links_libraries(command) else run(command)

    os.system = system


def _links_libraries(command: Any) -> bool:
    try:
        words = shlex.split(os.fsdecode(command))
    except ValueError:
        return False
    return any(os.path.basename(word) == "ldconfig" for word in words)  # noqa: PTH119 - a word, not a path
