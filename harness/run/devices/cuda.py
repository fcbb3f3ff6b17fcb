"""NVIDIA GPUs, listed by nvidia-smi."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Gpu, Texts, told_by, visible

_MIB = 1024 * 1024
_FIELDS = ("index", "name", "memory.total", "memory.free", "driver_version", "uuid", "compute_cap")
# Messages of torch and the CUDA runtime when there is no usable GPU.
NO_GPU = (
    r"Found no NVIDIA driver|CUDA driver version is insufficient|Torch not compiled with CUDA enabled"
    r"|no CUDA-capable device|No CUDA GPUs are available|driver initialization failed|libcuda\.so"
)


def find(environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that nvidia-smi lists and `CUDA_VISIBLE_DEVICES` allows; none if it is missing or fails."""
    for query in gpu_queries():
        if (listing := told_by(query)) is not None:
            return visible(parse_gpus(listing), environment.get("CUDA_VISIBLE_DEVICES"))
    return ()


def show(gpu: Gpu) -> dict[str, str]:
    """Return the variables that make one GPU visible. nvidia-smi orders GPUs by bus, CUDA by speed by default."""
    return {"CUDA_VISIBLE_DEVICES": gpu.address, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def gpu_queries() -> list[list[str]]:
    """Return the commands that list GPUs for `parse_gpus`, in the order to try them until one succeeds."""
    # compute_cap came with driver 510, and an unknown field fails the whole query.
    return [
        ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        for fields in (_FIELDS, _FIELDS[:-1])
    ]


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """Parse nvidia-smi's CSV: index, name, total and free memory in MiB, driver, UUID, capability.

    Skips lines of any other form.
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


def _mebibytes(cell: str) -> int:
    return int(float(cell) * _MIB) if cell.replace(".", "", 1).isdigit() else 0  # "[N/A]"


KIND = DeviceKind(
    name="cuda",
    device=Device.CUDA,
    worth="the results are those of CUDA",
    tools=("nvidia-smi",),
    find=find,
    show=show,
    hide={"CUDA_VISIBLE_DEVICES": ""},
    texts=(
        Texts(
            Outcome.OUT_OF_MEMORY,
            r"CUDA out of memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED",
            anywhere=True,
        ),
        Texts(
            Outcome.DEVICE_FAILED,
            rf"{NO_GPU}|no kernel image is available|busy or unavailable|NVIDIA driver on your system is too old"
            r"|forward compatibility was attempted on non supported HW|system not yet initialized"
            r"|device lost|GPU is lost|fallen off the bus|uncorrectable ECC error",
        ),
    ),
)
