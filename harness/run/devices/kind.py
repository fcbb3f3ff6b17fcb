"""A kind of device: how to find its GPUs, make one visible to a process, and recognise its errors."""

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
        """The identifier of this GPU, unique among those of its kind on this machine."""
        return self.uuid or str(self.index)

    @property
    def lock_name(self) -> str:
        """The name of its file lock. The names for NVIDIA must not change."""
        return f"gpu-{self.address}" if self.kind == "cuda" else f"gpu-{self.kind}-{self.address}"

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that an observation records; memory is in bytes."""
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
    """A regular expression for messages with a known outcome, on this kind of device only or `anywhere`."""

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

    `device` is the name that a repro requests; PyTorch calls AMD GPUs "cuda" too. `worth` says what a result on it
    means, after "Runs on ...". `tools` are the programs that list its GPUs; `find` calls them and honours the given
    environment variables. `show` returns the variables that make a single GPU visible, `hide` has those that hide all
    GPUs, and `passed` names further variables of the user's environment that are passed to a run.
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
    if not gpus:
        return ()
    name, _ = Counter(gpu.name for gpu in gpus).most_common(1)[0]
    return tuple(gpu for gpu in gpus if gpu.name == name)
