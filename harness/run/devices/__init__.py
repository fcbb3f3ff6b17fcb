"""Devices to run on: one module for each kind, and `registry`, which finds and queries these modules."""

from harness.run.devices.kind import DeviceKind, Gpu, Texts, of_one_kind, visible
from harness.run.devices.registry import choose_device, find_gpus, kind_of, outcome_of_text, unavailable

__all__ = [
    "DeviceKind",
    "Gpu",
    "Texts",
    "choose_device",
    "find_gpus",
    "kind_of",
    "of_one_kind",
    "outcome_of_text",
    "unavailable",
    "visible",
]
