"""An environment that was compared a moment ago is not compared again before a run; its changes are noticed after."""

from __future__ import annotations

import itertools

import pytest
from attrs import define
from support import repro_text

from harness.environment.ledger import Manifest, RecentlyCompared
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probe import Probe


@define
class Clock:
    """A clock that a test sets."""

    now: float = 100.0


def manifest(lock="lock"):
    return Manifest(lock, "cpython", {}, {})


@pytest.mark.parametrize(("seconds", "is_known"), [(0.0, True), (9.0, True), (10.0, False), (50.0, False)])
def test_a_comparison_is_remembered_for_a_while(seconds, is_known):
    clock = Clock()
    compared = RecentlyCompared(10.0, lambda: clock.now)
    compared.note("name", manifest())
    clock.now += seconds
    assert (compared.manifest("name", "lock") is not None) is is_known


def test_another_lock_at_the_same_place_was_not_compared():
    compared = RecentlyCompared()
    compared.note("name", manifest())
    assert compared.manifest("name", "other") is None


def test_all_comparisons_are_forgotten_together():
    compared = RecentlyCompared()
    for name in "ab":
        compared.note(name, manifest())
    compared.forget()
    assert [compared.manifest(name, "lock") for name in "ab"] == [None, None]


def test_only_the_last_ones_are_kept():
    compared = RecentlyCompared()
    names = [str(number) for number in range(20)]
    for name in itertools.chain(names, names[12:13]):
        compared.note(name, manifest())
    assert [name for name in names if compared.manifest(name, "lock") is not None] == names[12:]


def prepared(parts, body="import helper\nassert helper.NUMBER == 1\n"):
    repro = parse_repro(repro_text("helper", body=body), name="x")
    return parts.prober.prepare(Probe(repro, Combination(parts.resolver.interpreter.version, ("helper==1.0",))))


def test_preparing_a_probe_compares_its_environment(parts):
    lock = prepared(parts).environment.lock
    assert parts.builder.was_just_compared(lock)
    parts.builder.compared.forget()
    assert not parts.builder.was_just_compared(lock)
    prepared(parts)
    assert parts.builder.was_just_compared(lock)


def test_a_run_that_changes_nothing_compares_for_the_next_one(parts):
    ready = prepared(parts)
    parts.builder.compared.forget()
    parts.prober.execute(ready)
    assert parts.builder.was_just_compared(ready.environment.lock)


def test_a_change_between_preparing_and_running_does_not_affect_the_result(parts):
    ready = prepared(parts)
    with (site_packages(ready.environment.folder) / "helper.py").open("a") as file:
        file.write("NUMBER = 7\n")
    seen = parts.prober.execute(ready)
    assert (seen.outcome, seen.altered) == (Outcome.COMPLETED, ())
    assert not parts.builder.was_just_compared(ready.environment.lock)


def test_after_a_change_no_environment_counts_as_compared(parts):
    first = prepared(parts)
    parts.prober.execute(prepared(parts, "import helper\nopen(helper.__file__, 'a').write('NUMBER = 7')\n"))
    assert not parts.builder.was_just_compared(first.environment.lock)
