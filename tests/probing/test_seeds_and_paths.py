"""The luck of a run: attempts and releases share none, and the same run has the same again."""

from __future__ import annotations

import zlib

from attrs import evolve
from support import repro_text

from harness.model import Combination, Lock, Pin
from harness.model.repro import parse_repro
from harness.probing import Probe, seed_of
from harness.probing.probe import path_of

ATTEMPTS = range(1, 7)


def locks(count):
    pins = [(Pin("dicey", f"1.{number}", f"dicey-1.{number}-py3-none-any.whl", "ab"),) for number in range(count)]
    return [Lock(pins=one, python="3.11.7", platform="linux") for one in pins]


def probe(attempt=0):
    return Probe(parse_repro(repro_text("dicey"), name="dicey"), Combination("3.11.7", ("dicey",)), attempt=attempt)


def failures(shows):
    """Which of the repetitions show a bug, for each of 400 releases."""
    return [tuple(shows(lock, probe(attempt)) for attempt in ATTEMPTS) for lock in locks(400)]


def test_a_checksum_of_the_path_does_not_repeat_itself():
    def shows(lock, asked):
        path = f"/cache/aliases/{lock.id}/{path_of(asked, lock)}/lib/python3.11/site-packages/dicey.py"
        return zlib.crc32(path.encode()) < 2**31

    found = failures(shows)
    alike = sum(len(set(one)) == 1 for one in found)
    assert alike < 0.08 * len(found)  # 1 in 32 by luck
    assert len(set(found)) == 2 ** len(ATTEMPTS)


def test_a_bug_of_the_hash_order_shows_in_other_attempts_of_each_release():
    found = failures(lambda lock, asked: seed_of(asked, lock) % 2 == 0)
    assert len(set(found)) == 2 ** len(ATTEMPTS)
    assert len({seed_of(probe(), lock) for lock in locks(50)}) == 50


def test_a_known_seed_repeats_the_path_too():
    (lock,) = locks(1)
    for attempt in range(4):
        first = probe(attempt)
        again = evolve(probe(9), hash_seed=seed_of(first, lock))
        assert (seed_of(again, lock), path_of(again, lock)) == (seed_of(first, lock), path_of(first, lock))
        assert (path_of(first, lock) == 0) is (attempt == 0)
