"""An environment is compared with its manifest; the ledger saves reading files, and a recent comparison another.

A change after a recent comparison is noticed after the run.
"""

from __future__ import annotations

import itertools
import os
import time

import pytest
from attrs import define, evolve
from support import repro_text

from harness.environment.manifest import (
    FileState,
    Ledger,
    Manifest,
    RecentlyCompared,
    content_of,
    files_below,
)
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe


def recorded_at(folder):
    """A folder with two files, and their states."""
    (folder / "below").mkdir(parents=True)
    (folder / "one").write_text("1")
    (folder / "below" / "two").symlink_to("../one")
    found = files_below(folder)
    return folder, {path: FileState.of(state, content_of(folder / path, state)) for path, state in found.items()}


@pytest.fixture
def recorded(tmp_path):
    """A folder with two files, its ledger, and their states, not noted yet."""
    folder, states = recorded_at(tmp_path / "folder")
    return folder, Ledger(tmp_path / "files.db"), states


def settle(monkeypatch):
    """Let time stamps be so old that a later change gets another."""
    monkeypatch.setattr("harness.environment.manifest._TICK_NS", 20_000_000)
    time.sleep(0.05)


def rewritten(path, text):
    """Write into a file in place, with its size and modification time as before."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_files_are_read_once_and_again_when_their_change_time_moved(recorded, monkeypatch):
    folder, ledger, states = recorded
    monkeypatch.setattr("harness.environment.manifest._TICK_NS", 3600 * 10**9)
    assert ledger.compare(folder, states) == ([], [])
    assert ledger.known(files_below(folder)) == {}  # a later change may get the same time
    settle(monkeypatch)
    assert ledger.compare(folder, states) == ([], [])
    found = files_below(folder)
    assert ledger.known(found).keys() == found.keys()
    os.link(folder / "one", folder.parent / "linked")
    assert ledger.known(files_below(folder)).keys() == {"below/two"}
    settle(monkeypatch)
    assert ledger.compare(folder, states) == ([], [])
    assert ledger.known(files_below(folder)).keys() == found.keys()


def test_a_write_in_place_is_found(recorded):
    folder, ledger, states = recorded
    assert ledger.compare(folder, states) == ([], [])
    rewritten(folder / "one", "2")
    assert ledger.compare(folder, states) == (["one"], [])
    rewritten(folder / "one", "1")
    (folder / "three").write_text("")
    (folder / "below" / "two").unlink()
    assert ledger.compare(folder, states) == (["below/two"], ["three"])


def emptied(folder):
    (folder / "below" / "two").unlink()


def added(folder):
    (folder / "below" / "three").write_text("3")


def renamed(folder):
    (folder / "below").rename(folder / "other")


def replaced(folder):
    """Another folder with the same name, and the same time of modification."""
    before = (folder / "below").stat()
    renamed(folder)
    (folder / "below").mkdir()
    os.utime(folder / "below", ns=(before.st_atime_ns, before.st_mtime_ns))


def added_with_the_time_put_back(folder):
    before = (folder / "below").stat()
    added(folder)
    os.utime(folder / "below", ns=(before.st_atime_ns, before.st_mtime_ns))


def linked_elsewhere(folder):
    (folder / "below" / "two").unlink()
    (folder / "below" / "two").symlink_to("../elsewhere")


def written(folder):
    rewritten(folder / "one", "2")


def with_another_mode(folder):
    (folder / "one").chmod(0o600)


CHANGES = [
    (emptied, ["below/two"], []),
    (added, [], ["below/three"]),
    (renamed, ["below/two"], ["other/two"]),
    (replaced, ["below/two"], ["other/two"]),
    (added_with_the_time_put_back, [], ["below/three"]),
    (linked_elsewhere, ["below/two"], []),
    (written, ["one"], []),
    (with_another_mode, ["one"], []),
]


@pytest.mark.parametrize("is_old", [False, True])
def test_every_change_is_found_however_old_the_folder_is(tmp_path, monkeypatch, is_old):
    ledger = Ledger(tmp_path / "files.db")
    folders = [recorded_at(tmp_path / change.__name__) for change, _, _ in CHANGES]
    if is_old:
        settle(monkeypatch)
    for (change, differing, more), (folder, states) in zip(CHANGES, folders, strict=True):
        for _ in range(2):
            assert ledger.compare(folder, states) == ([], [])
        change(folder)
        for _ in range(2):
            assert ledger.compare(folder, states) == (differing, more), change.__name__


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_ledger_is_replaced(recorded, content):
    folder, ledger, states = recorded
    for _ in range(2):
        ledger.path.write_bytes(content)
        assert ledger.compare(folder, states) == ([], [])
        assert ledger.compare(folder, states) == ([], [])
        found = files_below(folder)
        ledger.note([(state, states[path].content) for path, state in found.items()])
        assert ledger.known(found)
        rewritten(folder / "one", "2")
        assert ledger.compare(folder, states) == (["one"], [])
        rewritten(folder / "one", "1")


def test_a_ledger_that_cannot_be_written_costs_nothing_but_time(recorded, tmp_path):
    folder, _, states = recorded
    nowhere = Ledger(tmp_path / "missing" / "files.db")
    assert nowhere.compare(folder, states) == ([], [])
    rewritten(folder / "one", "2")
    assert nowhere.compare(folder, states) == (["one"], [])


@define
class Clock:
    """A clock that a test sets."""

    now: float = 100.0


def manifest():
    return Manifest({}, {})


@pytest.mark.parametrize(("seconds", "is_known"), [(0.0, True), (9.0, True), (10.0, False), (50.0, False)])
def test_a_comparison_is_remembered_for_a_while(seconds, is_known):
    clock = Clock()
    compared = RecentlyCompared(10.0, lambda: clock.now)
    compared.note("name", manifest())
    clock.now += seconds
    assert (compared.manifest("name") is not None) is is_known


def test_all_comparisons_are_forgotten_together():
    compared = RecentlyCompared()
    for name in "ab":
        compared.note(name, manifest())
    compared.forget()
    assert [compared.manifest(name) for name in "ab"] == [None, None]


def test_only_the_last_ones_are_kept():
    compared = RecentlyCompared()
    names = [str(number) for number in range(20)]
    for name in itertools.chain(names, names[4:5]):
        compared.note(name, manifest())
    assert [name for name in names if compared.manifest(name) is not None] == names[4:]


def prepared(parts, body="import helper\nassert helper.NUMBER == 1\n"):
    repro = parse_repro(repro_text("helper", body=body), name="x")
    return parts.prober.prepare(Probe(repro, Combination(parts.resolver.interpreter.version, ("helper==1.0",))))


def was_just_compared(parts, lock):
    return parts.builder.compared.manifest(parts.builder.location(lock).name) is not None


def test_preparing_a_probe_compares_its_environment(parts):
    lock = prepared(parts).environment.lock
    assert was_just_compared(parts, lock)
    parts.builder.compared.forget()
    assert not was_just_compared(parts, lock)
    prepared(parts)
    assert was_just_compared(parts, lock)


def test_a_comparison_is_not_renewed_by_relying_on_it(parts):
    clock = Clock()
    builder = evolve(parts.builder, compared=RecentlyCompared(10.0, lambda: clock.now))
    lock = prepared(parts).environment.lock
    builder.build(lock)
    clock.now += 9.0
    assert builder.build(lock, recent=True)
    clock.now += 2.0
    assert builder.compared.manifest(builder.location(lock).name) is None


def test_a_run_that_changes_nothing_compares_for_the_next_one(parts):
    ready = prepared(parts)
    parts.builder.compared.forget()
    parts.prober.execute(ready)
    assert was_just_compared(parts, ready.environment.lock)


def test_a_change_between_preparing_and_running_does_not_affect_the_result(parts):
    ready = prepared(parts)
    with (site_packages(ready.environment.folder) / "helper.py").open("a") as file:
        file.write("NUMBER = 7\n")
    seen = parts.prober.execute(ready)
    assert (seen.outcome, seen.altered) == (Outcome.COMPLETED, ())
    assert not was_just_compared(parts, ready.environment.lock)


def test_after_a_change_no_environment_counts_as_compared(parts):
    first = prepared(parts)
    parts.prober.execute(prepared(parts, "import helper\nopen(helper.__file__, 'a').write('NUMBER = 7')\n"))
    assert not was_just_compared(parts, first.environment.lock)
