"""Returned results are stored like local runs, once; those that do not fit their job are refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil

import pytest
from attrs import evolve
from carried import asked, back_from, pack, run_there
from support import make_parts

from harness.environment import PipSettings
from harness.errors import NoSpace, UserMistake
from harness.model import Verdict
from harness.probing.bundle import absorb
from harness.probing.job import SCHEMA, ProbeJob
from harness.store import Store


@pytest.fixture(scope="module")
def run_once(tmp_path_factory, house, uv_cache, interpreter):
    """A bundle of a good and a bad probe that has been run."""
    folder = tmp_path_factory.mktemp("carried")
    parts = make_parts(folder, PipSettings(index_url=house.url), uv_cache, interpreter)
    pack(parts, folder / "carry", asked(parts, "1.2"), asked(parts, "1.6"))
    ended = run_there(folder / "carry")
    assert ended.code == 0, ended.stdout + ended.stderr
    return folder / "carry"


@pytest.fixture
def back(run_once, tmp_path):
    """A copy of it to spoil."""
    return back_from(run_once, tmp_path / "back")


def keys(bundle):
    return json.loads((bundle / "bundle.json").read_text())["jobs"]


def rewrite(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def forge(folder, change):
    """Change a result, and seal it again: whoever forges one can do that, too."""
    path = folder / "result.json"
    record = json.loads(path.read_text())["result"]
    change(record)
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({"sha256": digest, "result": record}))


def change_job(bundle, key, change):
    path = bundle / key / "job.json"
    job = json.loads(path.read_text())
    change(job)
    path.write_text(json.dumps(job))


def test_an_absorbed_run_equals_a_local_run(back, parts):
    absorbed = absorb(back, Store(back.parent / "elsewhere"))
    assert [taken.judgement.verdict for taken in absorbed.taken] == [Verdict.GOOD, Verdict.BAD]
    for taken, release in zip(absorbed.taken, ("1.2", "1.6"), strict=True):
        there = taken.observation
        here = parts.prober.execute(parts.prober.prepare(asked(parts, release)))
        measured = ("setup_s", "duration_s", "peak_memory", "started")
        assert all(getattr(there, name) for name in measured)
        for name in here.__attrs_attrs__:
            if name.name not in measured:
                assert getattr(there, name.name) == getattr(here, name.name), name.name
        logs = (Store(back.parent / "elsewhere").log(there), parts.store.log(here))
        first, second = ([line for line in log.splitlines() if "File " not in line] for log in logs)
        assert first == second
        assert first[0] == "stepping"


def test_a_bundle_does_not_say_to_what_a_question_resolves(back, tmp_path, uv_cache, interpreter):
    """A store that did not pack it has only its runs."""
    cut_off = make_parts(tmp_path / "other", PipSettings(no_index=True), uv_cache, interpreter)
    taken = absorb(back, cut_off.store).taken
    assert cut_off.store.get(taken[1].observation.key) == taken[1].observation
    assert not (cut_off.store.root / "locks").exists()


def test_absorbing_twice_changes_nothing(back, parts):
    absorb(back, parts.store)
    files = {path: path.read_bytes() for path in parts.store.root.rglob("*") if path.is_file()}
    again = absorb(back, parts.store)
    assert [taken.known for taken in again.taken] == [True, True]
    assert {path: path.read_bytes() for path in parts.store.root.rglob("*") if path.is_file()} == files


def test_probes_not_run_are_missing_and_the_rest_is_absorbed(back, parts):
    (back / keys(back)[0] / "result.json").unlink()
    absorbed = absorb(back, parts.store)
    assert absorbed.missing == (("brittle 1.2", "not run yet"),)
    assert [taken.label for taken in absorbed.taken] == ["brittle 1.6"]


def spoil_script(bundle, key):
    change_job(bundle, key, lambda job: job["probe"]["repro"].update(source=job["probe"]["repro"]["source"] + "# x\n"))


def spoil_lock(bundle, key):
    change_job(bundle, key, lambda job: job["probe"]["lock"]["pins"][0].update(version="1.3"))


def spoil_requirement(bundle, key):
    change_job(bundle, key, lambda job: job["probe"]["combination"].update(requirements=["brittle==1.3"]))


def spoil_parameters(bundle, key):
    change_job(bundle, key, lambda job: job["probe"]["repro"].update(params={"layers": 3}))


def spoil_wheel_digest(bundle, key):
    change_job(bundle, key, lambda job: job["wheels"][0].update(sha256="0" * 64))


def rename_the_job(bundle, key):
    other = keys(bundle)[1]
    shutil.copy(bundle / other / "job.json", bundle / key / "job.json")


def garble_the_job(bundle, key):
    (bundle / key / "job.json").write_text("[]")


def mix_up(bundle, key):
    other = bundle / keys(bundle)[1]
    for name in ("result.json", "log.gz"):
        shutil.copy(other / name, bundle / key / name)


def run_another_script(bundle, key):
    forge(bundle / key, lambda result: result["observation"].update(repro_digest="0" * 16))


def install_another_lock(bundle, key):
    forge(bundle / key, lambda result: result["observation"]["lock"]["pins"][0].update(version="1.3"))


def run_on_another_platform(bundle, key):
    forge(bundle / key, lambda result: result["kind"].update(platform="linux-riscv64"))


def run_with_another_python(bundle, key):
    forge(bundle / key, lambda result: result["kind"].update(python="3.99.1"))


def change_the_outcome(bundle, key):
    path = bundle / key / "result.json"
    path.write_text(path.read_text().replace('"completed"', '"crashed"'))


def change_the_log(bundle, key):
    (bundle / key / "log.gz").write_bytes(b"")


def lose_the_log(bundle, key):
    (bundle / key / "log.gz").unlink()


def garble_the_result(bundle, key):
    (bundle / key / "result.json").write_text("{")


def garble_the_outcome(bundle, key):
    forge(bundle / key, lambda result: result["observation"].update(outcome="bored"))


def nest_the_result(bundle, key):
    (bundle / key / "result.json").write_text("[" * 100_000)


def link_the_log(bundle, key):
    outside = bundle.parent / "outside.gz"
    outside.write_bytes(gzip.compress(b"not of this bundle"))
    (bundle / key / "log.gz").unlink()
    (bundle / key / "log.gz").symlink_to(outside)
    digest = hashlib.sha256(outside.read_bytes()).hexdigest()
    forge(bundle / key, lambda result: result.update(log_digest=digest))


def link_the_folder(bundle, key):
    (bundle / key).rename(bundle.parent / "outside")
    (bundle / key).symlink_to(bundle.parent / "outside")


def put_a_pipe_there(bundle, key):
    (bundle / key / "log.gz").unlink()
    os.mkfifo(bundle / key / "log.gz")


def damage_the_log(bundle, key):
    log = bundle / key / "log.gz"
    log.write_bytes(log.read_bytes()[:12] + b"\xff" * 40)
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    forge(bundle / key, lambda result: result.update(log_digest=digest))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_script, "are not those that were packed"),
        (spoil_lock, "are not those that were packed"),
        (spoil_requirement, "its lock does not meet brittle==1.3"),
        (spoil_parameters, "are not those that were packed"),
        (spoil_wheel_digest, "are not those that were packed"),
        (rename_the_job, "are not those that were packed"),
        (garble_the_job, "its job can't be read"),
        (mix_up, "belongs to another probe"),
        (run_another_script, "belongs to another probe"),
        (install_another_lock, "belongs to another probe"),
        (run_on_another_platform, "linux-riscv64"),
        (run_with_another_python, "Python 3.99.1"),
        (change_the_outcome, "result.json was changed after the run"),
        (change_the_log, "log.gz was changed after the run"),
        (lose_the_log, "is incomplete"),
        (garble_the_result, "is incomplete"),
        (garble_the_outcome, "result.json was changed"),
        (nest_the_result, "is incomplete"),
        (link_the_log, "not a regular file"),
        (link_the_folder, "not a regular file"),
        (put_a_pipe_there, "not a regular file"),
        (damage_the_log, "its log is damaged"),
    ],
)
def test_a_result_that_does_not_fit_its_job_is_refused_alone(back, parts, spoil, why):
    spoil(back, keys(back)[0])
    absorbed = absorb(back, parts.store)
    assert [taken.label for taken in absorbed.taken] == ["brittle 1.6"]
    ((_, told),) = absorbed.refused
    assert why in told
    assert len(list(parts.store.observations())) == 1


def test_what_was_run_is_taken_from_the_job(back, parts):
    forge(back / keys(back)[0], lambda result: result["observation"].update(params={"layers": 3}, repro="another"))
    first = absorb(back, parts.store).taken[0].observation
    assert (first.params, first.repro) == ({}, "brittle_step")


def test_another_patch_level_of_python_is_another_lock(back, parts):
    other = "3.11.99"

    def elsewhere(result):
        result["kind"]["python"] = result["observation"]["lock"]["python"] = other
        result["observation"]["key"] = key_at(back, other)

    forge(back / keys(back)[0], elsewhere)
    taken, _ = absorb(back, parts.store).taken
    assert taken.observation.lock.python == other
    assert taken.observation.lock.pins == parts.prober.resolve(asked(parts, "1.2")).lock.pins
    assert taken.observation.key != keys(back)[0]


def key_at(bundle, python):
    """The key of the first job with another patch level of Python."""
    job = ProbeJob.read(bundle / keys(bundle)[0])
    return job.key_with(evolve(job.lock, python=python), "")


def test_a_folder_that_is_not_a_bundle_is_refused(tmp_path, parts):
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(tmp_path, parts.store)


def test_a_bundle_with_a_later_schema_is_refused(back, parts):
    rewrite(back / "bundle.json", schema=SCHEMA + 1)
    with pytest.raises(UserMistake, match=f"schema {SCHEMA + 1}"):
        absorb(back, parts.store)


def test_an_unwritable_results_folder_is_reported(back, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NoSpace, match="can't write"):
        absorb(back, Store(tmp_path / "file" / "results"))


@pytest.mark.parametrize("probes", [["../elsewhere"], ["/etc"], [""], 5, [["a"]]])
def test_a_bundle_with_paths_that_leave_it_is_refused(back, parts, probes):
    rewrite(back / "bundle.json", jobs=probes)
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(back, parts.store)


def test_a_deeply_nested_bundle_is_refused(back, parts):
    (back / "bundle.json").write_text("[" * 100_000)
    with pytest.raises(UserMistake, match="is not a bundle"):
        absorb(back, parts.store)
