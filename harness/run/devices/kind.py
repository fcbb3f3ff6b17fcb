"""A kind of device: what finds its GPUs, shows a process one of them, and names what goes wrong on it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from harness.model import Device, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@frozen
class Gpu:
    """One GPU; memory in bytes, 0 if unknown; `kind` is the name of its `DeviceKind`.

    `capability` is what kernels are compiled for ("8.6", "gfx942"), empty if the driver is too old to report it.
    """

    index: int
    name: str
    memory: int
    free: int
    driver: str
    uuid: str = ""
    capability: str = ""
    kind: str = "cuda"

    @property
    def address(self) -> str:
        """Identifies it among all GPUs of its kind on this machine."""
        return self.uuid or str(self.index)

    @property
    def lock_name(self) -> str:
        """The name of its file lock; NVIDIA's names must not change."""
        return f"gpu-{self.address}" if self.kind == "cuda" else f"gpu-{self.kind}-{self.address}"

    @property
    def facts(self) -> dict[str, Any]:
        """What an observation records of it; memory in bytes."""
        known = {
            "gpu": self.index,
            "name": self.name,
            "driver": self.driver,
            "capability": self.capability,
            "device_memory": self.memory,
        }
        return {key: value for key, value in known.items() if value not in ("", 0) or key == "gpu"}

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.name})"


@frozen
class Texts:
    """A regular expression for messages that mean an outcome, on this kind of device only or `anywhere`."""

    outcome: Outcome
    pattern: str
    anywhere: bool = False


def _nothing_found(environment: Mapping[str, str]) -> tuple[Gpu, ...]:  # noqa: ARG001
    return ()


def _nothing_shown(gpu: Gpu) -> dict[str, str]:  # noqa: ARG001
    return {}


@frozen(kw_only=True)
class DeviceKind:
    """Everything specific to one kind of device.

    `device` is what a repro asks for; PyTorch calls AMD GPUs "cuda" too. `worth` says what a result on it means, after
    "Runs on ...". `tools` are the programs that list its GPUs; `find` calls them, with the variables of an environment.
    `show` gives the variables that show a process a single GPU, `hide` those that hide all of them, and `passed` names
    further variables of the user's environment that a run gets.
    """

    name: str
    device: Device
    worth: str
    tools: tuple[str, ...] = ()
    find: Callable[[Mapping[str, str]], tuple[Gpu, ...]] = _nothing_found
    show: Callable[[Gpu], dict[str, str]] = _nothing_shown
    hide: Mapping[str, str] = field(factory=dict)
    passed: tuple[str, ...] = ()
    texts: tuple[Texts, ...] = ()


def visible(gpus: tuple[Gpu, ...], setting: str | None) -> tuple[Gpu, ...]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES` allows, in its order; all for None.

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
    """The GPUs with the most frequent name, the first one on a tie: a verdict must come from one kind of GPU."""
    if not gpus:
        return ()
    name, _ = Counter(gpu.name for gpu in gpus).most_common(1)[0]
    return tuple(gpu for gpu in gpus if gpu.name == name)
