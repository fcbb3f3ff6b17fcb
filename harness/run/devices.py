"""Which GPUs there are, and which device a repro is to run on."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import frozen

from harness.model import Device

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 1024 * 1024
_FIELDS = ("index", "name", "memory.total", "memory.free", "driver_version", "uuid", "compute_cap")
_QUERY_S = 20.0


@frozen
class Gpu:
    """One NVIDIA GPU; memory in bytes; `capability` ("8.6") is empty where the driver is too old to tell."""

    index: int
    name: str
    memory: int
    free: int
    driver: str
    uuid: str = ""
    capability: str = ""

    @property
    def address(self) -> str:
        """What tells it apart from all others of this machine, as `CUDA_VISIBLE_DEVICES` takes it."""
        return self.uuid or str(self.index)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that show a process this GPU alone."""
        # nvidia-smi counts by bus, CUDA by speed unless it is told otherwise.
        return {"CUDA_VISIBLE_DEVICES": self.address, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    @property
    def facts(self) -> dict[str, Any]:
        """What an observation says of it; memory in bytes."""
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


def find_gpus(environment: Mapping[str, str] | None = None) -> tuple[Gpu, ...]:
    """The GPUs that nvidia-smi lists and `CUDA_VISIBLE_DEVICES` of `environment` lets through.

    Empty where there is no nvidia-smi, or where it fails.
    """
    for query in gpu_queries():
        try:
            answer = subprocess.run(query, capture_output=True, text=True, timeout=_QUERY_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if answer.returncode == 0:
            return visible(parse_gpus(answer.stdout), (environment or {}).get("CUDA_VISIBLE_DEVICES"))
    return ()


def gpu_queries() -> list[list[str]]:
    """The commands that list GPUs as `parse_gpus` reads them; the first that succeeds counts."""
    # compute_cap came with driver 510, and an unknown field fails the whole query.
    return [
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        for fields in (_FIELDS, _FIELDS[:-1])
    ]


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """Read nvidia-smi's CSV: index, name, total and free memory in MiB, driver, UUID, capability.

    A line that is not of this form is passed over.
    """
    gpus = []
    for row in csv.reader(listing.splitlines(), skipinitialspace=True):
        cells = [cell.strip() for cell in row]
        if len(cells) < len(_FIELDS) - 1 or not cells[0].isdigit():
            continue
        capability = cells[6] if len(cells) > len(_FIELDS) - 1 else ""
        gpus.append(
            Gpu(
                index=int(cells[0]),
                name=cells[1],
                memory=_mebibytes(cells[2]),
                free=_mebibytes(cells[3]),
                driver=cells[4],
                uuid=cells[5],
                capability=capability if capability.replace(".", "").isdigit() else "",
            )
        )
    return tuple(gpus)


def visible(gpus: tuple[Gpu, ...], setting: str | None) -> tuple[Gpu, ...]:
    """The GPUs that a `CUDA_VISIBLE_DEVICES` lets through, in its order; None lets all through.

    As CUDA does, the first name that fits no GPU ends the list.
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
    """The GPUs of the most frequent name, of the first among equals: a verdict is one kind's, not a mixture's."""
    if not gpus:
        return ()
    name, _ = Counter(gpu.name for gpu in gpus).most_common(1)[0]
    return tuple(gpu for gpu in gpus if gpu.name == name)


def choose_device(asked: str, repro_device: str, gpus: tuple[Gpu, ...]) -> tuple[Device, str]:
    """The device to run on, and a sentence that says which and what a result on it is worth.

    `asked` is "auto", "cpu", "cuda" or "emulated"; `repro_device` is what the repro needs: "cpu", "cuda"
    or "any". Whether the device is there is `unavailable`'s to say.
    """
    device = Device(asked) if asked != "auto" else _automatic(repro_device, gpus)
    if device is Device.CUDA:
        used = of_one_kind(gpus)
        count = f"{len(used)} x " if len(used) > 1 else ""
        name = f"GPU {count}{used[0].name}, driver {used[0].driver}" if used else "a GPU"
        others = ", ".join(str(gpu) for gpu in gpus if gpu not in used)
        left_out = f" Left out, as of another kind: {others} (CUDA_VISIBLE_DEVICES chooses)." if others else ""
        return device, f"Runs on {name}: what is seen is what CUDA does.{left_out}"
    if device is Device.EMULATED:
        return device, (
            "Runs with a stand-in for CUDA on the CPU: what Python code does is real, "
            "what kernels and the driver do is not."
        )
    if repro_device == "cuda":
        return device, "Runs on the CPU although the repro asks for CUDA: it may fail for that alone."
    return device, "Runs on the CPU: bugs of kernels and of the driver can't show."


def unavailable(device: Device, gpus: tuple[Gpu, ...]) -> str | None:
    """Why nothing can run on the device here, or None if it can."""
    if device is Device.CUDA and not gpus:
        return "no NVIDIA GPU is to be seen here (nvidia-smi lists none)"
    return None


def _automatic(repro_device: str, gpus: tuple[Gpu, ...]) -> Device:
    if repro_device == "cpu":
        return Device.CPU
    if gpus:
        return Device.CUDA
    return Device.EMULATED if repro_device == "cuda" else Device.CPU


def _mebibytes(cell: str) -> int:
    return int(float(cell) * _MIB) if cell.replace(".", "", 1).isdigit() else 0  # "[N/A]"
