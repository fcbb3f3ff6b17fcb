"""NVIDIA GPUs, listed by nvidia-smi."""

from __future__ import annotations

import csv
from collections.abc import Mapping

from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Gpu, Texts, visible
from harness.run.launch import output_of

_MIB = 1024 * 1024
_FIELDS = ("index", "name", "memory.total", "memory.free", "driver_version", "uuid", "compute_cap")
# Bits of its reasons (nvml.h) that slow a clock down by themselves; idle, a set limit and synchronisation do not.
_SLOWED = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


def _query(*fields: str) -> tuple[str, ...]:
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


QUERY = _query(*_FIELDS)  # for driver 510 and later
_WITH_CLOCKS = _query(*_FIELDS, "clocks_throttle_reasons.active")  # a driver that lacks a field lists nothing
# Messages of torch and the CUDA runtime when there is no usable GPU.
NO_GPU = (
    r"Found no NVIDIA driver|CUDA driver version is insufficient|Torch not compiled with CUDA enabled"
    r"|no CUDA-capable device|No CUDA GPUs are available|driver initialization failed|libcuda\.so"
)


def find(environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that nvidia-smi lists and `CUDA_VISIBLE_DEVICES` allows; none if it is missing or fails."""
    gpus = parse_gpus(output_of(_WITH_CLOCKS) or "") or parse_gpus(output_of(QUERY) or "")
    return visible(gpus, environment.get("CUDA_VISIBLE_DEVICES"))


def show(gpu: Gpu) -> dict[str, str]:
    """Return the variables that show a run its GPUs. nvidia-smi orders GPUs by bus, CUDA by speed by default."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(one.address for one in gpu.leased), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """Parse nvidia-smi's CSV: index, name, total and free memory in MiB, driver, UUID, capability, reasons in hex.

    Skips lines of any other form.
    """
    gpus = []
    for row in csv.reader(listing.splitlines(), skipinitialspace=True):
        cells = [cell.strip() for cell in row]
        if len(cells) < len(_FIELDS) or not cells[0].isdigit():
            continue
        gpus.append(
            Gpu(
                index=int(cells[0]),
                name=cells[1],
                memory=_mebibytes(cells[2]),
                free=_mebibytes(cells[3]),
                driver=cells[4],
                uuid=cells[5],
                capability=cells[6] if cells[6].replace(".", "").isdigit() else "",
                slowed=_reasons(cells[7]) if len(cells) > len(_FIELDS) else (),
            )
        )
    return tuple(gpus)


def _reasons(cell: str) -> tuple[str, ...]:
    try:
        bits = int(cell, 16)
    except ValueError:  # "[N/A]"
        return ()
    return tuple(reason for bit, reason in _SLOWED.items() if bits & bit)


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
            rf"{NO_GPU}|no kernel image is available|NVIDIA driver on your system is too old"
            r"|forward compatibility was attempted on non supported HW",
        ),
        Texts(
            Outcome.MACHINE_FAILED,
            r"unspecified launch failure|busy or unavailable|system not yet initialized"
            r"|device lost|GPU is lost|fallen off the bus|uncorrectable ECC error|NVRM: Xid",
        ),
    ),
)
