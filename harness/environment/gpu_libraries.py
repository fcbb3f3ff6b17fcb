"""Leaves out NVIDIA's libraries where no run can call them, because this machine has no GPU.

PyTorch's builds for CUDA need these libraries to be loaded, but call them only for tensors on a GPU. They are most of
what such an environment downloads. In their place are their metadata, which say that they are installed, and libraries
with the same names whose functions return an error.
"""

from __future__ import annotations

import platform
import re
import sys
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.environment.elf import empty_library, needed_by, returns, writes_one_of
from harness.environment.workspace import site_packages
from harness.model.text import counted, listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.model import Lock, Pin

# Those that only PyTorch's own libraries call. The runtime of CUDA is small, and is called when PyTorch is imported.
_LEFT_OUT = re.compile(
    r"nvidia-(?:cuda-)?(cublas|cudnn|cufft|curand|cusolver|cusparselt|cusparse|nccl|nvjitlink|nvrtc|nvshmem)(-cu\d+)?"
)
_TEXT = "this library of NVIDIA was left out, because the machine has no GPU"
_METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\nSummary: {}\n"


def uncalled(lock: Lock) -> tuple[Pin, ...]:
    """The pins of a lock whose libraries no run can call on a machine without a GPU."""
    version = lock.version_of("torch")
    if version is None or "+" in version or sys.platform != "linux" or platform.machine() != "x86_64":
        return ()
    return tuple(pin for pin in lock.pins if _LEFT_OUT.fullmatch(pin.name))


def left_out(pins: Sequence[Pin]) -> str:
    """A sentence about what was left out."""
    told = f"{counted(len(pins), 'package')} of NVIDIA's libraries left out, because no GPU is here to call them on"
    return f"{told} (--torch-backend none installs them)"


def replaced_by(builds: Sequence[Pin]) -> str:
    """A sentence about builds for CPUs that were installed instead."""
    told = listed([f"{pin.name} {pin.version}" for pin in builds])
    return f"{told} instead of the build for CUDA, because no GPU is here (--torch-backend none installs that)"


def stand_in(pins: Sequence[Pin], folder: Path) -> None:
    """Put metadata and empty libraries into a new environment for what was left out."""
    packages = site_packages(folder)
    for pin in pins:
        info = packages / f"{pin.name.replace('-', '_')}-{pin.version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(_METADATA.format(pin.name, pin.version, _TEXT), encoding="utf-8")
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n", encoding="utf-8")
    stems = {match[1]: pin for pin in pins if (match := _LEFT_OUT.fullmatch(pin.name))}
    libraries = [path for path in packages.rglob("*.so*") if path.is_file()]
    there = {path.name for path in libraries}
    needed = {name for path in libraries for name in needed_by(path, symbols=False).libraries} - there
    missing = {name: _stem(name) for name in needed if any(_stem(name).startswith(stem) for stem in stems)}
    symbols: dict[str, dict[str, str]] = {name: {} for name in missing}
    for path in libraries:
        needs = needed_by(path)
        if not needs.libraries & missing.keys():
            continue
        for wanted in needs.symbols:
            # A function without a version begins with the name of its library.
            begins = [name for name, stem in missing.items() if wanted.name.lower().startswith(stem)]
            library = wanted.library or max(begins, key=lambda name: len(missing[name]), default="")
            if library in symbols:
                symbols[library].setdefault(wanted.name, wanted.version)
    place = packages / "torch" / "lib"  # where PyTorch's own libraries look first
    for name, functions in symbols.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(empty_library(name, functions, _versions(stems), _TEXT))


def _stem(library: str) -> str:
    """The name that the functions of a library begin with, in small letters."""
    return library.removeprefix("lib").partition(".so")[0].partition("_")[0].lower()


def _versions(pins: dict[str, Pin]) -> dict[str, bytes]:
    """The code of functions that PyTorch asks for the version of a library, on any machine."""
    try:
        major, minor, patch = (*Version(pins["cudnn"].version).release, 0, 0)[:3]
    except (KeyError, InvalidVersion):
        return {}
    number = major * (10000 if major >= 9 else 1000) + minor * 100 + patch
    return {"cudnnGetVersion": returns(number), "cudnnGetProperty": writes_one_of((major, minor, patch))}
