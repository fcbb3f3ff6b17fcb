"""Holds are kept where possible, and left out where they would downgrade a requested package."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.model import Combination


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """An `engine`, a `tool` whose oldest release alone has no upper bound, and a `sister` of each engine."""
    house = Wheelhouse(tmp_path_factory.mktemp("held"))
    for version, day in {"1.0": "2024-01-01", "2.0": "2024-03-01", "3.0": "2024-05-01"}.items():
        house.add("engine", version, uploaded=f"{day}T12:00:00Z")
        house.add("sister", version, requires=(f"engine=={version}",), uploaded=f"{day}T15:00:00Z")
    house.add("tool", "0.1", requires=("engine",), uploaded="2023-06-01T12:00:00Z")
    house.add("tool", "1.0", requires=("engine<2",), uploaded="2024-02-01T12:00:00Z")
    house.add("tool", "1.1", requires=("engine<2",), uploaded="2024-04-01T12:00:00Z")
    house.add("loose", "1.0")
    house.add("loose", "2.0")
    return house


@pytest.fixture
def resolve(tmp_path, world, uv_cache, interpreter):
    resolver = make_parts(tmp_path, PipSettings(index_url=world.url), uv_cache, interpreter).resolver

    def asked(*requirements, near=None, **more):
        combination = Combination(interpreter.version, requirements, near=near.id if near else None, **more)
        answer = resolver.resolve(combination, near)
        assert answer.lock is not None, answer
        return answer

    return asked


def versions(answer):
    return {pin.name: pin.version for pin in answer.lock.pins}


@pytest.mark.parametrize("operator", ["==", "==="])
def test_a_hold_that_forces_an_ancient_release_is_left_out_and_reported(resolve, operator):
    answer = resolve("tool", holds=(f"engine{operator}2.0",))
    assert versions(answer) == {"tool": "1.1", "engine": "1.0"}
    held = f"engine 1.0 instead of the held {operator}2.0"
    assert answer.drift == (f"{held}, which would take tool down from 1.1 to 0.1",)


def test_the_release_of_the_day_counts_rather_than_the_newest(resolve):
    answer = resolve("tool", holds=("engine==2.0",), as_of=datetime(2024, 2, 15, tzinfo=UTC))
    assert versions(answer) == {"tool": "1.0", "engine": "1.0"}
    assert "take tool down from 1.0 to 0.1" in answer.drift[0]


def test_only_the_hold_that_downgrades_something_is_left_out(resolve):
    answer = resolve("tool", "loose", holds=("engine==2.0", "loose==1.0"))
    assert versions(answer) == {"tool": "1.1", "engine": "1.0", "loose": "1.0"}
    assert len(answer.drift) == 1


def test_a_pinned_package_is_never_downgraded(resolve):
    answer = resolve("tool==0.1", holds=("engine==2.0",))
    assert (versions(answer), answer.drift) == ({"tool": "0.1", "engine": "2.0"}, ())


def test_a_package_at_its_expected_release_was_not_downgraded(resolve):
    near = resolve("tool==0.1").lock
    answer = resolve("tool", holds=("engine==2.0",), near=near)
    assert versions(answer) == {"tool": "0.1", "engine": "2.0"}


def test_a_sister_of_a_held_package_is_downgraded_with_it(resolve):
    answer = resolve("sister", "loose", holds=("engine==2.0",))
    assert (versions(answer), answer.drift) == ({"sister": "2.0", "engine": "2.0", "loose": "2.0"}, ())


def test_a_held_release_newer_than_the_day_downgrades_nothing(resolve):
    answer = resolve("tool", "sister", holds=("engine==3.0",), as_of=datetime(2024, 2, 15, tzinfo=UTC))
    assert versions(answer) == {"tool": "1.0", "sister": "1.0", "engine": "1.0"}
    assert answer.drift == ("engine 1.0 instead of the held ==3.0",)


def test_a_held_release_newer_than_the_day_stays_near_another_lock(tmp_path, uv_cache, interpreter):
    house = Wheelhouse(tmp_path / "index")
    for version, day in {"1.0": "2024-01-01", "2.0": "2024-06-01"}.items():
        house.add("motor", version, requires=(f"part>={version}",), uploaded=f"{day}T12:00:00Z")
        house.add("part", version, uploaded=f"{day}T12:00:00Z")
        house.add("other", version, uploaded=f"{day}T12:00:00Z")
    resolver = make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter).resolver
    asked = Combination(
        interpreter.version, ("motor", "other"), holds=("motor==2.0",), as_of=datetime(2024, 2, 1, tzinfo=UTC)
    )
    near = resolver.resolve(asked).lock
    answer = resolver.resolve(evolve(asked, near=near.id), near)
    assert versions(answer) == {"motor": "2.0", "part": "2.0", "other": "1.0"}


def test_a_hold_that_downgrades_nothing_is_kept(resolve):
    answer = resolve("loose", "engine", holds=("engine==2.0",))
    assert (versions(answer), answer.drift) == ({"engine": "2.0", "loose": "2.0"}, ())


def test_a_hold_with_a_local_label_that_cannot_be_kept_is_reported(resolve):
    answer = resolve("tool", holds=("engine==2.0+cpu",))
    assert versions(answer) == {"tool": "1.1", "engine": "1.0"}
    assert "engine 1.0 instead of the held ==2.0+cpu" in answer.drift[0]


def test_the_fewest_holds_are_left_out(resolve):
    answer = resolve("tool==1.1", holds=("loose==1.0", "engine==2.0", "sister==2.0"))
    assert versions(answer) == {"tool": "1.1", "engine": "1.0"}
    assert answer.drift == ("engine 1.0 instead of the held ==2.0",)
