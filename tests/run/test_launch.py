"""The files of a run, and what is kept of them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from harness.run.launch import (
    LOG_KEPT,
    OUTPUT_LIMIT,
    GuardLimits,
    guard_request,
    keep_log,
    memory_limit,
    physical_memory,
    repro_variables,
    script_command,
)
from harness.run.scratch_folder import scratch_folder


def test_a_verdict_on_the_cpu_never_comes_from_a_gpu():
    assert repro_variables({"layers": 2}, "cpu") == {
        "HARNESS_PARAMS": '{"layers": 2}',
        "HARNESS_DEVICE": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert "CUDA_VISIBLE_DEVICES" not in repro_variables({}, "cuda")


def test_the_memory_limit_is_as_requested_or_nine_tenths_of_the_machine():
    assert memory_limit(5) == 5
    assert memory_limit(None) == int(physical_memory() * 0.9)


@pytest.mark.parametrize("capability", [None, "9.0"])
def test_script_and_job_are_where_the_child_driver_looks(tmp_path, capability):
    with scratch_folder(tmp_path) as place:
        command = script_command(
            place, python=Path("/p"), inside=tmp_path, name="step.py", source="pass", capability=capability
        )
        job = json.loads(place.job.read_text())
        assert command == ["/p", str(tmp_path / "child.py"), str(place.job)]
        assert Path(job["script"]).read_text() == "pass"
        emulation = {"package": str(tmp_path / "emulation"), "capability": "9.0"}
        assert job["emulation"] == (emulation if capability else None)


def test_the_instructions_to_the_guard_are_one_line():
    line = guard_request(["a"], GuardLimits(1.5, 9), env={"B": "c\nd"}, cwd=Path("/"), output=Path("/log"))
    assert line.count(b"\n") == 1
    told = json.loads(line)
    assert (told.pop("log_keep"), told.pop("output_limit"), told.pop("sandbox")) == (LOG_KEPT, OUTPUT_LIMIT, [])
    assert told == {
        "argv": ["a"],
        "env": {"B": "c\nd"},
        "cwd": "/",
        "wall_s": 1.5,
        "memory": 9,
        "one_cpu": False,
        "output": "/log",
        "remove_if_orphaned": "",
    }


class Broken(io.BytesIO):
    """A log that cannot be read."""

    def read(self, size: int | None = -1) -> bytes:
        """Fail like a disk."""
        raise OSError("gone")


def test_a_log_is_kept_completely_or_not_at_all(tmp_path):
    keep_log(io.BytesIO(b"stepping\n"), tmp_path / "logs" / "one.gz")
    assert gzip.decompress((tmp_path / "logs" / "one.gz").read_bytes()) == b"stepping\n"
    with pytest.raises(OSError, match="gone"):
        keep_log(Broken(), tmp_path / "logs" / "two.gz")
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["one.gz"]
