"""Streams and events: work is done when it is called, so each stream is always up to date."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from .gaps import Incomplete, gap_class, gap_function

if TYPE_CHECKING:
    from .device_profiles import Card


class Event(Incomplete):
    """A point in a stream, passed the moment it is recorded."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._recorded = time.perf_counter()

    cuda_event = event_id = 0

    def record(self, stream: Any = None) -> None:  # noqa: ARG002
        """Take the time."""
        self._recorded = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether all is done, which it is."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events."""
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
        """Lowest and highest priority."""
        return 0, -5

    def query(self) -> bool:
        """Whether all is done, which it is."""
        return True

    def is_capturing(self) -> bool:
        """Whether a graph is being recorded."""
        return False

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event at this point of the stream."""
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
    """Work under a stream. torch accepts None for no stream, and so does this."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - one shape for every module of answers
    """Answers of `torch.cuda` about streams, events and graphs."""
    Stream.device = torch.device("cuda", 0)

    def default_stream(_device: Any = None) -> Stream:
        return default

    def nothing(*_: Any, **__: Any) -> None:
        """Nothing to do: every stream is up to date."""

    class CudaEvent(Event):
        """Of a class of its own, under that of every device, as in torch."""

    class CudaStream(Stream):
        """Of a class of its own, under that of every device, as in torch."""

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
