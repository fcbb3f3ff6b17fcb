"""Emulates streams and events: every call is synchronous, so each stream is always up to date."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from .gaps import Incomplete, gap_class, gap_function

if TYPE_CHECKING:
    from .device_profiles import Card


class Event(Incomplete):
    """A point in a stream, which is reached as soon as it is recorded."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._recorded = time.perf_counter()

    cuda_event = event_id = 0

    def record(self, stream: Any = None) -> None:  # noqa: ARG002
        """Record the current time."""
        self._recorded = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Return at once, because there is nothing to wait for."""

    def synchronize(self) -> None:
        """Return at once, because there is nothing to wait for."""

    def query(self) -> bool:
        """Whether all work is done, which is always true."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two events."""
        return (end_event._recorded - self._recorded) * 1000.0


class Stream(Incomplete):
    """A queue that is always empty. Stream 0 is the default one."""

    _numbers = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0, **given: Any) -> None:  # noqa: ARG002
        self.priority = priority
        self.stream_id = self.cuda_stream = int(given.get("stream_id", given.get("stream_ptr", next(self._numbers))))
        self.device_index, self.device_type = 0, 1

    device: Any = None

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority."""
        return 0, -5

    def query(self) -> bool:
        """Whether all work is done, which is always true."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph is being captured."""
        return False

    def synchronize(self) -> None:
        """Return at once, because there is nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once, because there is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Return at once, because there is nothing to wait for."""

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


class StreamContext:
    """Selects a stream while the context lasts. Like torch, it accepts None for no stream."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for the streams, events and graphs of `torch.cuda`, by name."""
    Stream.device = torch.device("cuda", 0)

    def default_stream(_device: Any = None) -> Stream:
        return default

    def nothing(*_: Any, **__: Any) -> None:
        """Do nothing: every stream is up to date."""

    class CudaEvent(Event):
        """A subclass of the class for all devices, as in torch."""

    class CudaStream(Stream):
        """A subclass of the class for all devices, as in torch."""

    class ExternalStream(CudaStream):
        """A stream of another library."""

        def __init__(self, stream_ptr: int, device: Any = None, **given: Any) -> None:
            super().__init__(device, stream_id=stream_ptr, **given)

    def from_pointer(data_ptr: int, device: Any = None) -> Stream:
        return ExternalStream(data_ptr, device)

    default = CudaStream(stream_id=0)
    return {
        "Stream": Stream,
        "Event": Event,
        "cuda.Stream": CudaStream,
        "cuda.get_stream_from_external": from_pointer,
        "cuda.ExternalStream": ExternalStream,
        "cuda.Event": CudaEvent,
        "cuda.StreamContext": StreamContext,
        "cuda.stream": StreamContext,
        "cuda.current_stream": default_stream,
        "cuda.default_stream": default_stream,
        "cuda.set_stream": nothing,
        "cuda.is_current_stream_capturing": lambda: False,
        "cuda.CUDAGraph": gap_class("torch.cuda.CUDAGraph"),
        "cuda.graph": gap_class("torch.cuda.graph"),
        "cuda.graph_pool_handle": gap_function("torch.cuda.graph_pool_handle"),
        "cuda.make_graphed_callables": gap_function("torch.cuda.make_graphed_callables"),
        "accelerator.Graph": gap_class("torch.accelerator.Graph"),
        "accelerator.current_stream": default_stream,
        "accelerator.set_stream": nothing,
        "Tensor.record_stream": nothing,
        "_C._cuda_getCurrentRawStream": lambda _device=0: 0,
        "_C._cuda_isCurrentStreamCapturing": lambda: False,
    }
