"""Emulates what runs on the card: streams are always up to date; kernels exist, but launching one is a gap.

A fixed value, nothing, or an emulation gap replaces a function of the driver. A gap is a call that only a real GPU can
carry out. A separate exception distinguishes it from a bug. If torch or another library reaches the driver in a way
that the stand-in does not know, the harness recognises the message (see harness/run/devices/cpu.py).
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
import sys
import time
from typing import Any

# The dispatcher's messages for an operator that only has a kernel for CUDA.
_ONLY_ON_THE_CARD = re.compile(
    r"with arguments from the ('CUDA' backend|'CPU' backend.*\[(?:\w+, )*CUDA[,\]])", re.DOTALL
)


class EmulationGap(RuntimeError):
    """The stand-in for CUDA cannot carry out this call; only a GPU can."""


class AttributeEmulationGap(EmulationGap, AttributeError):
    """A missing attribute that only a GPU has: `hasattr` and `getattr` with a default still work."""


class Incomplete:
    """Base class of stand-ins for driver objects: a missing attribute is a gap."""

    def __getattr__(self, name: str) -> Any:
        what = f"{type(self).__name__}.{name}"
        if name.startswith("__"):
            raise AttributeError(what)
        raise AttributeEmulationGap(_sentence(what))


def gap(what: str) -> EmulationGap:
    """Return the gap to raise for a call named `what`."""
    return EmulationGap(_sentence(what))


def _sentence(what: str) -> str:
    return f"{what} needs a real GPU: the stand-in for CUDA has no answer to it"


def needs_the_card(error: NotImplementedError) -> bool:
    """Whether an operator failed because it has no kernel for the CPU."""
    return _ONLY_ON_THE_CARD.search(str(error)) is not None


def gap_function(name: str) -> Any:
    """Return a function that raises the gap of this name."""

    def missing(*_: Any, **__: Any) -> Any:
        raise gap(name)

    missing.__name__ = missing.__qualname__ = name.rpartition(".")[2]
    return missing


def gap_class(name: str) -> Any:
    """Return a class that raises the gap of this name when it is called; annotations may still use it."""

    def new(_cls: type, *_: Any, **__: Any) -> Any:
        raise gap(name)

    return type(name.rpartition(".")[2], (), {"__new__": new})


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing: the work of the emulated card is always finished, and its memory is never used."""


def fixed(value: Any) -> Any:
    """Return a function that accepts any arguments and returns this value."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


# Settings and build information, which work without a driver and so are not replaced.
_HARMLESS = ("_cuda_getCompiledVersion", "_cuda_getArchFlags", "_cuda_isHistoryEnabled", "_cuda_tunableop_")


class Event(Incomplete):
    """A point in a stream, which is reached as soon as it is recorded."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._recorded = time.perf_counter()

    cuda_event = event_id = 0

    def record(self, stream: Any = None) -> None:  # noqa: ARG002
        """Record the current time."""
        self._recorded = time.perf_counter()

    wait = synchronize = nothing
    query = fixed(True)  # all work is done

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two events."""
        return (end_event._recorded - self._recorded) * 1000.0


class Stream(Incomplete):
    """A queue that is always empty. Stream 0 is the default one."""

    _numbers = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0, **given: Any) -> None:  # noqa: ARG002
        self.priority = priority
        self.stream_id = self.cuda_stream = int(given.get("stream_id", next(self._numbers)))
        self.device_index, self.device_type = 0, 1

    device: Any = None

    priority_range = fixed((0, -5))  # the lowest and the highest
    synchronize = wait_stream = wait_event = nothing
    query = fixed(True)  # all work is done
    is_capturing = fixed(False)

    def record_event(self, event: Any = None) -> Any:
        """Record an event at this point of the stream and return it."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)


def answers(torch: Any) -> dict[str, Any]:
    """Return replacements for streams, events, graphs, and the functions that call an operator, by name."""
    return {**_streams(torch), **_operators(torch)}


def _streams(torch: Any) -> dict[str, Any]:
    Stream.device = torch.device("cuda", 0)

    def default_stream(_device: Any = None) -> Stream:
        return default

    default = Stream(stream_id=0)
    return {
        "Stream": Stream,
        "Event": Event,
        "cuda.Stream": Stream,
        "cuda.Event": Event,
        "cuda.current_stream": default_stream,
        "cuda.default_stream": default_stream,
        "cuda.set_stream": nothing,
        "accelerator.current_stream": default_stream,
        "accelerator.set_stream": nothing,
        "Tensor.record_stream": nothing,
        "_C._cuda_getCurrentRawStream": fixed(0),
        "_C._cuda_isCurrentStreamCapturing": fixed(False),
    }


def _operators(torch: Any) -> dict[str, Any]:
    """An operator may have no kernel for the CPU."""
    operators = torch._ops  # noqa: SLF001 - operators of torch.ops have no public class

    def watched(call: Any) -> Any:
        @functools.wraps(call)
        def called(*given: Any, **named: Any) -> Any:
            try:
                return call(*given, **named)
            except NotImplementedError as error:
                if not needs_the_card(error):
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

    def __init__(self, card: Any) -> None:
        self._card = card
        self.utils = Utils(card)
        self.launcher_cls = gap_class("the launch of a triton kernel")

    is_active = fixed(True)
    get_current_device = get_current_stream = fixed(0)
    set_current_device = nothing
    get_benchmarker = fixed(gap_function("the benchmark of a triton kernel"))

    def get_current_target(self) -> Any:
        """Return the target to compile for."""
        return importlib.import_module("triton.backends.compiler").GPUTarget(
            "cuda", self._card.arch, self._card.warp_size
        )

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        """Return the compute capability as (major, minor)."""
        capability: tuple[int, int] = self._card.capability
        return capability

    def get_active_torch_device(self) -> Any:
        """Return the device as an object of torch."""
        return sys.modules["torch"].device("cuda", 0)

    def get_device_interface(self) -> Any:
        """Return the module of torch for the device."""
        return sys.modules["torch"].cuda


class Utils(Incomplete):
    """The properties of the card for triton."""

    def __init__(self, card: Any) -> None:
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


def activate_triton(module: Any, card: Any) -> None:
    """Set the emulated driver in triton (module `triton.runtime.driver`)."""
    module.driver.set_active(Driver(card))


def stop_launches(module: Any) -> None:
    """Raise a gap when a triton kernel is launched (module `triton.runtime.jit`), before it is compiled."""

    def run(kernel: Any, *_: Any, **__: Any) -> Any:
        raise gap(f"the launch of the triton kernel {getattr(kernel, '__name__', kernel)}")

    module.JITFunction.run = run
