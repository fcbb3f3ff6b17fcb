"""Nights on a machine that fails runs at random: nothing of it is called a regression, and what is one still is."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from attrs import define, evolve, field, frozen
from simulation import BROKEN, GOOD, MESSAGE

from harness.events import SILENT
from harness.matrix import read_matrix
from harness.matrix.running import Sessions, expanded_by_index, open_sessions
from harness.model import Device, Outcome, RaisedException
from harness.probing import Prober
from harness.run.devices import Gpu
from harness.run.launch import Limits
from harness.run.process import Ended, EndReason
from harness.run.result import ChildReport, Ran, classify
from harness.settings import Settings
from harness.watch.state import CellStatus, NightArchive
from harness.watch.watch import Budget, Watch

NIGHTS = 200
CARDS = tuple(Gpu(index, "NVIDIA T4", 16 * 2**30, 15 * 2**30, "550", f"GPU-{index}") for index in (0, 1))
REPRO = """
# /// script
# dependencies = ["app"]
# [tool.harness]
# device = "cuda"
# [tool.harness.signature]
# exception = "RuntimeError"
# ///
import app
"""
# Type, message, exit code, what was printed.
FAULTS = (
    ("builtins.RuntimeError", "CUDA error: unspecified launch failure", 1, ""),
    ("builtins.RuntimeError", "CUDA error: uncorrectable ECC error encountered", 1, ""),
    ("builtins.RuntimeError", "boom", 1, "NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.\n"),
    ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2 GiB", 1, ""),
    ("requests.HTTPError", "429 Client Error: Too Many Requests for url: https://huggingface.co/m", 1, ""),
    ("requests.HTTPError", "503 Server Error: Service Unavailable for url: https://huggingface.co/m", 1, ""),
    ("builtins.OSError", "[Errno 28] No space left on device", 1, ""),
    ("", "", -9, ""),
)
ANY = (("builtins.RuntimeError", "cuBLAS does what it wants", 1, ""),)  # not recognised


@define
class Sick:
    """How sick the machine is: the share of the runs that it fails, and what of; `faulty` counts them."""

    chance: random.Random
    share: float = 0.0
    faults: tuple = FAULTS
    faulty: int = 0

    def fault(self):
        """What fails the next run, None if nothing does."""
        if self.chance.random() >= self.share:
            return None
        self.faulty += 1
        return self.chance.choice(self.faults)


@frozen
class SickProber(Prober):
    """Runs nothing: a lock with the broken helper fails, and the machine fails others as it likes."""

    sick: Sick = field(kw_only=True, eq=False)
    tonight: set = field(kw_only=True, eq=False)  # keys of tonight

    def record(self, prepared, *arguments, **more):
        """Store a run of tonight."""
        self.tonight.add(prepared.key)
        return super().record(prepared, *arguments, **more)

    def current(self, key):
        """Runs of nights before are forgotten."""
        return super().current(key) if key in self.tonight else None

    def _run_once(self, prepared, environment, gpus, *, apart):
        lock, fault = environment.lock, self.sick.fault()
        if fault is None and lock.version_of("helper") == "1.2":
            fault = ("builtins.RuntimeError", MESSAGE, 1, "")
        type_, message, code, printed = fault or ("", "", 0, "")
        exception = RaisedException(type_, message, bases=("builtins.RuntimeError",)) if type_ else None
        report = ChildReport("raised" if type_ else "" if code else "completed", exception=exception)
        ended, limits = Ended(code, EndReason.ENDED, 0.1, 1), Limits(300, 2**30)
        outcome, detail = classify(ended, report, device=Device.CUDA, limits=limits, printed=printed)
        in_use = 8 * 2**30 if outcome is Outcome.OUT_OF_MEMORY else 0
        machine = {**gpus[0].facts, "device_memory_in_use": in_use}
        ran = Ran(outcome=outcome, detail=detail, exit_code=code, exception=exception, machine=machine)
        return ran, ()


@pytest.fixture
def machine(nights, monkeypatch):
    """Sessions on a sick machine with two GPUs, the matrix, and the machine."""
    monkeypatch.setattr("harness.probing.prober._PAUSE_S", 0.0)
    for name, value in nights.harness.environ.items():
        monkeypatch.setenv(name, value)
    (Path.cwd() / "repros" / "step.py").write_text(REPRO, encoding="utf-8")
    for minor, body in ((1, GOOD), (2, BROKEN), (3, GOOD)):
        nights.helper(f"1.{minor}", f"2024-0{minor + 1}-01", body)
    matrix, sick = read_matrix(nights.write()), Sick(random.Random(7))
    with open_sessions(Settings(), [None], SILENT) as sessions:
        local = sessions.first.local
        parts = (local.store, local.resolutions, local.builder, CARDS)
        prober = SickProber(*parts, terms=local.terms, sick=sick, tonight=set())
        yield Sessions({None: evolve(sessions.first, local=prober, local_gpus=CARDS)}), matrix, sick


def night_of(machine, number, past, day):
    """Run a night with the packages of a day, and return what is known after it."""
    sessions, matrix, _ = machine
    sessions.first.local.tonight.clear()
    sessions = evolve(sessions, as_of=datetime.fromisoformat(f"{day}T00:00:00+00:00"))
    cells = expanded_by_index(matrix, sessions.first, sessions.as_of).cells
    start = (datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=number)).isoformat()
    with sessions.lanes(cells) as lanes:
        night = Watch(matrix.name, cells, start, past, sessions, lanes, Budget(SILENT, lambda: 0.0)).run()
    return night, past.after(night)


def test_no_fault_of_a_machine_is_called_a_regression(machine):
    sessions, _, sick = machine
    night, past = night_of(machine, 0, NightArchive(sessions.store).past(), "2024-02-15")
    assert [cell.standing for cell in night.cells] == [CellStatus.GOOD]
    standings, silent = [], 0
    for number, day in zip(range(1, NIGHTS + 1), itertools.cycle(["2024-01-15", "2024-02-15"])):
        sick.share, sick.faults = sick.chance.choice([(0.3, FAULTS), (0.9, FAULTS), (1.0, FAULTS), (1.0, ANY)])
        night, past = night_of(machine, number, past, day)
        standings += [cell.standing for cell in night.cells]
        silent += len(past.unjudged["nightly"]) == 3
    assert sick.faulty > NIGHTS
    assert set(standings) == {CellStatus.GOOD, CellStatus.UNJUDGED}, standings
    assert not past.causes
    assert silent > 0


def test_a_run_that_the_machine_fails_is_made_again_on_another_gpu(machine):
    sessions, matrix, sick = machine
    (cell,) = expanded_by_index(matrix, sessions.first).cells
    used = []

    class Once:
        def random(self):
            return 0.0 if not used else 1.0

        def choice(self, faults):
            used.append(faults[0])
            return faults[0]

    sick.chance, sick.share = Once(), 0.5
    prober = sessions.probers
    prepared = prober.prepare(evolve(sessions.probe(cell), fresh=True))
    run = prober.execute(prepared)
    assert (run.outcome, run.machine["gpu"], len(used)) == (Outcome.COMPLETED, 1, 1)


def test_a_regression_is_named_although_the_machine_is_sick(machine):
    sessions, _, sick = machine
    _, past = night_of(machine, 0, NightArchive(sessions.store).past(), "2024-02-15")
    sick.share = 0.3
    for number in range(1, 5):
        _, past = night_of(machine, number, past, "2024-03-15")
    (cause,) = past.causes.values()
    assert [str(change) for change in cause.culprit] == ["helper 1.1 -> 1.2"]
