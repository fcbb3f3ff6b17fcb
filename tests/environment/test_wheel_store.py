"""Change times of stored wheels: a link changes them, and a file whose change time is unknown has to be read."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve
from support import repro_text
from test_manifest import settle

from harness.environment import CannotBuild, Environment
from harness.environment.manifest import Manifest
from harness.environment.workspace import site_packages
from harness.model import Combination
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.run.locks import acquire
from harness.run.process import Cancelled, cancelled_by


def lock_of(parts, *requirements):
    repro = parse_repro(repro_text("helper"), name="x")
    probe = Probe(repro, Combination(parts.resolver.interpreter.version, requirements))
    return parts.resolver.resolve(probe.combination).lock


def environment(parts, *requirements):
    built = parts.builder.build(lock_of(parts, *requirements))
    assert isinstance(built, Environment)
    return built


def unknown_times(parts, made):
    """The files of an environment whose content the ledger does not know."""
    manifest = Manifest.read(parts.builder.location(made.lock).manifest_path)
    found = {path: os.lstat(made.folder / path) for path in manifest.owners()}
    known = parts.builder.wheels.ledger.known(found)
    assert known
    return sorted(found.keys() - known.keys())


def test_a_build_that_fails_leaves_no_unknown_change_times(parts):
    made = environment(parts, "helper==1.0", "brittle==1.2")
    broken = lock_of(parts, "helper==1.0", "brittle==1.3")
    pins = [evolve(pin, sha256="0" * 64) if pin.name == "brittle" else pin for pin in broken.pins]
    with pytest.raises(CannotBuild):
        parts.builder.build(evolve(broken, pins=pins))
    assert unknown_times(parts, made) == []


def test_a_file_is_read_in_one_environment_for_all(parts, monkeypatch):
    first, second = environment(parts, "helper==1.0"), environment(parts, "helper==1.0", "brittle==1.2")
    os.link(site_packages(first.folder) / "helper.py", parts.workspace.building / "x")
    assert unknown_times(parts, second) != []
    settle(monkeypatch)
    assert parts.builder.build(first.lock) == first
    assert unknown_times(parts, second) == []


def test_a_changed_file_never_gets_a_known_change_time(parts):
    first, second = environment(parts, "helper==1.0"), environment(parts, "helper==1.0", "brittle==1.2")
    (site_packages(first.folder) / "helper.py").write_text("NUMBER = 7\n")
    assert (site_packages(environment(parts, "helper==1.0").folder) / "helper.py").read_text() == "NUMBER = 1\n"
    again = environment(parts, "helper==1.0", "brittle==1.2")
    assert again == second
    assert (site_packages(again.folder) / "helper.py").read_text() == "NUMBER = 1\n"


def test_builds_at_the_same_time_install_a_wheel_once(parts):
    """Two copies would have different time stamps, so the bytecode of one would not fit the other."""
    locks = [lock_of(parts, "helper==1.0", f"brittle==1.{minor}") for minor in range(2, 7)]
    with ThreadPoolExecutor(len(locks)) as pool:
        made = list(pool.map(parts.builder.build, locks))
    assert len({(site_packages(one.folder) / "helper.py").stat().st_ino for one in made}) == 1
    assert len({(site_packages(one.folder) / "brittle.py").stat().st_ino for one in made}) == len(locks)


def test_a_build_that_waits_for_a_wheel_can_be_cancelled(parts):
    lock, cancel = lock_of(parts, "helper==1.0"), threading.Event()

    def build():
        with cancelled_by(cancel):
            return parts.builder.build(lock)

    with ThreadPoolExecutor(1) as pool, acquire(parts.builder.wheels.filling):
        waiting = pool.submit(build)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=1)
        cancel.set()
        with pytest.raises(Cancelled):
            waiting.result()
    assert list(parts.workspace.building.iterdir()) == []
    assert isinstance(parts.builder.build(lock), Environment)
