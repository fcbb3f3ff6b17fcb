"""AMD GPUs, listed by amd-smi; PyTorch's builds for ROCm call them "cuda".

This follows the documentation of ROCm 6 and 7 and is tested with a program that prints what that tool prints. It has
not been tested on hardware. An observation records `torch_hip` (`torch.version.hip`) if torch was built for ROCm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from harness.model import Device, Outcome
from harness.run.devices import DeviceKind, Gpu, Texts, visible
from harness.run.launch import output_of

_MIB = 1024 * 1024
_AMD_STATIC = ("amd-smi", "static", "--asic", "--driver", "--vram", "--json")
_AMD_METRIC = ("amd-smi", "metric", "--mem-usage", "--json")


def find(environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs that amd-smi lists and `HIP_VISIBLE_DEVICES` allows; none if it is missing or fails."""
    gpus = parse_amd_smi(_json_of(_AMD_STATIC), _json_of(_AMD_METRIC))
    allowed = visible(gpus, environment.get("ROCR_VISIBLE_DEVICES"))
    return visible(allowed, environment.get("HIP_VISIBLE_DEVICES"))


def show(gpu: Gpu) -> dict[str, str]:
    """Return the variable that makes the GPUs of a run visible; HIP numbers GPUs as amd-smi does."""
    return {"HIP_VISIBLE_DEVICES": ",".join(str(one.index) for one in gpu.leased)}


def parse_amd_smi(static: Any, metric: Any = None) -> tuple[Gpu, ...]:
    """Parse amd-smi's JSON of `static` and `metric --mem-usage`: a list, in newer versions below "gpu_data"."""
    used = {row.get("gpu"): _megabytes(_at(row, "mem_usage", "used_vram")) for row in _rows(metric)}
    gpus = []
    for row in _rows(static):
        if not isinstance(row.get("gpu"), int):
            continue
        total = _megabytes(_at(row, "vram", "size"))
        gpus.append(
            Gpu(
                index=row["gpu"],
                name=str(_at(row, "asic", "market_name") or "AMD GPU"),
                memory=total,
                free=max(total - used.get(row["gpu"], 0), 0),
                driver=str(_at(row, "driver", "version") or ""),
                uuid=_unique(_at(row, "asic", "asic_serial")),
                capability=str(_at(row, "asic", "target_graphics_version") or ""),
                kind="rocm",
            )
        )
    return tuple(gpus)


def _json_of(query: tuple[str, ...]) -> Any:
    """Return the JSON that a program prints, or None if it is missing, fails, or prints anything else."""
    try:
        return json.loads(output_of(query) or "null")
    except ValueError:
        return None


def _rows(answer: Any) -> list[dict[str, Any]]:
    rows = answer.get("gpu_data") if isinstance(answer, dict) else answer
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _at(row: Any, *keys: str) -> Any:
    for key in keys:
        row = row.get(key) if isinstance(row, dict) else None
    return row


def _megabytes(size: Any) -> int:
    """amd-smi writes 2**20 bytes as MB."""
    value = size.get("value") if isinstance(size, dict) else size
    return int(value * _MIB) if isinstance(value, int | float) else 0


def _unique(text: Any) -> str:
    """An id in the form that `ROCR_VISIBLE_DEVICES` accepts; some cards have none."""
    hexadecimal = re.fullmatch(r"0x([0-9a-fA-F]+)", str(text))
    return f"GPU-{hexadecimal[1].lower()}" if hexadecimal and int(hexadecimal[1], 16) else ""


KIND = DeviceKind(
    name="rocm",
    device=Device.CUDA,
    worth="the results are those of ROCm",
    tools=("amd-smi",),
    find=find,
    show=show,
    hide={"HIP_VISIBLE_DEVICES": "-1"},
    passed=("HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH", "HIP_PATH"),
    texts=(
        Texts(
            Outcome.OUT_OF_MEMORY,
            r"HIP out of memory|HIP error: out of memory|hipErrorOutOfMemory|HIPBLAS_STATUS_ALLOC_FAILED",
            anywhere=True,
        ),
        Texts(
            Outcome.DEVICE_FAILED,
            r"No HIP GPUs are available|no ROCm-capable device|hipErrorNoBinaryForGpu|hipErrorNoDevice"
            r"|HIP error: (invalid device function|device kernel image is invalid|no ROCm-capable device)"
            r"|libamdhip64\.so",
        ),
        Texts(Outcome.MACHINE_FAILED, r"unspecified launch failure|amdgpu.*(ring .* timeout|GPU reset)"),
    ),
)
