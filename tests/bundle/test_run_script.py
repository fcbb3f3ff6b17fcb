"""The run script: standard library only, no network, limits, and resuming where it stopped."""

from __future__ import annotations

import ast
import gzip
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from attrs import evolve
from carried import asked, cut_off, node_with, pack, run_there, start_there
from support import SIGNED, processes_below, step_source

import harness
from harness.bundle import absorb, read_installed
from harness.bundle.packing import CARRIED_TOOLS
from harness.model import Device, Outcome, Verdict
from harness.probing import probe_key
from harness.run.devices import Gpu

HOUSE = Path(harness.__file__).parent
CARRIED = [
    HOUSE / "bundle" / "running.py",
    *(HOUSE / "run" / name for name in CARRIED_TOOLS),
    *(HOUSE / "run" / "inside").rglob("*.py"),
]
GATED = """
import os, time, brittle
from pathlib import Path
gate = Path(os.environ["GATE"])
if brittle.NUMBER == 6:
    (gate / "reached").touch()
    while not (gate / "open").exists():
        time.sleep(0.02)
brittle.step()
"""


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.name)
def test_the_run_script_needs_only_python_3_9_and_its_standard_library(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    ours = {file.stem for file in CARRIED} | {"_harness_inside", "harness", "torch", "triton", "pytest"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module)]
        else:
            continue
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | ours


def test_progress_is_shown_and_finished_probes_are_not_repeated(back):
    again = run_there(back)
    assert again.code == 0
    assert again.stdout.splitlines()[:2] == [
        "1 of 2  brittle 1.2: already run",
        "2 of 2  brittle 1.6: already run",
    ]
    assert not list((back / "environments").iterdir())


@pytest.mark.parametrize(
    ("body", "altered"),
    [
        ("import brittle\n", []),
        ("import brittle\nopen(brittle.__file__, 'a').write('x = 1')\n", ["brittle.py"]),
        ("import brittle, os\nos.unlink(brittle.__file__)\n", ["brittle.py"]),
        ("import brittle\nopen(brittle.__file__ + '.more', 'w')\n", ["brittle.py.more"]),
    ],
)
def test_what_a_run_changes_in_its_environment_is_reported(parts, tmp_path, body, altered):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", body=body))
    assert run_there(tmp_path / "carry").code == 0
    (taken,) = absorb(tmp_path / "carry", parts.store).taken
    assert [name.rpartition("site-packages/")[2] for name in taken.observation.altered] == altered


def test_a_hanging_repro_is_stopped_and_recorded(parts, tmp_path):
    pack(
        parts,
        tmp_path / "carry",
        asked(parts, "1.2", body="import time\ntime.sleep(600)", tool=f"timeout = 0.7\n{SIGNED}"),
    )
    ended = run_there(tmp_path / "carry")
    assert (ended.code, "(stopped, timeout)" in ended.stdout) == (0, True)
    (taken,) = absorb(tmp_path / "carry", parts.store).taken
    assert (taken.observation.outcome, taken.judgement.verdict) == (Outcome.TIMED_OUT, Verdict.SKIP)
    assert "timed out after 0.7 s" in taken.observation.detail


def test_an_interrupted_run_leaves_nothing_running_and_can_resume(parts, tmp_path, run_once):
    bundle, gate = tmp_path / "carry", tmp_path / "gate"
    gate.mkdir()
    parts = evolve(parts, prober=evolve(parts.prober, pass_env=("GATE",)))
    pack(parts, bundle, asked(parts, "1.2", body=GATED), asked(parts, "1.6", body=GATED), like=run_once)
    process = start_there(bundle, GATE=str(gate))
    until = time.monotonic() + 60
    while not (gate / "reached").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, "stopped: run python run.py again" in stderr) == (130, True)
    assert not processes_below(bundle)
    (gate / "open").touch()
    ended = run_there(bundle, GATE=str(gate))
    assert (ended.code, "1 of 2  brittle 1.2: already run" in ended.stdout) == (0, True)
    assert [taken.judgement.verdict for taken in absorb(bundle, parts.store).taken] == [Verdict.GOOD, Verdict.BAD]


def test_missing_or_wrong_wheels_are_reported_and_can_be_added_later(back, parts):
    shutil.rmtree(back / "observed")
    lost, damaged = (next((back / "wheels").glob(f"brittle-{release}-*")) for release in ("1.2", "1.6"))
    was = damaged.read_bytes()
    lost.unlink()
    damaged.write_bytes(was + b" ")
    ended = run_there(back)
    assert ended.code == 3
    for i, release in enumerate(("1.2", "1.6"), 1):
        said = f"{i} of 2  brittle {release}: could not run: can't install its wheels: ERROR"
        assert said in ended.stdout
    assert ["can't install its wheels" in why for _, why in absorb(back, parts.store).missing] == [True, True]
    damaged.write_bytes(was)
    assert run_there(back).code == 3
    absorbed = absorb(back, parts.store)
    assert [taken.label for taken in absorbed.taken] == ["brittle 1.6"]
    assert [label for label, _ in absorbed.missing] == ["brittle 1.2"]


def test_the_wrong_interpreter_is_refused_in_one_sentence(back):
    manifest = json.loads((back / "bundle.json").read_text())
    (back / "bundle.json").write_text(json.dumps({**manifest, "python": "3.99.1"}))
    ended = run_there(back)
    assert ended.code == 2
    assert ended.stderr.startswith("error: this bundle is for CPython 3.99 ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("part", ["bundle.json", "harness-run", "installer", "probes"])
def test_an_incomplete_bundle_is_reported(back, part):
    (back / part).rename(back.parent / "elsewhere")
    ended = run_there(back)
    assert (ended.code, "is incomplete" in ended.stderr) == (2, True)


def test_an_unwritable_folder_is_reported(back):
    shutil.rmtree(back / "observed")
    (back / "observed").write_text("")
    ended = run_there(back)
    assert (ended.code, "error: can't write to" in ended.stderr, "Traceback" in ended.stderr) == (6, True, False)


def test_packages_on_the_machine_are_not_packed_but_are_recorded(parts, tmp_path, run_once):
    python = node_with(tmp_path / "node", "brittle", "1.6", step_source(6, broken=True))
    (tmp_path / "there.txt").write_text(run_there(run_once, "--what-is-there", python=python).stdout)
    node = read_installed(tmp_path / "there.txt")
    assert node == {"brittle": "1.6"}
    bundle = tmp_path / "carry"
    packed = pack(parts, bundle, asked(parts, "1.2"), asked(parts, "1.6"), node=node, like=run_once)
    assert (packed.left_out, [len(probe.packed) for probe in packed.probes]) == ({"brittle": "1.6"}, [1, 0])
    assert [path.name for path in (bundle / "wheels").iterdir()] == ["brittle-1.2-py3-none-any.whl"]
    assert run_there(bundle, python=python).code == 0
    own, theirs = absorb(bundle, parts.store).taken
    assert [taken.judgement.verdict for taken in (own, theirs)] == [Verdict.GOOD, Verdict.BAD]
    assert own.observation.key == packed.probes[0].probe.key
    (pin,) = theirs.observation.lock.pins
    assert (pin.name, pin.version, pin.sha256) == ("brittle", "1.6", "")
    assert theirs.observation.key != packed.probes[1].probe.key
    assert not parts.prober.prepare(asked(parts, "1.6").probe).cached


def test_packages_left_out_and_missing_on_the_machine_are_reported(parts, tmp_path, run_once):
    bundle = tmp_path / "carry"
    pack(parts, bundle, asked(parts, "1.6"), node={"brittle": "1.6"}, like=run_once)
    ended = run_there(bundle, python=node_with(tmp_path / "node", "brittle", "1.5", ""))
    assert (ended.code, "neither packed nor installed here: brittle 1.6 (here: 1.5)" in ended.stdout) == (3, True)


def test_a_gpu_probe_does_not_run_without_a_gpu(parts, tmp_path, run_once):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", device=Device.CUDA), like=run_once)
    ended = run_there(tmp_path / "carry", PATH="/usr/bin:/bin")
    if "could not run" not in ended.stdout and shutil.which("nvidia-smi", path="/usr/bin:/bin"):
        pytest.skip("there is a GPU here")
    assert (ended.code, "no NVIDIA GPU found" in ended.stdout) == (3, True)


def test_a_gpu_observation_is_stored_under_the_name_of_its_gpu(parts, tmp_path, run_once):
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho '0, NVIDIA Test 1, 81559, 81000, 550.1, GPU-1, 9.0'\n")
    smi.chmod(0o755)
    probe = asked(parts, "1.2", device=Device.CUDA)
    packed = pack(parts, tmp_path / "carry", probe, like=run_once)
    assert run_there(tmp_path / "carry", PATH=f"{smi.parent}:{os.environ['PATH']}").code == 0
    (taken,) = absorb(tmp_path / "carry", parts.store).taken
    gpus = (Gpu(0, "NVIDIA Test 1", 1, 1, "550.1"),)
    assert taken.observation.key == probe_key(probe.probe, taken.observation.lock, gpus=gpus, capability="8.6")
    assert taken.judgement.verdict is Verdict.GOOD
    hidden = tmp_path / "carry" / "observed" / packed.probes[0].probe.key / "run.json"
    hidden.write_text(json.dumps({**json.loads(hidden.read_text()), "visible_gpus": ""}))
    assert absorb(tmp_path / "carry", parts.store).refused == (("brittle 1.2", "no GPU was found where it ran"),)


ALONE = """
import json, os, socket
assert json.loads(os.environ["HARNESS_PARAMS"]) == {}
assert "A_TOKEN" not in os.environ
if os.environ["LANG"] == "cut-off":
    try:
        socket.create_connection(("192.0.2.1", 53), 2)
    except OSError as error:
        assert "unreachable" in str(error)
    else:
        raise AssertionError("the network is there")
"""


def test_the_repro_sees_its_parameters_but_no_secrets_and_no_network(parts, tmp_path, run_once):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", body=ALONE), like=run_once)
    run_there(tmp_path / "carry", A_TOKEN="secret", LANG="cut-off" if cut_off() else "C")
    (taken,) = absorb(tmp_path / "carry", parts.store).taken
    assert taken.judgement.verdict is Verdict.GOOD, taken.judgement.reason


def test_the_value_of_a_passed_variable_stays_on_that_machine(run_once, parts, tmp_path):
    leak = 'import os\nprint(os.environ["MY_LICENSE"])\nraise RuntimeError(os.environ["MY_LICENSE"])\n'
    let_through = evolve(parts, prober=evolve(parts.prober, pass_env=("MY_LICENSE",)))
    carry = tmp_path / "carry"
    pack(let_through, carry, asked(parts, "1.2", body=leak), like=run_once)
    assert run_there(carry, MY_LICENSE='c0ffee "quoted"').code == 0
    for path in (carry / "observed").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"c0ffee" not in (gzip.decompress(content) if path.suffix == ".gz" else content), path
    (taken,) = absorb(carry, parts.store).taken
    assert taken.observation.exception.message == "<secret>"
    assert "<secret>" in parts.store.log(taken.observation)
