"""A bundle has exactly what its probes need, runs without network and without packages, and continues."""

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
from carried import asked, back_from, cut_off, pack, run_there, start_there
from support import SIGNED, make_parts, processes_below, repro_text

import harness
from harness.environment import PipSettings
from harness.errors import NoSpace, UserMistake
from harness.model import Device, Outcome, Verdict
from harness.model.repro import parse_repro
from harness.probing import probe_key
from harness.probing.bundle import absorb
from harness.probing.job import ProbeJob
from harness.run.devices import Gpu
from harness.run.runner import Terms

HOUSE = Path(harness.__file__).parent
INSIDE = [HOUSE / "run" / "guard.py", *(HOUSE / "run" / "inside").rglob("*.py")]
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


@pytest.fixture(scope="module")
def run_once(tmp_path_factory, house, uv_cache, interpreter) -> Path:
    """A bundle of a good and a bad probe that has been run."""
    folder = tmp_path_factory.mktemp("carried")
    parts = make_parts(folder, PipSettings(index_url=house.url), uv_cache, interpreter)
    pack(parts, folder / "carry", asked(parts, "1.2"), asked(parts, "1.6"))
    ended = run_there(folder / "carry")
    assert ended.code == 0, ended.stdout + ended.stderr
    return folder / "carry"


@pytest.fixture
def back(run_once, tmp_path) -> Path:
    """A copy of it to spoil."""
    return back_from(run_once, tmp_path / "back")


def keys(bundle):
    return json.loads((bundle / "bundle.json").read_text())["jobs"]


def taken(bundle, parts):
    """The observations of a bundle, stored."""
    absorbed = absorb(bundle, parts.store)
    assert (absorbed.missing, absorbed.refused) == ((), ())
    return absorbed.taken


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: path.name)
def test_what_runs_inside_needs_only_python_3_9_and_its_standard_library(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    ours = {file.stem for file in INSIDE} | {"_harness_inside", "harness", "torch", "triton", "pytest"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [str(node.module)]
        else:
            continue
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | ours


def test_a_bundle_names_no_index_and_no_path_of_this_machine(run_once, house):
    texts = [run_once / name for name in ("bundle.json", "run.py")]
    texts += [run_once / key / "job.json" for key in keys(run_once)]
    for private in ("://", str(house.root), str(run_once.parent)):
        assert not [path for path in texts if private in path.read_text()]
    assert not [path for path in (run_once / "harness").rglob("*") if path.suffix == ".pyc"]


def test_a_folder_in_use_is_left_alone(parts, tmp_path, run_once):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for folder in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt", run_once):
        with pytest.raises(UserMistake, match="is not an empty folder"):
            pack(parts, folder, asked(parts, "1.2"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(NoSpace, match="can't write to"):
        pack(parts, tmp_path / "mine" / "thesis.txt" / "carry", asked(parts, "1.2"))


def test_an_unpackable_probe_is_reported_and_the_rest_is_packed(parts, tmp_path):
    one = asked(parts, "1.2")
    packed = pack(parts, tmp_path / "carry", of(one, "unmet==1.3"), of(one, "damaged==1.3"), one, again=one)
    assert [job.label for job in packed.jobs] == ["brittle 1.2"]
    assert [label for label, _ in packed.failed] == ["damaged 1.3", "again"]
    assert "is not the file that the index lists" in packed.failed[0][1]
    assert "same as brittle 1.2" in packed.failed[1][1]
    assert [(label, run.outcome.value) for label, _, run in packed.known] == [("unmet 1.3", "unresolvable")]
    assert [path.name for path in (tmp_path / "carry" / "wheels").iterdir()] == ["brittle-1.2-py3-none-any.whl"]


def of(one, requirement):
    repro = parse_repro(repro_text(requirement.split("==")[0]), name="other", path="other.py")
    return evolve(one, repro=repro, combination=evolve(one.combination, requirements=(requirement,)))


def test_no_folder_is_left_if_everything_is_known(parts, tmp_path):
    parts.prober.execute(parts.prober.prepare(asked(parts, "1.2")))
    packed = pack(parts, tmp_path / "carry", asked(parts, "1.2"))
    assert (packed.jobs, [label for label, _, _ in packed.known]) == ((), ["brittle 1.2"])
    assert not (tmp_path / "carry").exists()


def test_a_job_is_read_back_unchanged(run_once, parts):
    job = next(job for job in (ProbeJob.read(run_once / key) for key in keys(run_once)) if job.label == "brittle 1.6")
    was = asked(parts, "1.6")
    assert (job.probe.repro.digest, job.probe.combination) == (was.repro.digest, was.combination)
    assert job.verified(job.key).lock.python == was.combination.python


def test_finished_jobs_are_not_repeated(back):
    again = run_there(back)
    assert again.code == 0, again.stderr
    assert again.stdout.splitlines()[:2] == ["1 of 2  brittle 1.2: already run", "2 of 2  brittle 1.6: already run"]


@pytest.mark.parametrize(
    ("body", "altered"),
    [
        ("import brittle\nopen(brittle.__file__, 'a').write('x = 1')\n", ["brittle.py"]),
        ("import brittle\nopen(brittle.__file__ + '.more', 'w')\n", ["brittle.py.more"]),
    ],
)
def test_what_a_run_changes_in_its_environment_is_reported(parts, tmp_path, body, altered):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", body=body))
    assert run_there(tmp_path / "carry").code == 0
    (one,) = taken(tmp_path / "carry", parts)
    assert [name.rpartition("site-packages/")[2] for name in one.observation.altered] == altered


def test_a_hanging_repro_is_stopped_and_recorded(parts, tmp_path):
    hanging = asked(parts, "1.2", body="import time\ntime.sleep(600)", tool=f"timeout = 0.7\n{SIGNED}")
    pack(parts, tmp_path / "carry", hanging)
    assert run_there(tmp_path / "carry").code == 0
    (one,) = taken(tmp_path / "carry", parts)
    assert (one.observation.outcome, one.judgement.verdict) == (Outcome.TIMED_OUT, Verdict.SKIP)
    assert "timed out after 0.7 s" in one.observation.detail


def test_an_interrupted_run_leaves_nothing_running_and_can_resume(parts, tmp_path):
    bundle, gate = tmp_path / "carry", tmp_path / "gate"
    gate.mkdir()
    parts = evolve(parts, prober=evolve(parts.prober, terms=Terms(pass_env=("GATE",))))
    pack(parts, bundle, asked(parts, "1.2", body=GATED), asked(parts, "1.6", body=GATED))
    process = start_there(bundle, GATE=str(gate))
    until = time.monotonic() + 300
    while not (gate / "reached").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert not processes_below(tmp_path)
    (gate / "open").touch()
    ended = run_there(bundle, GATE=str(gate))
    assert (ended.code, "1 of 2  brittle 1.2: already run" in ended.stdout) == (0, True)
    assert [one.judgement.verdict for one in taken(bundle, parts)] == [Verdict.GOOD, Verdict.BAD]


def test_missing_or_wrong_wheels_are_reported_and_can_be_added_later(back, parts):
    for key in keys(back):
        (back / key / "result.json").unlink()
    lost, damaged = (next((back / "wheels").glob(f"brittle-{release}-*")) for release in ("1.2", "1.6"))
    was = damaged.read_bytes()
    lost.unlink()
    damaged.write_bytes(was + b" ")
    ended = run_there(back)
    assert ended.code == 3
    assert [name in ended.stdout for name in (f"{lost.name} is missing", f"{damaged.name} is damaged")] == [True, True]
    assert len(absorb(back, parts.store).missing) == 2
    damaged.write_bytes(was)
    assert run_there(back).code == 3
    absorbed = absorb(back, parts.store)
    assert [one.label for one in absorbed.taken] == ["brittle 1.6"]
    assert [label for label, _ in absorbed.missing] == ["brittle 1.2"]


def test_another_python_is_refused_in_one_sentence(back):
    script = (back / "run.py").read_text()
    (back / "run.py").write_text(script.replace(str(tuple(sys.version_info[:2])), "(3, 99)"))
    ended = run_there(back)
    assert (ended.code, ended.stderr.count("\n")) == (1, 1)
    assert "needs Python" in ended.stderr


@pytest.mark.parametrize("part", ["bundle.json", "harness"])
def test_an_incomplete_bundle_is_reported(back, part):
    (back / part).rename(back.parent / "elsewhere")
    ended = run_there(back)
    assert (ended.code != 0, "Traceback" in ended.stderr) == (True, False)


def test_a_gpu_probe_does_not_run_without_a_gpu(parts, tmp_path):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", device=Device.CUDA))
    ended = run_there(tmp_path / "carry", PATH="/usr/bin:/bin")
    if "could not run" not in ended.stdout and shutil.which("nvidia-smi", path="/usr/bin:/bin"):
        pytest.skip("there is a GPU here")
    assert (ended.code, "could not run" in ended.stdout) == (3, True)


def test_a_gpu_observation_is_stored_under_the_name_of_its_gpu(parts, tmp_path):
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text("#!/bin/sh\necho '0, NVIDIA Test 1, 81559, 81000, 550.1, GPU-1, 9.0'\n")
    smi.chmod(0o755)
    wanted = asked(parts, "1.2", device=Device.CUDA)
    pack(parts, tmp_path / "carry", wanted)
    assert run_there(tmp_path / "carry", PATH=f"{smi.parent}:{os.environ['PATH']}").code == 0
    (one,) = taken(tmp_path / "carry", parts)
    gpus = (Gpu(0, "NVIDIA Test 1", 1, 1, "550.1"),)
    assert one.observation.key == probe_key(wanted, one.observation.lock, gpus, Terms(capability="8.6"))
    assert one.judgement.verdict is Verdict.GOOD


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


def test_the_repro_sees_its_parameters_but_no_secrets_and_no_network(parts, tmp_path):
    pack(parts, tmp_path / "carry", asked(parts, "1.2", body=ALONE))
    run_there(tmp_path / "carry", A_TOKEN="secret", LANG="cut-off" if cut_off() else "C")
    (one,) = taken(tmp_path / "carry", parts)
    assert one.judgement.verdict is Verdict.GOOD, one.judgement.reason


def test_the_value_of_a_passed_variable_stays_on_that_machine(parts, tmp_path):
    leak = 'import os\nprint(os.environ["MY_LICENSE"])\nraise RuntimeError(os.environ["MY_LICENSE"])\n'
    let_through = evolve(parts, prober=evolve(parts.prober, terms=Terms(pass_env=("MY_LICENSE",))))
    carry = tmp_path / "carry"
    (job,) = pack(let_through, carry, asked(parts, "1.2", body=leak)).jobs
    assert run_there(carry, MY_LICENSE='c0ffee "quoted"').code == 0
    for path in (carry / job.key).iterdir():
        content = path.read_bytes()
        assert b"c0ffee" not in (gzip.decompress(content) if path.suffix == ".gz" else content), path
    (one,) = taken(carry, parts)
    assert "c0ffee" not in one.observation.exception.message
    assert "c0ffee" not in parts.store.log(one.observation)


def test_a_folder_that_a_run_is_given_is_packed_once_and_checked(parts, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    (made / "box").write_text("3")
    digest = parts.prober.trees.keep(made)
    body = "import os, pathlib\nassert pathlib.Path(os.environ['HARNESS_ARTIFACTS'], 'box').read_text() == '3'\n"
    wanted = []
    for release in ("1.2", "1.3"):
        one = asked(parts, release, body=body)
        given = harness.model.Given("HARNESS_ARTIFACTS", str(parts.prober.trees.folder(digest)), digest, "box 1", "abc")
        wanted.append(evolve(one, repro=one.repro.with_given(given, step="use")))
    bundle = tmp_path / "carry"
    pack(parts, bundle, *wanted)
    (archive,) = (bundle / "folders").iterdir()
    was = archive.read_bytes()
    (bundle / "other").mkdir()
    (bundle / "other" / "box").write_text("4")
    shutil.make_archive(str(tmp_path / "other"), "gztar", bundle / "other")
    shutil.copy(tmp_path / "other.tar.gz", archive)
    refused = run_there(bundle)
    assert (refused.code, "is not the folder that was packed" in refused.stdout) == (3, True)
    archive.write_bytes(was)
    assert run_there(bundle).code == 0
    assert [one.judgement.verdict for one in taken(bundle, parts)] == [Verdict.GOOD, Verdict.GOOD]


def test_files_of_the_user_in_an_interrupted_bundle_stay(parts, tmp_path):
    """A folder of its own is packed again: what is there under other names is the user's."""
    output = tmp_path / "carry"
    mine = [output / name for name in ("thesis/chapter.txt", "wheels/notes.txt", "notes.txt")]
    left = [output / name for name in ("harness/old.py", "0123/job.json", "wheels/old-1.0-py3-none-any.whl")]
    for path in (*mine, *left, output / ".harness-packing"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    assert pack(parts, output, asked(parts, "1.2")).jobs
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in left)
