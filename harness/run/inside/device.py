"""Collects what the process knows about its device, from torch if the script imported it."""

# Importing pathlib would take longer than all the rest of this module.
# ruff: noqa: PTH123

from __future__ import annotations

import os
import re
import sys
from typing import Any


def of_process() -> dict[str, Any]:
    """Return the facts that are quick to collect."""
    facts: dict[str, Any] = {
        "platform": f"{sys.platform}-{os.uname().machine}",
        "implementation": sys.implementation.name,
        "cpus": os.cpu_count(),
    }
    torch = sys.modules.get("torch")
    version = getattr(torch, "version", None)
    if version is not None:
        facts["torch"] = str(getattr(torch, "__version__", ""))
        facts["torch_cuda"] = getattr(version, "cuda", None)
        # Builds for other vendors set one of these: hip for AMD, xpu for Intel.
        others = {f"torch_{name}": getattr(version, name, None) for name in ("hip", "xpu")}
        facts.update({name: value for name, value in others.items() if value})
    return facts


def is_in_use() -> bool:
    """Whether the script used CUDA. Any other query would initialise it, which takes seconds and memory."""
    torch: Any = sys.modules.get("torch")
    try:
        return bool(torch.cuda.is_initialized())
    except Exception:  # noqa: BLE001 - no torch, or an incomplete one
        return False


def of_cuda() -> dict[str, Any]:
    """Return facts about the current CUDA device. Raises any error that torch raises."""
    torch: Any = sys.modules["torch"]
    index = torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(index)
    return {
        "device": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "device_memory": properties.total_memory,
        "peak_device_memory": torch.cuda.max_memory_allocated(index),
        "driver": _driver(),
    }


def _driver() -> str | None:
    """The version of the kernel module, because torch knows only the API version."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", file.read())
    except OSError:
        return None
    return match.group(1) if match else None
