"""Change times of stored bytecode: a link changes them, and a file whose change time is unknown has to be read."""

from __future__ import annotations

import os

from support import repro_text

from harness.environment import watched_environment
from harness.environment.bytecode import BytecodeTree
from harness.environment.manifest import Manifest, files_below
from harness.environment.workspace import site_packages
from harness.model import Combination
from harness.model.repro import parse_repro
from harness.probing import Probe


def environment(parts, *requirements):
    """An environment after a run in it, which stores the bytecode of what it imports, and before the next one."""
    repro = parse_repro(repro_text("helper", body="import helper, json\n"), name="x")
    probe = Probe(repro, Combination(parts.resolver.interpreter.version, requirements))
    prepared = parts.prober.prepare(probe)
    parts.prober.execute(prepared)
    with watched_environment(parts.builder, prepared.environment):
        return prepared.environment


def sources(parts, made):
    return parts.builder.sources(Manifest.read(parts.builder.location(made.lock).manifest_path), made.folder)


def tree_of(parts, made):
    return parts.builder.location(made.lock).pycache


def unknown_times(parts, made):
    """The files of the bytecode tree of an environment whose content the ledger does not know."""
    found = files_below(tree_of(parts, made))
    assert any("helper" in path for path in found)
    return sorted(found.keys() - parts.builder.wheels.ledger.known(found))


def helper_of(parts, made):
    (found,) = tree_of(parts, made).rglob("helper.*.pyc")
    return found


def test_links_of_later_trees_leave_no_unknown_change_times(parts):
    first = environment(parts, "helper==1.0")
    before = helper_of(parts, first).stat().st_ctime_ns
    second = environment(parts, "helper==1.0", "brittle==1.2")
    assert helper_of(parts, first).stat().st_ino == helper_of(parts, second).stat().st_ino
    assert helper_of(parts, first).stat().st_ctime_ns > before
    assert unknown_times(parts, first) == unknown_times(parts, second) == []


def test_a_tree_of_one_run_has_the_bytecode_that_is_known(parts):
    made = environment(parts, "helper==1.0")
    with watched_environment(parts.builder, made), watched_environment(parts.builder, made) as beside:
        assert beside.pycache != tree_of(parts, made)
        assert list(beside.pycache.rglob("helper.*.pyc"))


def test_what_a_run_left_in_a_tree_is_gone_before_the_next(parts):
    made = environment(parts, "helper==1.0")
    left, changed = tree_of(parts, made) / "left" / "module.pyc", helper_of(parts, made)
    left.parent.mkdir()
    left.write_bytes(b"")
    changed.unlink()
    changed.write_bytes(b"changed")
    with watched_environment(parts.builder, made) as place:
        assert not left.exists()
        assert helper_of(parts, made).read_bytes() != b"changed"
        assert place.altered() == ()


def test_the_tree_of_a_new_environment_is_filled_once_before_its_first_run(parts):
    environment(parts, "helper==1.0")
    lock = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, ("helper==1.0", "brittle==1.2"))).lock
    made = parts.builder.build(lock)
    before = helper_of(parts, made).stat().st_ctime_ns
    with watched_environment(parts.builder, made):
        assert helper_of(parts, made).stat().st_ctime_ns == before


def test_a_file_with_another_change_time_is_read_and_dropped_if_it_changed(parts):
    first = environment(parts, "helper==1.0")
    bytecode = helper_of(parts, first)
    times, data = bytecode.stat(), bytecode.read_bytes()
    bytecode.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(bytecode, ns=(times.st_atime_ns, times.st_mtime_ns))
    folder = parts.workspace.root / "tree"
    filled = parts.builder.bytecode.fill(folder, sources(parts, first))
    assert filled
    assert not any("helper" in path for path in filled)
    assert not list(folder.rglob("helper.*.pyc"))
    assert not any("helper" in str(path) for path in parts.builder.wheels.root.rglob("*.pyc"))


def test_a_source_with_another_time_gets_no_bytecode(parts):
    first = environment(parts, "helper==1.0")
    source = site_packages(first.folder) / "helper.py"
    os.utime(source, (1, 1))
    with BytecodeTree.opened(
        parts.builder.bytecode, sources(parts, first), parts.workspace.root / "tree", shared=None
    ) as tree:
        assert tree.files
        assert not any("helper" in path for path in tree.files)
