"""The devices to run on: what a kind of device is, and which GPUs this machine has.

Each module of this folder describes one vendor by a `DeviceKind`: how to find its GPUs, make one visible to a process,
and recognise its errors. Nothing else needs to know it, so support for another vendor is one new module here, which is
registered by being here. To a repro, "cuda" is any GPU; if PyTorch calls the vendor's GPUs by another name ("xpu"), its
`show` sets HARNESS_DEVICE to that name.
"""

from __future__ import annotations

import pkgutil
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from attrs import field, frozen

from harness.errors import UserMistake
from harness.model import Device, Outcome
from harness.model.text import one_line

_WIDTH = 300


@frozen
class Gpu:
    """One GPU; memory in bytes, 0 if unknown; `kind` is the name of its `DeviceKind`.

    `capability` is what kernels are compiled for ("8.6", "gfx942"), empty if the driver is too old to report it;
    `slowed` are the vendor's reasons why its clock was slowed down when it was listed; `beside` are the other GPUs,
    of the same model, that a run leased with it.
    """

    index: int
    name: str
    memory: int
    free: int
    driver: str
    uuid: str = ""
    capability: str = ""
    kind: str = "cuda"
    slowed: tuple[str, ...] = ()
    beside: tuple[Gpu, ...] = ()

    @property
    def leased(self) -> tuple[Gpu, ...]:
        """This GPU and those that a run leased with it."""
        return (self, *self.beside)

    @property
    def address(self) -> str:
        """The identifier of this GPU, unique among those of its kind on this machine."""
        return self.uuid or str(self.index)

    @property
    def lock_name(self) -> str:
        """The name of its file lock. The names for NVIDIA must not change."""
        return f"gpu-{self.address}" if self.kind == "cuda" else f"gpu-{self.kind}-{self.address}"

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that an observation records, as they were before its run; memory is in bytes."""
        known = {
            "gpu": self.index,
            "name": self.name,
            "gpus": len(self.leased) if self.beside else 0,
            "driver": self.driver,
            "capability": self.capability,
            "device_memory": self.memory,
            "device_memory_in_use": max(gpu.memory - gpu.free if gpu.free else 0 for gpu in self.leased),
            "slowed": ", ".join(self.slowed),
        }
        return {key: value for key, value in known.items() if value not in ("", 0) or key == "gpu"}

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.name})"


@frozen
class Texts:
    """A regular expression for messages with a known outcome, on this kind of device only or `anywhere`."""

    outcome: Outcome
    pattern: str
    anywhere: bool = False


@frozen(kw_only=True)
class DeviceKind:
    """Everything specific to one kind of device.

    `device` is the name that a repro requests; PyTorch calls AMD GPUs "cuda" too. `worth` says what a result on it
    means, after "Runs on ...". `tools` are the programs that list its GPUs; `find` calls them and honours the given
    environment variables. `show` returns the variables that show a run only its GPUs, `hide` has those that hide all
    GPUs, and `passed` names further variables of the user's environment that are passed to a run.
    """

    name: str
    device: Device
    worth: str
    tools: tuple[str, ...] = ()
    find: Callable[[Mapping[str, str]], tuple[Gpu, ...]] = lambda _: ()
    show: Callable[[Gpu], dict[str, str]] = lambda _: {}
    hide: Mapping[str, str] = field(factory=dict)
    passed: tuple[str, ...] = ()
    texts: tuple[Texts, ...] = ()


def visible(gpus: tuple[Gpu, ...], setting: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs that `CUDA_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES` allows, in its order; all for None.

    As in CUDA and HIP, the first name that matches no GPU ends the list.
    """
    if setting is None:
        return gpus
    chosen: list[Gpu] = []
    for name in (part.strip() for part in setting.split(",")):
        fits = [gpu for gpu in gpus if name and (str(gpu.index) == name or gpu.uuid.startswith(name))]
        if len(fits) != 1:
            break
        chosen += fits
    return tuple(chosen)


def of_one_kind(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return the GPUs of the most frequent model (ties: the first): a verdict must come from one model of GPU."""
    counted = Counter(gpu.name for gpu in gpus).most_common(1)
    return tuple(gpu for gpu in gpus if gpu.name == counted[0][0])


@cache
def kinds() -> tuple[DeviceKind, ...]:
    """Return all kinds, sorted by the names of their modules."""
    names = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    return tuple(kind for name in names for kind in vars(import_module(name)).values() if isinstance(kind, DeviceKind))


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
    """Return the outcome that one of these texts means on a device, and that text in one line; out of memory first."""
    candidates = list(texts)
    rules = [rule for kind in kinds() for rule in kind.texts if rule.anywhere or kind.device is device]
    for rule in sorted(rules, key=lambda rule: not rule.anywhere):
        for text in candidates:
            if re.search(rule.pattern, text):
                return rule.outcome, one_line(text, _WIDTH)
    return None


def choose_device(choice: str, repro_device: str, gpus: tuple[Gpu, ...], ranks: int = 1) -> tuple[Device, str]:
    """Return the device to run on, and a sentence that names it and says what a result on it means.

    `choice` is "auto", "cpu", "cuda" or "emulated"; `repro_device` is what the repro needs: "cpu", "cuda" or "any".
    `ranks` is the number of processes that a launcher starts. `unavailable` checks whether the device exists. Raises
    `UserMistake` for several processes with the stand-in for CUDA.
    """
    device = Device(choice) if choice != "auto" else _automatic(repro_device, gpus)
    if device is Device.CUDA:
        return device, _on_gpus(gpus) + (f"; {ranks} processes, each with a GPU" if ranks > 1 else "")
    if ranks > 1 and device is Device.EMULATED and choice == "auto":
        device = Device.CPU
    if ranks > 1 and device is Device.EMULATED:
        why = f"the stand-in for CUDA is a single GPU, and the repro launches {ranks} processes"
        raise UserMistake(why, hint=f"--device cpu runs {ranks} processes on the CPU with gloo")
    if ranks > 1:
        worth = "where bugs in GPU kernels, drivers and NCCL can't show"
        return device, f"Runs as {ranks} processes on the CPU with gloo, {worth}"
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


def check_available(device: Device, gpus: tuple[Gpu, ...]) -> None:
    """Raise `UserMistake` if nothing can run on a device of this machine."""
    if (why := unavailable(device, gpus)) is not None:
        raise UserMistake(why, hint="--device emulated runs it with the stand-in for CUDA")


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
