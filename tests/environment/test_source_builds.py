"""Releases that have no wheel are built from their source distributions, once, by their own day."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.environment.source_builds import BuiltWheel
from harness.events import SILENT
from harness.model import Combination
from harness.model.lock import ANY_SOURCE
from harness.run.sandbox import SandboxMode, choose

SANDBOX = choose(SandboxMode.AUTO, network=False, reporter=SILENT)
sandboxed = pytest.mark.skipif(SANDBOX is None, reason="no bubblewrap that works here")
DAY = datetime(2022, 6, 1, tzinfo=UTC)
OLD_TAG = "cp38-cp38-manylinux1_x86_64"


@pytest.fixture
def sources(tmp_path):
    """`plain` 1.0 and 1.1 have only sources, 1.2 a wheel; `maker` 2.0 breaks every build that uses it."""
    house = Wheelhouse(tmp_path / "house")
    for version, year in (("1.0", 2021), ("1.1", 2022)):
        house.add_sdist("plain", version, files={"plain.py": f"v = {version!r}"}, uploaded=f"{year}-01-01T12:00:00Z")
    house.add("plain", "1.2", files={"plain.py": "v = '1.2'"}, uploaded="2023-01-01T12:00:00Z")
    return house


@pytest.fixture
def made(sources, tmp_path, uv_cache, interpreter):
    """Return the parts that resolve and build."""
    return make_parts(tmp_path, PipSettings(index_url=sources.url), uv_cache, interpreter)


def resolved(made, interpreter, *requirements, **more):
    return made.resolver.resolve(Combination(interpreter.version, requirements, **more))


def versions(answer):
    assert answer.lock is not None, answer
    return {pin.name: pin.version for pin in answer.lock.pins}


def built(house):
    log = house.root / "built.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_pinned_release_without_a_wheel_is_built_once_and_installed(made, sources, interpreter):
    for _ in range(2):
        answer = resolved(made, interpreter, "plain==1.0", from_source=(ANY_SOURCE,))
        assert versions(answer) == {"plain": "1.0"}
        environment = made.builder.build(answer.lock)
    assert answer.lock.pins[0].wheel == "plain-1.0.tar.gz"
    assert next(environment.folder.glob("lib/*/site-packages/plain.py")).read_text() == "v = '1.0'"
    assert built(sources) == ["plain-1.0.tar.gz"]


def test_a_day_has_its_newest_release_also_if_only_an_older_one_has_a_wheel(made, sources, interpreter):
    sources.add("plain", "0.1", uploaded="2019-01-01T12:00:00Z")
    assert versions(resolved(made, interpreter, "plain", as_of=DAY, from_source=(ANY_SOURCE,))) == {"plain": "1.1"}
    assert versions(resolved(made, interpreter, "plain", as_of=DAY)) == {"plain": "0.1"}


def test_a_release_that_may_be_built_but_has_a_wheel_is_not_built(made, sources, interpreter):
    sources.add_sdist("plain", "1.2", files={"plain.py": ""}, uploaded="2023-01-01T12:00:00Z")
    answer = resolved(made, interpreter, "plain", from_source=("plain",))
    assert answer.lock.pins[0].wheel.endswith(".whl")
    assert built(sources) == []


@pytest.mark.parametrize("sandbox", [None, pytest.param(SANDBOX, marks=sandboxed)])
def test_what_a_build_requires_is_fetched_before_it(made, sources, interpreter, sandbox):
    """Also what only its backend asks for, and what has no wheel itself; the build has no network."""
    sources.add("tool", "1.0", files={"tool.py": ""})
    sources.add_sdist("maker", "1.0", files={"maker.py": ""}, requires=("tool",), build_requires=("tool",))
    asks = "def get_requires_for_build_wheel(settings=None):\n    import tool\n    return ['maker']\n"
    sources.add_sdist("made", "1.0", files={"made.py": ""}, build_requires=("tool>0",), backend=asks)
    builds = evolve(made.builder.builds, uv=evolve(made.builder.uv, sandbox=sandbox))
    built = builds.release("made", "1.0")
    assert isinstance(built, BuiltWheel), built


def test_what_a_build_requires_from_a_url_is_not_fetched(made, sources):
    url = "https://example.org/tool-1.0-py3-none-any.whl"
    sources.add_sdist("made", "1.0", files={"made.py": ""}, build_requires=(f"tool @ {url}",))
    built = made.builder.builds.release("made", "1.0")
    assert "Failed to download `tool @" in built.words


def test_what_a_built_release_requires_is_installed_and_its_version_is_kept_later(made, sources, interpreter):
    sources.add_sdist("needy", "1.0", files={"needy.py": ""}, requires=("plain<1.1",), uploaded="2021-06-01T12:00:00Z")
    first = resolved(made, interpreter, "needy", from_source=(ANY_SOURCE,))
    assert versions(first) == {"needy": "1.0", "plain": "1.0"}
    sources.add("needy", "2.0", uploaded="2023-06-01T12:00:00Z")
    asked = Combination(interpreter.version, ("needy", "plain"), near=first.lock.id, from_source=("needy", "plain"))
    assert made.resolver.resolve(asked, first.lock).lock == first.lock


def test_the_build_requirements_are_those_of_the_upload_day(made, sources, interpreter):
    sources.add("maker", "1.0", files={"maker.py": ""}, uploaded="2020-01-01T12:00:00Z")
    sources.add("maker", "2.0", files={"maker.py": "raise OSError('too new')"}, uploaded="2024-01-01T12:00:00Z")
    sources.add_sdist(
        "dated",
        "1.0",
        files={"dated.py": ""},
        build_requires=("maker",),
        backend="import maker",
        uploaded="2021-01-01T12:00:00Z",
    )
    answer = resolved(made, interpreter, "dated==1.0", from_source=("dated",))
    assert versions(answer) == {"dated": "1.0"}
    assert made.builder.build(answer.lock)


def test_a_build_that_fails_is_told_and_not_remembered_as_impossible(made, sources, interpreter):
    sources.add_sdist("hard", "1.0", files={"hard.py": ""}, backend="raise OSError('no compiler here')")
    answer = resolved(made, interpreter, "hard==1.0", from_source=("hard",))
    assert answer.lock is None
    assert not answer.lasts
    assert "hard==1.0" in answer.words
    assert "no compiler here" in answer.words


def test_a_newest_release_that_cannot_be_built_is_told_beside_the_older_wheel(made, sources, interpreter):
    sources.add("hard", "0.9", uploaded="2019-01-01T12:00:00Z")
    sources.add_sdist("hard", "1.0", files={}, backend="raise OSError('no compiler')", uploaded="2020-01-01T12:00:00Z")
    answer = resolved(made, interpreter, "hard", as_of=DAY, from_source=(ANY_SOURCE,))
    assert versions(answer) == {"hard": "0.9"}
    assert answer.drift == ("hard 0.9 instead of 1.0, which can't be built: OSError: no compiler",)


def test_a_release_with_a_wheel_only_for_another_python_is_built(made, sources, interpreter):
    sources.add("other", "1.0", tag=OLD_TAG, uploaded="2020-01-01T12:00:00Z")
    sources.add_sdist("other", "1.0", files={"other.py": ""}, uploaded="2020-01-01T12:00:00Z")
    assert versions(resolved(made, interpreter, "other", as_of=DAY, from_source=(ANY_SOURCE,))) == {"other": "1.0"}
