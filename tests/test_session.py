"""A session: how many runs go on at once where the user does not say."""

from __future__ import annotations

import os

import pytest
from attrs import evolve
from support import SIGNED, repro_text

from harness.model import Device
from harness.model.repro import command_repro, parse_repro
from harness.run.sandbox import Sandbox
from harness.session import local_session
from harness.settings import Settings

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
METRIC = '[tool.harness.signature]\nmetric = "loss"\nabove = 1.0\n'
HANG = "[tool.harness.signature]\nhang = true\n"


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return lambda **more: local_session(Settings(results=tmp_path / "results", **more))


def script(tool=SIGNED):
    return parse_repro(repro_text("brittle", tool=tool), name="step")


@pytest.mark.parametrize("device", [Device.CPU, Device.EMULATED])
def test_a_script_on_the_cpu_gets_two_lanes(session, device):
    assert session().lane_count(device, script()) == min(2, CORES)


@pytest.mark.parametrize("tool", [METRIC, HANG])
def test_what_speed_may_change_gets_one_lane(session, tool):
    assert session().lane_count(Device.CPU, script(tool)) == 1


def test_a_gpu_gets_one_lane(session):
    assert session().lane_count(Device.CUDA, script()) == 1
    assert session().lane_count(Device.CPU) == 1


@pytest.mark.parametrize(
    ("sandbox", "lanes"),
    [
        (None, 1),
        (Sandbox("bwrap", "1", network=True), 1),
        (Sandbox("bwrap", "1"), min(2, CORES)),
    ],
    ids=["none", "with network", "without network"],
)
def test_commands_get_two_lanes_where_they_share_no_port_and_no_file(session, sandbox, lanes):
    given = session()
    builder = given.local.builder
    local = evolve(given.local, builder=evolve(builder, uv=evolve(builder.uv, sandbox=sandbox)))
    assert evolve(given, local=local).lane_count(Device.CPU, command_repro("pytest")) == lanes


def test_the_user_decides(session):
    assert session(lanes=3).lane_count(Device.CUDA, script(METRIC)) == 3
