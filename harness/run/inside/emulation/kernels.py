"""Emulates kernels: they can be found, defined and imported, but launching one is a gap."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from .gaps import Incomplete, as_gap, gap, gap_class, gap_function

if TYPE_CHECKING:
    from .device_profiles import Card

# Settings and build information, which work without a driver and so are not replaced.
_HARMLESS = ("_cuda_getCompiledVersion", "_cuda_getArchFlags", "_cuda_isHistoryEnabled", "_cuda_tunableop_")


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for the functions that call an operator, which may have no kernel for the CPU, by name."""
    operators = torch._ops  # noqa: SLF001 - operators of torch.ops have no public class

    def watched(call: Any) -> Any:
        @functools.wraps(call)
        def called(*given: Any, **named: Any) -> Any:
            try:
                return call(*given, **named)
            except NotImplementedError as error:
                if as_gap(error) is None:
                    raise
                raise gap(f"the operator {given[0]}") from error

        return called

    return {
        "_ops.OpOverload.__call__": watched(operators.OpOverload.__call__),
        "_ops.OpOverloadPacket.__call__": watched(operators.OpOverloadPacket.__call__),
    }


def close_the_rest(torch: Any, answered: set[str]) -> None:
    """Replace every other driver function of `torch._C` by a gap, so that none is called by accident."""
    for name in dir(torch._C):  # noqa: SLF001 - the driver functions have no public names
        if name.startswith("_cuda_") and f"_C.{name}" not in answered and not name.startswith(_HARMLESS):
            setattr(torch._C, name, gap_function(f"torch._C.{name}"))  # noqa: SLF001


class Driver(Incomplete):
    """An active triton driver for the emulated card, with triton's old and new API."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self.utils = Utils(card)
        self.launcher_cls = gap_class("the launch of a triton kernel")

    @staticmethod
    def is_active() -> bool:
        """Whether this driver supports the machine, which is always true."""
        return True

    def get_current_target(self) -> Any:
        """Return the target to compile for."""
        return importlib.import_module("triton.backends.compiler").GPUTarget(
            "cuda", self._card.arch, self._card.warp_size
        )

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        """Return the compute capability as (major, minor)."""
        return self._card.capability

    def get_current_device(self) -> int:
        """Return the index of the one device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Select the one device."""

    def get_current_stream(self, _device: Any = None) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return the device as an object of torch."""
        return sys.modules["torch"].device("cuda", 0)

    def get_device_interface(self) -> Any:
        """Return the module of torch for the device."""
        return sys.modules["torch"].cuda

    def get_benchmarker(self) -> Any:
        """Return the benchmarker, which exists but raises a gap when it is called."""
        return gap_function("the benchmark of a triton kernel")


class Utils(Incomplete):
    """The properties of the card for triton."""

    def __init__(self, card: Card) -> None:
        self._card = card

    def get_device_properties(self, _device: int = 0) -> dict[str, int]:
        """Return the properties that triton reads, under its names."""
        return {
            "max_shared_mem": self._card.shared_memory_per_block_optin,
            "max_num_regs": self._card.regs_per_multiprocessor,
            "multiprocessor_count": self._card.multi_processor_count,
            "warpSize": self._card.warp_size,
            "sm_clock_rate": self._card.clock_rate,
            "mem_clock_rate": self._card.memory_clock_rate,
            "mem_bus_width": self._card.memory_bus_width,
        }


def activate_triton(module: Any, card: Card) -> None:
    """Set the emulated driver in triton (module `triton.runtime.driver`)."""
    module.driver.set_active(Driver(card))


def stop_launches(module: Any) -> None:
    """Raise a gap when a triton kernel is launched (module `triton.runtime.jit`), before it is compiled."""

    def run(kernel: Any, *_: Any, **__: Any) -> Any:
        raise gap(f"the launch of the triton kernel {getattr(kernel, '__name__', kernel)}")

    module.JITFunction.run = run
