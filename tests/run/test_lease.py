"""What a run waits for: one probe at a time per GPU, with enough memory, and memory of the machine for runs at once."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time

import pytest
from attrs import evolve
from support import Heard

from harness.model.repro import GpuNeed
from harness.run.devices import Gpu
from harness.run.lease import GpuPool, MemoryGate, NoGpu
from harness.run.process import Cancelled, cancelled_by, pause

GIB = 2**30
T4 = Gpu(0, "NVIDIA T4", 15 * GIB, 14 * GIB, "550.54", "GPU-a")
TWIN = evolve(T4, index=1, uuid="GPU-b")


@pytest.fixture
def pool_of(tmp_path):
    """A pool with made-up listings, one after another, and its reports."""

    def make(*listings, wait_s=10.0, gpus=None):
        heard, left = Heard(), list(listings)
        find = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
        return GpuPool(gpus or listings[0], tmp_path, heard, find, wait_s, look_s=0.1), heard

    return make


@contextlib.contextmanager
def once(condition, call):
    """Call something as soon as a condition holds."""

    def wait():
        while not condition():
            time.sleep(0.01)
        call()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


@contextlib.contextmanager
def cancelled_once(condition):
    """Cancel what happens in the context as soon as a condition holds."""
    cancel = threading.Event()
    with once(condition, cancel.set), cancelled_by(cancel), pytest.raises(Cancelled):
        yield


def test_the_gpu_with_the_most_free_memory_is_leased_first(pool_of):
    pool, heard = pool_of((evolve(T4, free=2 * GIB), TWIN))
    with pool.lease(GpuNeed(GIB)) as gpu:
        assert gpu == TWIN
    assert heard.events == []


def test_each_gpu_takes_one_probe_at_a_time(pool_of):
    pool, heard = pool_of((T4, TWIN))
    with pool.lease(GpuNeed(GIB)) as first, pool.lease(GpuNeed(GIB)) as second:
        assert {first, second} == {T4, TWIN}
        with cancelled_once(lambda: heard.events), pool.lease(GpuNeed(GIB)):
            pass
    assert heard.notes == ["waiting for a GPU: another probe runs"]
    with pool.lease(GpuNeed(GIB)) as again:
        assert again == T4


def test_a_probe_gets_all_its_gpus_at_once_or_none(pool_of):
    pool, heard = pool_of((T4, TWIN))
    with pool.lease(GpuNeed(GIB, count=2)) as gpu:
        assert [one.address for one in gpu.leased] == ["GPU-a", "GPU-b"]
        assert (gpu.facts["gpu"], gpu.facts["gpus"]) == (0, 2)
    with pool.lease(GpuNeed(GIB)), cancelled_once(lambda: heard.events), pool.lease(GpuNeed(GIB, count=2)):
        pass
    assert heard.notes == ["waiting for 2 GPUs: another probe runs"]
    with pool.lease(GpuNeed(GIB)), pool.lease(GpuNeed(GIB)):
        pass
    words = "3 GPUs of one model are needed, this machine has 2 such GPUs"
    with pytest.raises(NoGpu, match=words), pool.lease(GpuNeed(GIB, count=3)):
        pass


def test_waiting_for_another_probe_has_no_limit(pool_of):
    pool, _ = pool_of((T4,), wait_s=0.1)
    begun = threading.Event()

    def other():
        with pool.lease(GpuNeed(GIB)):
            begun.set()
            pause(1.0)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(10)
    with pool.lease(GpuNeed(GIB)) as gpu:
        assert gpu == T4
    thread.join()


def test_a_dead_process_releases_its_gpu(pool_of, tmp_path):
    code = "import pathlib, sys\nfrom harness.run.locks import acquire\n"
    code += "held = acquire(pathlib.Path(sys.argv[1]))\nprint(1, flush=True)\ninput()"
    command = [sys.executable, "-c", code, str(tmp_path / "gpu-GPU-a.lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout.readline()
        pool, heard = pool_of((T4,))
        with once(lambda: heard.events, holder.kill), pool.lease(GpuNeed(GIB)) as gpu:
            assert gpu == T4
    assert heard.notes == ["waiting for a GPU: another probe runs"]


def test_the_lease_waits_for_memory_to_be_freed(pool_of):
    full = (evolve(T4, free=GIB),)
    pool, heard = pool_of(full, full, (T4,))
    with pool.lease(GpuNeed(4 * GIB)) as gpu:
        assert gpu == T4
    assert heard.notes == ["waiting for a GPU: 4.0 GiB are needed, GPU 0 (NVIDIA T4) has 1.0 GiB of memory free"]


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        (
            (evolve(T4, free=GIB), evolve(TWIN, free=int(1.2 * GIB))),
            "4.0 GiB are needed, GPU 1 (NVIDIA T4) has 1.2 GiB of memory free, for 0.3 s",
        ),
        ((), "4.0 GiB are needed, no GPU is listed any more, for 0.3 s"),
    ],
)
def test_the_wait_for_memory_has_a_limit_and_reports_the_shortage(pool_of, listing, words):
    pool, _ = pool_of(listing, wait_s=0.3, gpus=listing or (T4,))
    with pytest.raises(NoGpu) as why, pool.lease(GpuNeed(4 * GIB)):
        pass
    assert str(why.value) == words
    with evolve(pool, find=lambda: (T4, TWIN)).lease(GpuNeed(4 * GIB)) as gpu:
        assert gpu.address in {one.address for one in pool.gpus}


def test_an_impossible_amount_of_memory_is_not_waited_for(pool_of):
    pool, heard = pool_of((T4, TWIN))
    with (
        pytest.raises(NoGpu, match=r"GPU 0 \(NVIDIA T4\) has 15 GiB, 40 GiB are needed"),
        pool.lease(GpuNeed(40 * GIB)),
    ):
        pass
    assert heard.events == []


def test_a_gpu_without_memory_information_is_usable(pool_of):
    shared = evolve(T4, memory=0, free=0)
    pool, _ = pool_of((TWIN, shared), gpus=(shared,))
    with pool.lease(GpuNeed(40 * GIB)) as gpu:
        assert gpu == shared


def test_a_cancelled_wait_ends_at_once_and_holds_nothing(pool_of):
    pool, heard = pool_of((T4,))
    cancel = threading.Event()
    cancel.set()
    with cancelled_by(cancel), pytest.raises(Cancelled), pool.lease(GpuNeed(GIB)):
        pass
    full = evolve(pool, find=lambda: (evolve(T4, free=0),))
    with cancelled_once(lambda: heard.events), full.lease(GpuNeed(GIB)):
        pass
    with pool.lease(GpuNeed(GIB)) as gpu:
        assert gpu == T4


def starts_beside(free, *peaks):
    """Whether a second run starts while one goes on, with so much free memory and after runs with these peaks."""
    looks, entered = threading.Semaphore(0), threading.Event()
    gate = MemoryGate(available=lambda: looks.release() or free)
    for peak in peaks:
        gate.note(peak)

    def second():
        with gate.entered():
            entered.set()

    with gate.entered():
        thread = threading.Thread(target=second)
        thread.start()
        looks.acquire()
        while not entered.is_set() and not looks.acquire(timeout=0.01):  # it looks again if it could not start
            pass
        beside = entered.is_set()
    thread.join()
    return beside


def test_a_single_run_starts_whatever_is_free():
    with MemoryGate(available=lambda: 0).entered():
        pass


def test_runs_of_unknown_size_need_room_for_two_of_four_gib():
    assert starts_beside(8 * GIB)
    assert not starts_beside(7 * GIB)


def test_the_largest_run_so_far_decides():
    assert not starts_beside(8 * GIB, 5 * GIB, GIB)
    assert starts_beside(2 * GIB, GIB)


def test_a_cancelled_run_does_not_wait():
    looks = []
    gate = MemoryGate(available=lambda: looks.append(1) or 0)
    with gate.entered(), cancelled_once(lambda: looks), gate.entered():
        pass
