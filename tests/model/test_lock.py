"""A lock is identified by what it installs, and two locks differ by package name."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Change, Lock, Pin

PINS = (Pin("a", "1.0", "a.whl", "00"), Pin("b", "2.0", "b.whl", "11"))
LOCK = Lock("3.11.7", "linux-x86_64", PINS)
pins = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2", "3"])).map(
    lambda found: Lock("3.11", "linux", [Pin(name, version) for name, version in found.items()])
)


def test_the_order_of_pins_does_not_matter():
    assert Lock("3.11.7", "linux-x86_64", reversed(PINS)) == LOCK


def test_the_address_follows_interpreter_platform_and_files():
    other = [
        evolve(LOCK, python="3.12.1"),
        evolve(LOCK, platform="linux-aarch64"),
        evolve(LOCK, pins=PINS[:1]),
        evolve(LOCK, pins=(PINS[0], evolve(PINS[1], version="2.1"))),
        evolve(LOCK, pins=(PINS[0], evolve(PINS[1], sha256="22"))),
    ]
    assert len({LOCK.id, *(lock.id for lock in other)}) == 6
    assert evolve(LOCK, pins=(PINS[0], evolve(PINS[1], size=5))).id == LOCK.id


@given(pins, pins)
def test_applying_the_difference_gives_the_other_lock(one, other):
    versions = {pin.name: pin.version for pin in one.pins}
    for change in one.diff(other):
        assert versions.get(change.name) == change.before != change.after
        versions[change.name] = change.after
    assert {name: version for name, version in versions.items() if version} == {p.name: p.version for p in other.pins}


@given(pins, pins)
def test_the_reverse_difference_leads_back(one, other):
    assert other.diff(one) == tuple(Change(c.name, c.after, c.before) for c in one.diff(other))


def test_a_change_reads_like_a_sentence():
    assert [str(c) for c in LOCK.diff(evolve(LOCK, pins=[Pin("b", "3"), Pin("c", "1")]))] == [
        "a 1.0 -> (absent)",
        "b 2.0 -> 3",
        "c (absent) -> 1",
    ]


def test_requirement_lines_carry_hashes():
    assert LOCK.as_requirements() == "a==1.0 --hash=sha256:00\nb==2.0 --hash=sha256:11\n"
    assert LOCK.version_of("b") == "2.0"
    assert LOCK.version_of("z") is None
