"""Environments are built completely or not at all and never altered; bytecode is compiled once per wheel."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from support import make_parts, repro_text
from wheelhouse import Wheelhouse

from harness.environment import CannotBuild, Environment, PipSettings, watched_environment
from harness.environment.workspace import site_packages
from harness.errors import UserMistake
from harness.model import Combination, Lock, Outcome, Pin
from harness.model.repro import command_repro, parse_repro
from harness.probing import Probe


def picture(folder):
    """Every file in an environment, with its size, times and content."""
    return {
        path.relative_to(folder): (path.lstat().st_size, path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in folder.rglob("*")
    }


def probe(parts, *requirements, body="import brittle, helper\n", repro=None):
    repro = repro or parse_repro(repro_text("brittle", body=body), name="x")
    return Probe(repro, Combination(parts.resolver.interpreter.version, requirements))


def compiled(parts, environment, module):
    """The bytecode of a module as the next run of its environment finds it."""
    with watched_environment(parts.builder, environment) as place:
        tree = place.pycache / site_packages(environment.folder).relative_to("/")
    return tree / f"{module}.{parts.resolver.interpreter.cache_tag}.pyc"


def test_an_environment_matches_its_lock_and_is_built_once(parts):
    prepared = parts.prober.prepare(probe(parts, "brittle==1.2", "helper==1.0"))
    folder = prepared.environment.folder
    assert folder.name == prepared.environment.lock.id
    assert sorted(path.name for path in site_packages(folder).glob("*.py"))[-2:] == ["brittle.py", "helper.py"]
    before = picture(folder)
    assert parts.builder.build(prepared.environment.lock) == prepared.environment
    assert picture(folder) == before
    assert list(parts.workspace.building.iterdir()) == []


def test_a_run_leaves_its_environment_unchanged(parts):
    prepared = parts.prober.prepare(probe(parts, "brittle==1.2", "helper==1.0"))
    before = picture(prepared.environment.folder)
    assert parts.prober.execute(prepared).outcome is Outcome.COMPLETED
    assert picture(prepared.environment.folder) == before


def test_bytecode_of_a_wheel_is_compiled_once_and_used_in_later_environments(parts):
    first = parts.prober.prepare(probe(parts, "brittle==1.2", "helper==1.0"))
    assert parts.prober.execute(first).outcome is Outcome.COMPLETED
    once = compiled(parts, first.environment, "helper")
    second = parts.prober.prepare(probe(parts, "brittle==1.3", "helper==1.0"))
    linked = compiled(parts, second.environment, "helper")
    assert linked.stat().st_ino == once.stat().st_ino
    assert not compiled(parts, second.environment, "brittle").exists()
    written = linked.stat().st_mtime_ns
    loud = probe(parts, "brittle==1.3", "helper==1.0", repro=command_repro("python -v -c 'import helper'"))
    observation = parts.prober.execute(parts.prober.prepare(loud))
    log = parts.store.log(observation)
    assert f"{linked} matches " in log
    assert f"code object from '{linked}'" in log
    assert (linked.stat().st_ino, linked.stat().st_mtime_ns) == (once.stat().st_ino, written)


def test_bytecode_of_another_version_is_not_used(parts):
    first = parts.prober.prepare(probe(parts, "brittle==1.2", "helper==1.0"))
    parts.prober.execute(first)
    second = parts.prober.prepare(probe(parts, "brittle==1.2", "helper==2.0"))
    assert compiled(parts, second.environment, "brittle").exists()
    assert not compiled(parts, second.environment, "helper").exists()


def test_leftovers_of_a_killed_build_are_not_used(parts):
    lock = parts.resolver.resolve(probe(parts, "brittle==1.2").combination).lock
    (parts.workspace.building / f"{lock.id}-left").mkdir()
    built = parts.builder.build(lock)
    assert isinstance(built, Environment)
    assert (site_packages(built.folder) / "brittle.py").is_file()


def test_a_wheel_with_the_wrong_hash_is_uninstallable(parts):
    prepared = parts.prober.prepare(probe(parts, "damaged==1.3"))
    assert prepared.observation.outcome is Outcome.UNINSTALLABLE
    assert "ash mismatch" in prepared.observation.detail
    assert list(parts.workspace.environments.iterdir()) == []
    assert list(parts.workspace.building.iterdir()) == []
    assert not parts.prober.prepare(probe(parts, "damaged==1.3")).cached  # the index may be well again


def test_a_deleted_release_is_uninstallable(parts, interpreter):
    lock = Lock(interpreter.version, interpreter.platform, [Pin("brittle", "7.7", "x.whl", "0" * 64)])
    with pytest.raises(CannotBuild):
        parts.builder.build(lock)


def test_an_empty_lock_is_a_bare_environment(parts, interpreter):
    assert isinstance(parts.builder.build(Lock(interpreter.version, interpreter.platform, [])), Environment)


def test_an_interpreter_found_by_path_lists_its_packages(parts, interpreter):
    from harness.environment import find_interpreter, foreign_lock

    built = parts.builder.build(parts.resolver.resolve(probe(parts, "brittle==1.2").combination).lock)
    found = find_interpreter(str(built.python), parts.resolver.uv)
    assert evolve(found, path=interpreter.path) == interpreter
    assert foreign_lock(found).pins == (Pin("brittle", "1.2"),)
    with pytest.raises(UserMistake, match="is not a Python"):
        find_interpreter(str(built.folder / "pyvenv.cfg"), parts.resolver.uv)


def test_a_file_missing_from_the_lock_is_not_installed(tmp_path, uv_cache, interpreter):
    """Another index has the file, without a date, and it fits this Python better."""
    house, other = Wheelhouse(tmp_path / "main"), Wheelhouse(tmp_path / "other")
    house.add("grown", "1.0", files={"grown.py": "WHICH = 1\n"}, uploaded="2024-01-01T12:00:00Z")
    better = f"py{''.join(interpreter.version.split('.')[:2])}-none-any"
    other.add("grown", "1.0", files={"grown.py": "WHICH = 2\n"}, tag=better, uploaded=None)
    settings = PipSettings(index_url=house.url, extra_index_urls=(other.url,))
    parts = make_parts(tmp_path, settings, uv_cache, interpreter)
    day = datetime(2024, 1, 2, tzinfo=UTC)
    answer = parts.resolver.resolve(Combination(interpreter.version, ("grown",), as_of=day))
    built = parts.builder.build(answer.lock)
    assert isinstance(built, Environment), built
    assert (site_packages(built.folder) / "grown.py").read_text() == "WHICH = 1\n"
