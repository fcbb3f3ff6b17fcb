"""Where probes run, by the command line: on lanes of this machine, or on the workers of a cluster."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from harness.scheduling.lanes import LocalLanes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.cli.wiring import Workshop
    from harness.events import Reporter
    from harness.model import Device
    from harness.run.devices import Gpu
    from harness.scheduling.cluster import ClusterProber
    from harness.scheduling.probers import Probing


def lane_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--lanes` and `--scheduler`, for every command that runs many probes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@frozen
class Place:
    """Where a command's probes run: here, or with `remote` on the workers of a cluster.

    `gpus` are those that a probe can get there.
    """

    workshop: Workshop
    lanes: int | None
    remote: ClusterProber | None = None

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs to choose a device by."""
        return self.remote.here.gpus if self.remote is not None else self.workshop.gpus

    @property
    def prober(self) -> Probing:
        """What prepares and runs a probe."""
        return self.remote or self.workshop.prober

    def lane_count(self, device: Device) -> int:
        """How many lanes: those asked for, and on a cluster no more than it has room for. Raises `NoWorkers`."""
        if self.remote is None:
            return self.lanes or 1
        slots = self.remote.slots(device)
        return min(self.lanes or slots, slots)

    def open_lanes(self, device: Device) -> LocalLanes:
        """Lanes for one device; on a cluster each waits for a worker. Raises `NoWorkers` where it has no room."""
        return LocalLanes(self.lane_count(device))


@contextlib.contextmanager
def open_place(workshop: Workshop, lanes: int | None, scheduler: str | None, reporter: Reporter) -> Iterator[Place]:
    """This machine, or the cluster of a scheduler; `reporter` is warned of each worker that is left out.

    Raises `NoWorkers`, and `UserMistake` where Dask is not installed.
    """
    if scheduler is None:
        yield Place(workshop, lanes)
        return
    # Only a command with a scheduler pays for what it takes to speak to one.
    from harness.scheduling.cluster import ClusterProber, Connection

    connection = Connection.open(scheduler, reporter)
    try:
        yield Place(workshop, lanes, ClusterProber.over(connection, workshop.prober))
    finally:
        connection.close()


_OPTIONS = [
    click.option(
        "--lanes",
        type=click.IntRange(1, 64),
        default=None,
        show_default="1, or all that the scheduler's workers have",
        help="How many probes run at a time.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run the probes on the workers of this Dask scheduler that are like this machine",
    ),
]
