"""What a run waits for: one probe at a time per GPU, with enough memory, and memory of the machine for runs at once."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from attrs import define, evolve, field, frozen
from support import Heard

from harness.run.devices import Gpu
from harness.run.lease import GpuPool, MemoryGate, NoGpu
from harness.run.process import Cancelled

GIB = 2**30
T4 = Gpu(0, "NVIDIA T4", 15 * GIB, 14 * GIB, "550.54", "GPU-a")
TWIN = evolve(T4, index=1, uuid="GPU-b")


@define
class Time:
    """Time that passes only by pausing; `events` happen at their second."""

    now: float = 0.0
    events: dict[float, object] = field(factory=dict)

    def clock(self):
        """The current second."""
        return self.now

    def pause(self, seconds, cancel):
        """Let time pass, with its events."""
        self.now += seconds
        for at in [at for at in self.events if at <= self.now]:
            self.events.pop(at)()


@frozen
class Cancels:
    """A reporter that cancels a wait at its first note."""

    cancel: threading.Event

    def report(self, event):
        """Cancel."""
        self.cancel.set()


@pytest.fixture
def pool_of(tmp_path):
    """A pool with made-up listings, and its reports."""

    def make(*listings, wait_s=600.0, time=None, gpus=None):
        time = time or Time()
        heard, left = Heard(), list(listings)
        find = lambda: left.pop(0) if len(left) > 1 else left[0]  # noqa: E731
        return GpuPool(gpus or listings[0], tmp_path, wait_s, heard, find, time.clock, time.pause), heard, time

    return make


def test_the_gpu_with_the_most_free_memory_is_leased_first(pool_of):
    pool, heard, time = pool_of((evolve(T4, free=2 * GIB), TWIN))
    with pool.lease(GIB) as gpu:
        assert gpu == TWIN
    assert (heard.events, time.now) == ([], 0.0)


def test_each_gpu_takes_one_probe_at_a_time(pool_of):
    pool, heard, time = pool_of((T4, TWIN))
    with pool.lease(GIB) as first, pool.lease(GIB) as second:
        assert {first, second} == {T4, TWIN}
        called_off = threading.Event()
        time.events[4.0] = called_off.set
        with pytest.raises(Cancelled), pool.lease(GIB, called_off):
            pass
    assert heard.notes == ["waiting for another probe to end: each GPU runs one at a time"]
    with pool.lease(GIB) as again:
        assert again == T4


def test_waiting_for_another_probe_has_no_limit(pool_of):
    time = Time()
    pool, _, _ = pool_of((T4,), wait_s=10, time=time)
    other = pool.lease(GIB)
    other.__enter__()
    time.events[3600.0] = lambda: other.__exit__(None, None, None)
    with pool.lease(GIB) as gpu:
        assert gpu == T4
    assert time.now == 3600.0


def test_a_dead_process_releases_its_gpu(pool_of, tmp_path):
    code = "import pathlib, sys\nfrom harness.run.locks import acquire\n"
    code += "held = acquire(pathlib.Path(sys.argv[1]))\nprint(1, flush=True)\ninput()"
    command = [sys.executable, "-c", code, str(tmp_path / "gpu-GPU-a.lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout.readline()
        pool, _, time = pool_of((T4,), wait_s=1)

        def die():
            holder.kill()
            holder.wait()

        time.events[100.0] = die
        with pool.lease(GIB) as gpu:
            assert (gpu, time.now) == (T4, 100.0)


def test_the_lease_waits_for_memory_to_be_freed(pool_of):
    full = (evolve(T4, free=GIB),)
    pool, heard, time = pool_of(full, full, (T4,))
    with pool.lease(4 * GIB) as gpu:
        assert gpu == T4
    assert time.now == 4.0
    assert heard.notes == [
        "waiting at most 600 s for memory (--gpu-wait changes it): "
        "GPU 0 (NVIDIA T4) has 1.0 GiB of memory free, 4.0 GiB are needed"
    ]


@pytest.mark.parametrize(
    ("wait_s", "listing", "words"),
    [
        (
            600,
            (evolve(T4, free=int(1.2 * GIB)),),
            "GPU 0 (NVIDIA T4) has 1.2 GiB of memory free, 4.0 GiB are needed, for 600 s",
        ),
        (
            3,
            (evolve(T4, free=GIB), evolve(TWIN, free=2 * GIB)),
            "GPU 1 (NVIDIA T4) has 2.0 GiB of memory free, 4.0 GiB are needed, for 3 s",
        ),
        (3, (), "no GPU is listed any more, for 3 s"),
    ],
)
def test_the_wait_for_memory_has_a_limit_and_reports_the_shortage(pool_of, wait_s, listing, words):
    pool, _, time = pool_of(listing, wait_s=wait_s, gpus=listing or (T4,))
    with pool.lease(4 * GIB) as nothing:
        assert nothing == NoGpu(words)
    assert time.now == wait_s
    with evolve(pool, find=lambda: (T4, TWIN)).lease(4 * GIB) as gpu:
        assert gpu.address in {one.address for one in pool.gpus}


def test_an_impossible_amount_of_memory_is_not_waited_for(pool_of):
    pool, heard, time = pool_of((T4, TWIN))
    with pool.lease(40 * GIB) as nothing:
        assert nothing == NoGpu("GPU 0 (NVIDIA T4) has 15 GiB, 40 GiB are needed")
    assert (heard.events, time.now) == ([], 0.0)


def test_a_gpu_without_memory_information_is_usable(pool_of):
    shared = evolve(T4, memory=0, free=0)
    pool, _, _ = pool_of((TWIN, shared), gpus=(shared,))
    with pool.lease(40 * GIB) as gpu:
        assert gpu == shared


def test_a_cancelled_wait_ends_at_once_and_holds_nothing(pool_of):
    cancel = threading.Event()
    cancel.set()
    pool, _, _ = pool_of((T4,))
    with pytest.raises(Cancelled), pool.lease(GIB, cancel):
        pass
    pool = GpuPool((T4,), pool.locks, find=lambda: (evolve(T4, free=0),), reporter=Cancels(cancel))
    cancel.clear()
    with pytest.raises(Cancelled), pool.lease(GIB, cancel):
        pass
    with evolve(pool, find=lambda: (T4,)).lease(GIB) as gpu:
        assert gpu == T4


def starts_beside(gate):
    """Whether a second run starts while one goes on."""
    entered = threading.Event()

    def second():
        with gate.entered():
            entered.set()

    with gate.entered():
        thread = threading.Thread(target=second)
        thread.start()
        beside = entered.wait(0.5)
    thread.join(10)
    assert entered.is_set()
    return beside


def test_a_single_run_starts_whatever_is_free():
    with MemoryGate(available=lambda: 0).entered():
        pass


def test_runs_of_unknown_size_need_room_for_two_of_four_gib():
    assert starts_beside(MemoryGate(available=lambda: 8 * GIB))
    assert not starts_beside(MemoryGate(available=lambda: 7 * GIB))


def test_the_largest_run_so_far_decides():
    gate = MemoryGate(available=lambda: 8 * GIB)
    gate.note(5 * GIB)
    gate.note(GIB)
    assert not starts_beside(gate)
    small = MemoryGate(available=lambda: 2 * GIB)
    small.note(GIB)
    assert starts_beside(small)


def test_a_cancelled_run_does_not_wait():
    gate, cancel = MemoryGate(available=lambda: 0), threading.Event()
    cancel.set()
    with gate.entered(), pytest.raises(Cancelled), gate.entered(cancel):
        pass
