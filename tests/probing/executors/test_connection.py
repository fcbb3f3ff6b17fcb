"""An address without a scheduler gives one sentence, quickly."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from machines import machines, wait_for

from harness.errors import NoWorkers
from harness.probing.executors import connect


def refused(address):
    """The message for an address."""
    with pytest.raises(NoWorkers) as caught:
        connect(address, print)
    assert caught.value.exit_code == 7
    assert "dask scheduler" in caught.value.hint
    return caught.value.message


def test_an_address_without_a_listener_is_reported():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        assert refused(address) == f"the scheduler at {address} can't be reached: Connection refused"


@pytest.mark.parametrize("address", ["bar://head:1", "tcp://head:12x", "::"])
def test_an_invalid_address_is_reported(address):
    assert "can't be reached" in refused(address)


def test_an_address_of_another_service_is_reported(house):
    """Also to a caller like a notebook, whose cells run in an event loop."""

    async def cell(address):
        return refused(address)

    # The loop has a thread of its own, since a browser of another test may have one in this thread.
    with house.served() as url, ThreadPoolExecutor(max_workers=1) as threads:
        asked = threads.submit(lambda: asyncio.run(cell(f"tcp://{urlsplit(url).netloc}")))
        assert "it is not a Dask scheduler" in asked.result()


def test_a_worker_that_is_started_with_the_command_is_waited_for(tmp_path):
    with machines(tmp_path, {}) as there:
        wait_for(lambda: "Scheduler at" in there.log("scheduler"), "the scheduler")
        there.add("late")  # its process is only starting
        connection = connect(there.address, print)
        try:
            assert len(connection.client.scheduler_info()["workers"]) == 1
        finally:
            connection.close()
