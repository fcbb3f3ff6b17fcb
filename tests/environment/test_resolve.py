"""From a combination to a lock: packages of a day, holds, nearby locks, and conflicts."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.environment.dates import ERA_MARGIN
from harness.errors import NoNetwork
from harness.model import Combination, Lock, Pin


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """`main` needs `helper`; `main` 2.0 needs `helper` 2 or later."""
    house = Wheelhouse(tmp_path_factory.mktemp("world"))
    for version, day in {"1.0": "2024-01-01", "2.0": "2024-02-01", "3.0": "2024-03-01"}.items():
        house.add("helper", version, uploaded=f"{day}T12:00:00Z")
    house.add("main", "1.0", requires=("helper",), uploaded="2024-01-10T12:00:00Z")
    house.add("main", "2.0", requires=("helper>=2",), uploaded="2024-02-10T12:00:00Z")
    house.add("main", "3.0", requires=("helper>=2",), uploaded="2024-03-10T12:00:00Z")
    house.add("loose", "1.0", uploaded="2024-01-05T12:00:00Z")
    house.add("loose", "2.0", uploaded="2024-03-05T12:00:00Z")
    for version in ("1.0", "2.0"):
        house.add_link("linked", version)
    house.add("linked", "2.0", uploaded="2024-03-05T12:00:00Z")
    return house


@pytest.fixture
def resolver(tmp_path, world, uv_cache, interpreter):
    return make_parts(tmp_path, PipSettings(index_url=world.url), uv_cache, interpreter).resolver


@pytest.fixture
def ask(interpreter):
    return lambda *requirements, **more: Combination(interpreter.version, requirements, **more)


def versions(answer):
    assert answer.lock is not None, answer
    return {pin.name: pin.version for pin in answer.lock.pins}


def day(month, date=15):
    return datetime(2024, month, date, tzinfo=UTC)


def test_the_newest_release_is_locked_with_its_hash(resolver, ask, world, interpreter):
    answer = resolver.resolve(ask("main==1.0"))
    assert versions(answer) == {"main": "1.0", "helper": "3.0"}
    assert answer.drift == ()
    assert all(len(pin.sha256) == 64 and pin.wheel.startswith(pin.name) for pin in answer.lock.pins)
    assert (answer.lock.python, answer.lock.platform) == (interpreter.version, interpreter.platform)


def test_the_dependency_of_the_day_is_taken(resolver, ask):
    assert versions(resolver.resolve(ask("main==1.0", as_of=day(1))))["helper"] == "1.0"
    assert versions(resolver.resolve(ask("main==2.0", as_of=day(2))))["helper"] == "2.0"


def test_a_sister_released_within_the_hour_belongs_to_the_day(resolver, ask):
    upload = datetime(2024, 2, 1, 11, 30, tzinfo=UTC)
    assert versions(resolver.resolve(ask("helper", as_of=upload)))["helper"] == "1.0"
    assert versions(resolver.resolve(ask("helper", as_of=upload + ERA_MARGIN)))["helper"] == "2.0"


def test_a_held_package_can_be_newer_than_the_day(resolver, ask):
    answer = resolver.resolve(ask("main==1.0", "loose", holds=("helper==3.0",), as_of=day(1)))
    assert versions(answer) == {"main": "1.0", "helper": "3.0", "loose": "1.0"}


def test_an_impossible_hold_is_left_out_and_reported(resolver, ask):
    answer = resolver.resolve(ask("main==2.0", holds=("helper==1.0", "loose==1.0")))
    assert versions(answer)["helper"] == "3.0"
    assert answer.drift == ("helper 3.0 instead of the held ==1.0",)


def test_a_nearby_lock_keeps_its_dependencies_and_reports_changes(resolver, ask):
    near = resolver.resolve(ask("main==1.0", "loose", as_of=day(1))).lock
    kept = resolver.resolve(ask("main==1.0", "loose", near=near.id), near)
    assert versions(kept) == {"main": "1.0", "helper": "1.0", "loose": "1.0"}
    assert kept.drift == ()
    moved = resolver.resolve(ask("main==2.0", "loose", near=near.id), near)
    assert versions(moved)["loose"] == "1.0"
    assert [told.split(" -> ")[0] for told in moved.drift] == ["helper 1.0"]


@pytest.mark.parametrize("requirement", ["nowhere", "main==9", "main==2.0,<1"])
def test_a_conflict_is_reported_in_the_words_of_the_resolver(resolver, ask, requirement):
    answer = resolver.resolve(ask(requirement))
    assert answer.lock is None
    assert requirement[:4] in answer.words
    assert "\n" not in answer.words


def test_undated_wheels_follow_the_dates_of_the_index(tmp_path, world, uv_cache, interpreter, ask):
    settings = PipSettings(index_url=world.url, find_links=(str(world.links),))
    resolver = make_parts(tmp_path, settings, uv_cache, interpreter).resolver
    assert versions(resolver.resolve(ask("linked")))["linked"] == "2.0"
    assert versions(resolver.resolve(ask("linked", "helper", as_of=day(2)))) == {"linked": "1.0", "helper": "2.0"}
    alone = PipSettings(no_index=True, find_links=(str(world.links),))
    resolver = make_parts(tmp_path, alone, uv_cache, interpreter).resolver
    assert versions(resolver.resolve(ask("linked", as_of=day(2))))["linked"] == "2.0"


def test_without_index_nothing_comes_from_one(tmp_path, world, uv_cache, interpreter, ask):
    settings = PipSettings(index_url=world.url, find_links=(str(world.links),), no_index=True)
    resolver = make_parts(tmp_path, settings, uv_cache, interpreter).resolver
    assert versions(resolver.resolve(ask("linked"))) == {"linked": "2.0"}
    assert resolver.resolve(ask("loose")).lock is None


_LOOKING = """#!/bin/sh
page=${UV_FIND_LINKS#file://}
case "$*" in *compile*) if [ -f "$page" ]; then cat "$page"; else echo none; fi >> %s ;; esac
exec %s "$@"
"""


def test_uv_reads_a_local_wheel_once(tmp_path, uv_cache, interpreter, ask):
    house = Wheelhouse(tmp_path / "house")
    wheel = house.add_link("linked", "1.0")
    other = house.add_link("other", "1.0")
    os.utime(wheel)  # now
    settings = PipSettings(no_index=True, find_links=(str(house.links),))
    parts = make_parts(tmp_path, settings, uv_cache, interpreter)
    looking, pages = tmp_path / "uv", tmp_path / "pages"
    looking.write_text(_LOOKING % (pages, parts.resolver.uv.binary))
    looking.chmod(0o755)
    uv = evolve(parts.resolver.uv, binary=looking)
    resolver = evolve(parts.resolver, builds=evolve(parts.resolver.builds, uv=uv))

    def page_for(*requirements):
        lock = resolver.resolve(ask(*requirements)).lock
        page = pages.read_text().strip().splitlines()
        pages.unlink()
        return page, {pin.name: pin.sha256 for pin in lock.pins}

    assert page_for("linked")[0] == ["none"], "it was just written"
    time.sleep(2.1)
    assert page_for("linked>0")[0] == ["none"]
    page, hashes = page_for("linked", "other")
    assert [line.partition("#")[2] for line in page[:2]] == [f'sha256={hashes["linked"]}">{wheel.name}</a>', ""]
    wheel.write_bytes(wheel.read_bytes())
    page, hashes = page_for("other", "linked")
    assert [line.partition("#")[2] for line in page[:2]] == ["", f'sha256={hashes["other"]}">{other.name}</a>']


def test_pre_releases_are_allowed_for_named_projects_only(tmp_path, uv_cache, interpreter, ask):
    house = Wheelhouse(tmp_path / "early")
    for name in ("a", "b"):
        for version in ("1.0", "2.0rc1"):
            house.add(name, version)
    resolver = make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter).resolver
    assert versions(resolver.resolve(ask("a", "b", prereleases=("a",)))) == {"a": "2.0rc1", "b": "1.0"}
    assert versions(resolver.resolve(ask("a", "b"))) == {"a": "1.0", "b": "1.0"}


def test_a_nearby_lock_with_deleted_releases_is_ignored(resolver, ask, interpreter):
    near = Lock(interpreter.version, interpreter.platform, [Pin("helper", "0.1"), Pin("vanished", "1")])
    answer = resolver.resolve(evolve(ask("main==1.0"), near=near.id), near)
    assert versions(answer) == {"main": "1.0", "helper": "3.0"}


@pytest.mark.parametrize("refresh", [False, True])
def test_uv_that_works_offline_is_no_network(tmp_path, interpreter, monkeypatch, refresh):
    house = Wheelhouse(tmp_path / "house")
    house.add("far", "1.0")
    monkeypatch.setenv("UV_OFFLINE", "1")
    with house.served() as url:
        parts = make_parts(tmp_path, PipSettings(index_url=url), tmp_path / "uv", interpreter)
        with pytest.raises(NoNetwork, match="set to work offline"):
            parts.resolver.resolve(Combination(interpreter.version, ("far",)), refresh=refresh)


def test_a_lock_of_known_projects_comes_from_the_cache_unless_that_lacks_a_release(tmp_path, interpreter, ask):
    house = Wheelhouse(tmp_path / "house")
    for version in ("1.0", "2.0"):
        house.add("part", version)
    house.add("whole", "1.0", requires=("part",))
    older, newer = ask("whole==1.0", "part<2"), ask("whole==1.0")
    with house.served() as url:
        resolver = make_parts(tmp_path, PipSettings(index_url=url), tmp_path / "uv", interpreter).resolver
        online = resolver.resolve(older)
        assert versions(resolver.resolve(newer)) == {"whole": "1.0", "part": "2.0"}  # not 1.0, which the cache has
    assert versions(online) == {"whole": "1.0", "part": "1.0"}
    assert resolver.resolve(older) == online  # without a server
