"""Lists all kinds of devices: every module of this folder with a `KIND`. Support for a new vendor is one new module."""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import Device, Outcome
from harness.run.devices.kind import DeviceKind, Gpu, of_one_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@cache
def kinds() -> tuple[DeviceKind, ...]:
    """Return all kinds, sorted by the names of their modules."""
    modules = (
        import_module(f"{__package__}.{found.name}") for found in pkgutil.iter_modules([str(Path(__file__).parent)])
    )
    return tuple(kind for module in modules if isinstance(kind := getattr(module, "KIND", None), DeviceKind))


def find_gpus(environment: Mapping[str, str] | None = None) -> tuple[Gpu, ...]:
    """Return the GPUs that the vendors' tools list and the variables in `environment` allow; none without a tool."""
    return tuple(gpu for kind in kinds() for gpu in kind.find(environment or {}))


def kind_of(gpu: Gpu) -> DeviceKind:
    """The kind of a GPU."""
    return next(kind for kind in kinds() if kind.name == gpu.kind)


def hidden() -> dict[str, str]:
    """Return the variables that hide every GPU, because a verdict on the CPU must not come from a GPU."""
    return {name: value for kind in kinds() for name, value in kind.hide.items()}


def passed_variables() -> tuple[str, ...]:
    """Return the names of the user's variables that GPUs need, in addition to those that every run gets."""
    return tuple(name for kind in kinds() for name in kind.passed)


def outcome_of_text(texts: Iterable[str], device: Device) -> tuple[Outcome, str] | None:
    """Return the outcome that one of these texts means on a device, and that text. Out of memory comes first."""
    candidates = list(texts)
    rules = [rule for kind in kinds() for rule in kind.texts if rule.anywhere or kind.device is device]
    for rule in sorted(rules, key=lambda rule: not rule.anywhere):
        for text in candidates:
            if re.search(rule.pattern, text):
                return rule.outcome, text
    return None


def choose_device(asked: str, repro_device: str, gpus: tuple[Gpu, ...]) -> tuple[Device, str]:
    """Return the device to run on, and a sentence that names it and says what a result on it means.

    `asked` is "auto", "cpu", "cuda" or "emulated"; `repro_device` is what the repro needs: "cpu", "cuda" or "any".
    `unavailable` checks whether the device exists.
    """
    device = Device(asked) if asked != "auto" else _automatic(repro_device, gpus)
    if device is Device.CUDA:
        return device, _on_gpus(gpus)
    if device is Device.CPU and repro_device == "cuda":
        return device, "Runs on the CPU although the repro asks for CUDA, so it may fail for that reason alone"
    worth = next(kind.worth for kind in kinds() if kind.device is device)
    return device, f"Runs on {worth}" if device is Device.CPU else f"Runs with {worth}"


def unavailable(device: Device, gpus: tuple[Gpu, ...]) -> str | None:
    """Return the reason why nothing can run on a device of this machine, or None if it can."""
    if device is Device.CUDA and not gpus:
        tools = [tool for kind in kinds() for tool in kind.tools]
        return f"no GPU found ({', '.join(tools[:-1])} and {tools[-1]} list none)"
    return None


def _on_gpus(gpus: tuple[Gpu, ...]) -> str:
    used = of_one_kind(gpus)
    if not used:
        return "Runs on a GPU: the results are those of CUDA"
    which = f"{len(used)} GPUs" if len(used) > 1 else "GPU"
    others = ", ".join(str(gpu) for gpu in gpus if gpu not in used)
    choosers = " or ".join(dict.fromkeys(name for gpu in gpus for name in kind_of(gpu).hide))
    left_out = f"; not used, because it is another model: {others} ({choosers} chooses)" if others else ""
    return f"Runs on {which}: {used[0].name}, driver {used[0].driver}: {kind_of(used[0]).worth}{left_out}"


def _automatic(repro_device: str, gpus: tuple[Gpu, ...]) -> Device:
    if repro_device == "cpu":
        return Device.CPU
    if gpus:
        return Device.CUDA
    return Device.EMULATED if repro_device == "cuda" else Device.CPU
