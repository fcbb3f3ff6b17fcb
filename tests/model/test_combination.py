"""A combination is the question for the resolver; the device is not part of it."""

from __future__ import annotations

from datetime import UTC, datetime

from attrs import evolve

from harness.model import Combination, Device

ASKED = Combination("3.11.7", ("b", "a==1"))


def test_repetition_does_not_matter_but_order_does():
    """A resolver prefers earlier requirements."""
    assert Combination("3.11.7", ("b", "a==1", "b")) == ASKED
    assert Combination("3.11.7", ("a==1", "b")).resolution_key != ASKED.resolution_key
    assert evolve(ASKED, holds=("d", "c", "d")) == evolve(ASKED, holds=("c", "d"))


def test_the_device_does_not_change_the_question():
    assert evolve(ASKED, device=Device.CUDA).resolution_key == ASKED.resolution_key


def test_every_other_part_changes_the_question():
    others = [
        {"python": "3.12.1"},
        {"requirements": ("a==1",)},
        {"holds": ("c==1",)},
        {"as_of": datetime(2025, 1, 1, tzinfo=UTC)},
        {"near": "lock"},
        {"prereleases": ("a",)},
        {"from_source": ("a",)},
    ]
    assert len({ASKED.resolution_key, *(evolve(ASKED, **other).resolution_key for other in others)}) == 8
