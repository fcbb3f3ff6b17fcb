"""`--device cuda`: each probe gets its own GPU, and a full GPU is waited for and never blamed."""

from __future__ import annotations

import json
import os
import time

import pytest
from support import MESSAGE, SIGNED

PEEK = """
import json, os, time
from pathlib import Path
import brittle
place = Path(os.environ["MEETING"])

def held(file):  # by a probe that goes on: one that is stopped leaves its number
    try:
        os.kill(int(file.read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True

mine = place / os.environ["CUDA_VISIBLE_DEVICES"]
if held(mine):
    raise SystemExit("another probe is on this GPU")
mine.with_suffix(".new").write_text(str(os.getpid()))
mine.with_suffix(".new").rename(mine)
others = [place / name for name in ("GPU-1", "GPU-2") if name != mine.name]
until = time.monotonic() + 100
while not any(map(held, others)) and brittle.NUMBER in (2, 7) and time.monotonic() < until:
    time.sleep(0.02)
met = 1 + sum(map(held, others))
time.sleep(0.2)
print("on", os.environ["CUDA_VISIBLE_DEVICES"], "beside", met - 1)
with open(os.environ["HARNESS_METRICS"], "w") as file:
    json.dump({"met": met}, file)
brittle.step()
"""
PEEK_AT_GPUS = "import os\nprint('sees', os.environ['CUDA_VISIBLE_DEVICES'])\n"


@pytest.fixture
def smi(tmp_path):
    """Write a program that lists GPUs like nvidia-smi; return the PATH to find it."""

    def make(*rows):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "nvidia-smi"
        listing = "\n".join(
            f"{index}, {name}, 15109, {free}, 550.54, GPU-{index}, 7.5" for index, (name, free) in enumerate(rows)
        )
        program.write_text(f"#!/bin/sh\ncat <<'.'\n{listing}\n.\n")
        program.chmod(0o755)
        return f"{folder}{os.pathsep}{os.environ['PATH']}"

    return make


def records(harness):
    return [json.loads(p.read_text()) for p in (harness.folder / "results" / "observations").glob("*/*.json")]


def test_two_lanes_use_one_gpu_each_and_leave_out_another_model(harness, write_repro, smi, tmp_path):
    write_repro("brittle", tool=f'device = "cuda"\n{SIGNED}', body=PEEK)
    (tmp_path / "meeting").mkdir()
    command = ["bisect", "brittle", "--good", "1.2", "--bad", "1.7", "--depth", "release", "--lanes", "2"]
    command += ["--confirm", "1"]
    ended = harness(
        *command,
        "--pass-env",
        "MEETING",
        MEETING=str(tmp_path / "meeting"),
        PATH=smi(("NVIDIA A100", 15000), ("NVIDIA T4", 15000), ("NVIDIA T4", 14000)),
        CUDA_VISIBLE_DEVICES=None,
    )
    assert "First bad   brittle 1.6" in ended.stdout
    assert "Runs on 2 GPUs: NVIDIA T4, driver 550.54" in ended.stderr
    assert "another model: GPU 0 (NVIDIA A100)" in ended.stderr
    seen = records(harness)
    assert {record["machine"]["gpu"] for record in seen} == {1, 2}
    assert {(record["machine"]["name"], record["device"]) for record in seen} == {("NVIDIA T4", "cuda")}
    assert max(record["metrics"]["met"] for record in seen) == 2


def test_a_gpu_that_fails_the_last_good_packages_too_makes_no_regression(harness, write_repro, smi, tmp_path):
    sick = f"if os.path.exists(os.environ['MEETING']):\n    raise RuntimeError({MESSAGE!r})\n"
    body = f"import brittle, os\n{sick}brittle.step()\n"
    write_repro("brittle", tool=f'device = "cuda"\n{SIGNED}', body=body)
    more = {"MEETING": str(tmp_path / "sick"), "PATH": smi(("NVIDIA T4", 15000)), "CUDA_VISIBLE_DEVICES": None}
    command = ["bisect", "brittle", "--bad", "1.7", "--depth", "release", "--confirm", "0", "--pass-env", "MEETING"]
    assert harness(*command, "--good", "1.2", **more).code == 0
    (tmp_path / "sick").touch()
    time.sleep(2.1)  # a run of this second or the last one would count as a run of this question
    ended = harness(*command, "--good", "1.5", **more)
    assert ended.code == 3, ended.stdout
    assert "Not the packages: brittle 1.5 fails here today, too: RuntimeError: " in ended.stdout
    assert {len(record["machine"]["host"]) for record in records(harness)} == {8}


def test_a_lack_of_memory_is_the_machines_where_other_processes_use_it(harness, write_repro, smi):
    write_repro("brittle", tool=f'device = "cuda"\n{SIGNED}', body="raise RuntimeError('CUDA out of memory')\n")
    command, outcomes = ("probe", "brittle_step", "--with", "brittle==1.5"), []
    for free in (9000, 15000):  # what a machine failed is no answer to the next question
        ended = harness(*command, PATH=smi(("NVIDIA T4", free)), CUDA_VISIBLE_DEVICES=None)
        (record,) = records(harness)
        outcomes.append((ended.code, record["outcome"], "other processes had 6.0 GiB" in ended.stdout))
    assert outcomes == [(3, "machine-failed", True), (3, "out-of-memory", False)]


def test_a_gpu_without_the_memory_is_an_unstored_skip_with_a_reason(harness, write_repro, smi):
    command = ["probe", "brittle_step", "--with", "brittle==1.6"]
    listing = smi(("NVIDIA T4", 15000))
    write_repro("brittle", tool=f'device = "cuda"\ngpu-memory = "40 GiB"\n{SIGNED}')
    small = harness(*command, PATH=listing, CUDA_VISIBLE_DEVICES=None)
    assert small.code == 3
    assert "skipped device-failed: GPU 0 (NVIDIA T4) has 15 GiB, 40 GiB are needed" in small.stdout
    assert records(harness) == []
    write_repro("brittle", tool=f'device = "cuda"\ngpu-memory = "4 GiB"\n{SIGNED}')
    enough = harness(*command, PATH=listing, CUDA_VISIBLE_DEVICES=None)
    assert enough.code == 1
    assert "cuda (NVIDIA T4)" in enough.stdout


def test_a_run_sees_as_many_gpus_of_one_model_as_it_needs(harness, write_repro, smi):
    write_repro("brittle", tool=f'device = "cuda"\ngpus = 2\n{SIGNED}', body=PEEK_AT_GPUS)
    command = ["probe", "brittle_step", "--with", "brittle==1.5"]
    rows = ("NVIDIA A100", 15000), ("NVIDIA T4", 14000), ("NVIDIA T4", 15000)
    ended = harness(*command, PATH=smi(*rows), CUDA_VISIBLE_DEVICES=None)
    assert (ended.code, "sees GPU-2,GPU-1" in ended.stdout) == (0, True), ended.stdout
    assert records(harness)[0]["machine"]["gpus"] == 2
    few = harness(*command, "--fresh", PATH=smi(*rows[:2]), CUDA_VISIBLE_DEVICES=None)
    assert few.code == 3
    words = "skipped device-failed: 2 GPUs of one model are needed, this machine has 1 such GPU"
    assert words in few.stdout


def test_two_lanes_take_turns_on_one_gpu(harness, write_repro, smi, tmp_path):
    write_repro("brittle", tool=f'device = "cuda"\n{SIGNED}', body=PEEK.replace("in (2, 7)", "== -1"))
    (tmp_path / "meeting").mkdir()
    command = ["bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release", "--lanes", "2"]
    command += ["--confirm", "1"]
    environ = {"MEETING": str(tmp_path / "meeting"), "PATH": smi(("NVIDIA T4", 15000))}
    ended = harness(*command, "--pass-env", "MEETING", CUDA_VISIBLE_DEVICES=None, **environ)
    assert "First bad   brittle 1.6" in ended.stdout
    assert {record["metrics"]["met"] for record in records(harness)} == {1.0}
