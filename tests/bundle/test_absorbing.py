"""Returned results are stored like local runs, once; those that do not fit their probe are refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil

import pytest
from carried import asked
from support import make_parts

from harness.bundle import absorb
from harness.environment import PipSettings
from harness.errors import NoSpace, UserMistake
from harness.model import Verdict
from harness.store import Store


def keys(bundle):
    return json.loads((bundle / "bundle.json").read_text())["probes"]


def rewrite(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_an_absorbed_run_equals_a_local_run(back, parts):
    absorbed = absorb(back, Store(back.parent / "elsewhere"))
    assert [taken.judgement.verdict for taken in absorbed.taken] == [Verdict.GOOD, Verdict.BAD]
    for taken, release in zip(absorbed.taken, ("1.2", "1.6"), strict=True):
        there = taken.observation
        here = parts.prober.execute(parts.prober.prepare(asked(parts, release).probe))
        measured = ("setup_s", "duration_s", "peak_memory", "started")
        assert all(getattr(there, name) for name in measured)
        for name in here.__attrs_attrs__:
            if name.name not in measured:
                assert getattr(there, name.name) == getattr(here, name.name), name.name
        logs = (Store(back.parent / "elsewhere").log(there), parts.store.log(here))
        first, second = ([line for line in log.splitlines() if "File " not in line] for log in logs)
        assert first == second
        assert first[0] == "stepping"


def test_an_absorbed_run_answers_on_a_machine_that_resolved_nothing(back, tmp_path, uv_cache, interpreter):
    cut_off = make_parts(tmp_path / "other", PipSettings(no_index=True), uv_cache, interpreter)
    taken = absorb(back, cut_off.store, cut_off.builder.uv).taken
    prepared = cut_off.prober.prepare(asked(cut_off, "1.6").probe)
    assert (prepared.cached, prepared.observation) == (True, taken[1].observation)


def test_absorbing_twice_changes_nothing(back, parts):
    absorb(back, parts.store)
    files = {path: path.read_bytes() for path in parts.store.root.rglob("*") if path.is_file()}
    again = absorb(back, parts.store)
    assert [taken.known for taken in again.taken] == [True, True]
    assert {path: path.read_bytes() for path in parts.store.root.rglob("*") if path.is_file()} == files


def test_probes_not_run_are_missing_and_the_rest_is_absorbed(back, parts):
    shutil.rmtree(back / "observed" / keys(back)[0])
    absorbed = absorb(back, parts.store)
    assert absorbed.missing == (("brittle 1.2", "not run yet"),)
    assert [taken.label for taken in absorbed.taken] == ["brittle 1.6"]


def spoil_script(bundle, key):
    path = bundle / "probes" / key / "brittle_step.py"
    path.write_text(path.read_text() + "# another\n")


def spoil_lock(bundle, key):
    path = bundle / "probes" / key / "probe.json"
    packed = json.loads(path.read_text())
    packed["probe"]["lock"]["pins"][0]["version"] = "1.3"
    path.write_text(json.dumps(packed))


def spoil_parameters(bundle, key):
    path = bundle / "probes" / key / "probe.json"
    packed = json.loads(path.read_text())
    packed["probe"]["repro"]["params"] = {"layers": 3}
    path.write_text(json.dumps(packed))


def spoil_wheel_digest(bundle, key):
    path = bundle / "probes" / key / "probe.json"
    packed = json.loads(path.read_text())
    packed["packed"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(packed))


def mix_up(bundle, key):
    first, second = (bundle / "observed" / one for one in keys(bundle))
    shutil.rmtree(first)
    shutil.copytree(second, first)


def run_another_script(bundle, key):
    rewrite(bundle / "observed" / key / "run.json", script="0" * 64)


def install_other_requirements(bundle, key):
    rewrite(bundle / "observed" / key / "run.json", requirements="0" * 64)


def change_the_log(bundle, key):
    (bundle / "observed" / key / "log.gz").write_bytes(b"")


def lose_the_report(bundle, key):
    (bundle / "observed" / key / "report.json").unlink()


def garble_the_record(bundle, key):
    (bundle / "observed" / key / "run.json").write_text("{")


def garble_the_end(bundle, key):
    rewrite(bundle / "observed" / key / "run.json", ended={"reason": "bored"})


def nest_the_record(bundle, key):
    (bundle / "observed" / key / "run.json").write_text("[" * 100_000)


def link_the_log(bundle, key):
    """The link leads out of the bundle, with the right digest in the record: whoever makes a bundle can write both."""
    outside = bundle.parent / "outside.gz"
    outside.write_bytes(gzip.compress(b"not of this bundle"))
    log = bundle / "observed" / key / "log.gz"
    log.unlink()
    log.symlink_to(outside)
    record = bundle / "observed" / key / "run.json"
    files = json.loads(record.read_text())["files"]
    rewrite(record, files={**files, "log.gz": hashlib.sha256(outside.read_bytes()).hexdigest()})


def link_the_folder(bundle, key):
    folder = bundle / "observed" / key
    folder.rename(bundle.parent / "outside")
    folder.symlink_to(bundle.parent / "outside")


def add_metrics(bundle, key):
    (bundle / "observed" / key / "metrics.json").write_text('{"loss": 0}')


def put_a_pipe_there(bundle, key):
    log = bundle / "observed" / key / "log.gz"
    log.unlink()
    os.mkfifo(log)


def damage_the_log(bundle, key):
    log = bundle / "observed" / key / "log.gz"
    log.write_bytes(log.read_bytes()[:12] + b"\xff" * 40)
    record = bundle / "observed" / key / "run.json"
    files = json.loads(record.read_text())["files"]
    rewrite(record, files={**files, "log.gz": hashlib.sha256(log.read_bytes()).hexdigest()})


def point_elsewhere(bundle, key):
    path = bundle / "probes" / key / "probe.json"
    packed = json.loads(path.read_text())
    packed["probe"]["repro"]["path"] = f"../{key}/{packed['probe']['repro']['path']}"
    path.write_text(json.dumps(packed))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_script, "are not those that were packed"),
        (spoil_lock, "are not those that were packed"),
        (spoil_parameters, "are not those that were packed"),
        (spoil_wheel_digest, "are not those that were packed"),
        (mix_up, "belongs to another probe"),
        (run_another_script, "a different script was run"),
        (install_other_requirements, "installed requirements differ"),
        (change_the_log, "log.gz was changed after the run"),
        (lose_the_report, "is incomplete"),
        (garble_the_record, "is incomplete"),
        (garble_the_end, "can't be read"),
        (nest_the_record, "is incomplete"),
        (link_the_log, "not a regular file"),
        (link_the_folder, "not a regular file"),
        (add_metrics, "was added after the run"),
        (put_a_pipe_there, "not a regular file"),
        (damage_the_log, "its log is damaged"),
        (point_elsewhere, "not a regular file"),
    ],
)
def test_a_result_that_does_not_fit_its_probe_is_refused_alone(back, parts, spoil, why):
    spoil(back, keys(back)[0])
    absorbed = absorb(back, parts.store)
    assert [taken.label for taken in absorbed.taken] == ["brittle 1.6"]
    ((_, told),) = absorbed.refused
    assert why in told
    assert len(list(parts.store.observations())) == 1


def test_another_patch_level_of_python_is_another_lock(back, parts):
    rewrite(back / "observed" / keys(back)[0] / "run.json", python="3.11.99")
    taken, other = absorb(back, parts.store).taken
    assert taken.observation.lock.python == "3.11.99"
    assert taken.observation.lock.pins == parts.prober.resolve(asked(parts, "1.2").probe).lock.pins
    assert (taken.observation.key == keys(back)[0], other.observation.key == keys(back)[1]) == (False, True)


def test_a_folder_that_is_not_a_bundle_is_refused(tmp_path, parts):
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(tmp_path, parts.store)


def test_a_bundle_with_a_later_schema_is_refused(back, parts):
    rewrite(back / "bundle.json", schema=6)
    with pytest.raises(UserMistake, match="schema 6"):
        absorb(back, parts.store)


def test_an_unwritable_results_folder_is_reported(back, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NoSpace, match="can't write"):
        absorb(back, Store(tmp_path / "file" / "results"))


@pytest.mark.parametrize("probes", [["../elsewhere"], ["/etc"], [""], 5, [["a"]]])
def test_a_bundle_with_paths_that_leave_it_is_refused(back, parts, probes):
    rewrite(back / "bundle.json", probes=probes)
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(back, parts.store)


def test_a_deeply_nested_bundle_is_refused(back, parts):
    (back / "bundle.json").write_text("[" * 100_000)
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(back, parts.store)
