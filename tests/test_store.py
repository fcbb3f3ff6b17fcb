"""The store keeps observations completely, and an unreadable record counts as missing."""

from __future__ import annotations

import gzip
import json
import math

import pytest
from attrs import evolve

from harness.environment import Resolution
from harness.errors import NoSpace
from harness.model import (
    Device,
    Lock,
    Observation,
    Outcome,
    Pin,
    RaisedException,
    Repro,
    StackFrame,
    TestOutcome,
    TestResult,
)
from harness.store import Store, observation_key

DEEP = '{"schema": 1, "key": ' + "[" * 100_000
LOCK = Lock("3.11.7", "linux", [Pin("brittle", "1.2", "b.whl", "ff", 12)])
FULL = Observation(
    key="ab12",
    outcome=Outcome.RAISED,
    repro="step",
    repro_digest="d",
    device=Device.CPU,
    detail="ValueError: x",
    exception=RaisedException(
        "builtins.ValueError",
        "x",
        ("builtins.Exception",),
        (StackFrame("a.py", 3, "f", "a", "f()"),),
        RaisedException("builtins.KeyError", "k"),
    ),
    exit_code=1,
    metrics={"loss": 1.5, "worst": math.inf},
    params={"layers": 2, "case": "small", "list": [1, None]},
    lock=LOCK,
    requirements=("brittle==1.2",),
    drift=("helper 2 -> 3",),
    machine={"name": "cpu", "cores": 2},
    loaded={"brittle": ("brittle.py",)},
    duration_s=1.25,
    peak_memory=123456789,
    started="2025-01-01T00:00:00+00:00",
    attempt=1,
    log="observations/ab/ab12.log.gz",
    tests=(
        TestResult("tests/test_a.py::test_b[1-x]", TestOutcome.PASSED, duration_s=0.25),
        TestResult("tests/test_a.py", TestOutcome.ERROR, RaisedException("builtins.ImportError", "no name 'é'")),
    ),
)


def test_an_observation_is_read_back_unchanged(tmp_path):
    Store(tmp_path).put(FULL)
    assert Store(tmp_path).get("ab12") == FULL
    assert Store(tmp_path).get("ab13") is None


def test_a_record_names_its_schema_and_leaves_no_other_file(tmp_path):
    Store(tmp_path).put(FULL)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["ab12.json"]
    assert json.loads(files[0].read_text())["schema"] == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", DEEP, '{"schema": 1}', '{"schema": 99}', '{"schema": 1, "key": 3}']
)
def test_an_unreadable_record_counts_as_absent(tmp_path, text):
    store = Store(tmp_path)
    store.put(FULL)
    next(tmp_path.rglob("*.json")).write_text(text)
    assert store.get("ab12") is None
    assert list(store.observations()) == []
    assert store.rows() == []


@pytest.mark.parametrize(
    "resolution",
    [Resolution(LOCK, ("x",)), Resolution(None, words="a==1 and a==2, which are incompatible")],
)
def test_a_resolution_is_read_back_unchanged(tmp_path, resolution):
    store = Store(tmp_path)
    store.put_resolution("key", resolution)
    assert store.get_resolution("key") == resolution
    assert store.get_resolution("other") is None
    for text in ("{", "[]", "null", DEEP):
        (tmp_path / "locks" / "key.json").write_text(text)
        assert store.get_resolution("key") is None


def test_an_existing_log_is_read(tmp_path):
    store = Store(tmp_path)
    path = store.log_path("ab12")
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert store.log(FULL) == "one\ntwo\n"
    path.write_bytes(gzip.compress(b"one\ntwo\n")[:12])
    assert "one\ntwo\n".startswith(store.log(FULL))
    damaged = bytearray(gzip.compress(bytes(range(256)) * 40))
    damaged[len(damaged) // 2 :] = b"\xff" * (len(damaged) - len(damaged) // 2)
    path.write_bytes(damaged)
    assert len(store.log(FULL)) < 256 * 40
    assert not store.has_log(FULL)
    path.unlink()
    assert store.log(FULL) == ""
    assert store.log(evolve(FULL, log="")) == ""


def test_observations_are_oldest_first_and_form_a_table(tmp_path):
    store = Store(tmp_path)
    late = evolve(FULL, key="aa", started="2025-02-01T00:00:00+00:00", lock=None, exception=None)
    store.put(late)
    store.put(FULL)
    assert list(store.observations()) == [FULL, late]
    first, second = store.rows()
    assert (first["key"], second["key"]) == ("ab12", "aa")
    assert first["version:brittle"] == "1.2"
    assert [row["metric:loss"] for row in (first, second)] == [1.5, 1.5]
    assert [row["param:layers"] for row in (first, second)] == [2, 2]


def test_an_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "results")
    with pytest.raises(NoSpace, match="can't write to"):
        store.put(FULL)
    with pytest.raises(NoSpace, match="can't write to"):
        store.log_path("ab12")
    assert store.get("ab12") is None


def test_anything_that_can_change_the_outcome_changes_the_key():
    repro = Repro("step", "d")
    keys = [
        observation_key(LOCK, repro, Device.CPU),
        observation_key(evolve(LOCK, python="3.12.1"), repro, Device.CPU),
        observation_key(LOCK, evolve(repro, digest="e"), Device.CPU),
        observation_key(LOCK, evolve(repro, params={"a": 1}), Device.CPU),
        observation_key(LOCK, repro, Device.CUDA),
        observation_key(LOCK, repro, Device.CUDA, machine="another GPU"),
        observation_key(LOCK, repro, Device.CPU, attempt=1),
        observation_key(LOCK, repro, Device.CPU, mixture="m"),
    ]
    assert len(set(keys)) == len(keys)
    assert observation_key(LOCK, evolve(repro, name="other", path="elsewhere"), Device.CPU) == keys[0]


def test_half_written_files_of_killed_harnesses_are_removed_and_those_of_other_programs_are_not(tmp_path):
    store = Store(tmp_path)
    store.write("reports/a.md", "a")
    (tmp_path / "observations" / "ab").mkdir(parents=True)
    left = [tmp_path / place / ".x.1.harness.part" for place in (".", "reports", "observations/ab")]
    others = [tmp_path / "reports" / ".x.part", tmp_path / "reports" / "a.md"]
    for path in (*left, others[0]):
        path.touch()
    store.remove_leftovers()
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)
