"""--sandbox, --network and HARNESS_SANDBOX: permissions of a run are recorded, and allowing more runs it again."""

from __future__ import annotations

import socket

import pytest

from harness.errors import UserMistake
from harness.events import SILENT
from harness.run.sandbox import SandboxMode, choose

try:
    choose(SandboxMode.REQUIRE, network=False, reporter=SILENT)
except UserMistake as none:
    pytest.skip(f"{none}", allow_module_level=True)


def test_a_repro_is_sandboxed_by_default_and_this_is_shown(harness, write_repro):
    inside = harness.with_environ(HARNESS_SANDBOX="")
    repro = write_repro("brittle", body="import os, brittle\nassert os.getppid() < 10\nbrittle.step()\n")
    seen = inside("probe", repro, "--with", "brittle==1.0", "--json").json
    assert seen["machine"]["sandbox"].startswith("bubblewrap")
    assert (seen["outcome"], seen["lock"]["pins"][0]["name"]) == ("completed", "brittle")
    ends = ("--good", "1.4", "--bad", "1.7", "--confirm", "1")
    ended = inside("bisect", "brittle", "--repro", repro, *ends, "--json")
    assert ended.json["first_bad"] == "1.6"


def test_allowing_more_runs_it_again(harness, write_repro):
    inside = harness.with_environ(HARNESS_SANDBOX="require")
    with socket.create_server(("127.0.0.1", 0)) as server:
        body = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)\n"
        repro = write_repro("brittle", name="asks_around", body=body)
        told = [
            inside("probe", repro, "--with", "brittle==1.0", *more, "--json").json
            for more in ((), ("--network",), ("--sandbox", "off"), ())
        ]
    assert [one["outcome"] for one in told] == ["raised", "completed", "completed", "raised"]
    assert [one["machine"]["sandbox"].rpartition(", ")[2] for one in told] == [
        "no network", "with network", "none", "no network"]  # fmt: skip
    assert len({one["key"] for one in told}) == 3


def test_a_required_but_missing_sandbox_is_a_mistake(harness, write_repro, tmp_path):
    repro = write_repro("brittle")
    ended = harness("probe", repro, "--sandbox", "require", PATH=str(tmp_path))
    assert ended.code == 2
    assert "bwrap" in ended.stderr
    ended = harness("probe", repro, HARNESS_SANDBOX="sometimes")
    assert ended.code == 2


def test_a_model_hub_out_of_reach_says_how_to_allow_the_network(harness, write_repro):
    inside = harness.with_environ(HARNESS_SANDBOX="require")
    body = """
        import socket
        try:
            socket.create_connection(("huggingface.co", 443), 5)
        except OSError as error:
            raise OSError("We couldn't connect to 'https://huggingface.co' to load the files") from error
    """
    repro = write_repro("brittle", name="loads", body=body, tool="")
    ended = inside("bisect", "brittle", "--repro", repro, "--good", "1.0", "--bad", "1.8")
    assert ended.code == 2
    assert "this failure is not a bug: it needs the network" in ended.stderr
    assert "--network allows it" in ended.stderr


def test_doctor_shows_the_sandbox(harness):
    def told(sandbox: str) -> str:
        lines = harness("doctor", HARNESS_SANDBOX=sandbox).stdout.splitlines()
        return next(line for line in lines if "sandbox" in line.split()[1:2])

    assert "bubblewrap" in told("require")
    assert "off: repros run with all your rights" in told("off")
