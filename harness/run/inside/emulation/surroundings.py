"""Sets environment variables for the stand-in, and keeps packages that see a GPU from changing the machine."""

from __future__ import annotations

import os
import shlex
from typing import Any

# torch.compile can't trace the Python wrappers around torch's functions. UNSLOTH_COMPILE_DISABLE is not set: it would
# turn off unsloth's rewriting of sources, and with it the workaround that decides the verdict.
_VARIABLES = {
    "TORCHDYNAMO_DISABLE": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # otherwise Inductor starts compile processes that nothing uses
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
