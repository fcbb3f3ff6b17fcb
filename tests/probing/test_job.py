"""A machine runs a job unchanged, or refuses it where the observation would differ."""

from __future__ import annotations

import gzip
import pickle
import threading

import pytest
from attrs import evolve
from support import SIGNED, make_parts, repro_text
from wheelhouse import free_port_url

from harness.environment import PipSettings
from harness.errors import NoNetwork, NoWorkers
from harness.model import Combination, Device, Given, Mixture, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.probing.job import ProbeJob, Refused, Result
from harness.probing.node import answer
from harness.run.devices import Gpu
from harness.run.process import Cancelled, cancelled_by


@pytest.fixture
def worker(tmp_path, house, uv_cache, interpreter):
    """A worker with its own folders."""
    return make_parts(tmp_path / "worker", PipSettings(index_url=house.url), uv_cache, interpreter).prober


@pytest.fixture
def task(parts, interpreter):
    """A task for a release of `brittle`, as this machine creates it."""

    def make(version="1.5", *, body=None, device=Device.CPU, **more):
        text = repro_text("brittle", tool=SIGNED, body=body)
        repro = parse_repro(text, name="brittle_step", path="/home/someone/repros/brittle_step.py")
        asked = Combination(python=interpreter.version, requirements=("brittle==" + version,), device=device)
        probe = Probe(repro, asked, **more)
        lock = parts.prober.resolve(probe).lock
        return ProbeJob.of(probe, lock, parts.prober.key(probe, lock), parts.prober)

    return make


def test_a_task_returns_its_observation_and_log(task, worker):
    result = answer(task(body="import brittle\nprint('so far')\nbrittle.step()\n"), worker)
    assert result.observation.outcome is Outcome.COMPLETED
    assert gzip.decompress(result.log) == b"so far\n"
    assert list(worker.workspace.scratch.iterdir()) == []
    assert not worker.store.root.exists()


def test_a_task_survives_the_transfer_without_local_paths(task, parts, tmp_path):
    sent = task("1.6", mixture=Mixture({"brittle.py": b"x = 1\n", "gone.py": None}, "mixed"))
    packed = pickle.dumps(sent)
    assert pickle.loads(packed) == sent
    sent.write(tmp_path / "folder")
    assert ProbeJob.read(tmp_path / "folder") == sent
    packed += (tmp_path / "folder" / "job.json").read_bytes()
    for private in (b"/home/someone", str(parts.store.root).encode(), str(parts.workspace.root).encode()):
        assert private not in packed


def test_a_mixture_is_built_from_transferred_files(task, worker):
    fixed = b"NUMBER = 6\ndef step():\n    return NUMBER\n"
    seen = answer(task("1.6", mixture=Mixture({"brittle.py": fixed}, "fixed")), worker).observation
    assert (seen.outcome, seen.mixture) == (Outcome.COMPLETED, "fixed")
    assert answer(task("1.6"), worker).observation.outcome is Outcome.RAISED


def test_a_lock_for_another_machine_is_refused(task, worker):
    sent = task()
    with pytest.raises(NoWorkers, match="the lock is for linux-riscv64"):
        answer(evolve(sent, probe=evolve(sent.probe, lock=evolve(sent.lock, platform="linux-riscv64"))), worker)


def test_a_result_of_another_machine_or_job_is_refused(task, worker):
    """Whoever ran it: the job says what was asked for, and the result must be of it."""
    sent = task()
    result = answer(sent, worker)
    assert result.of(sent).outcome is Outcome.COMPLETED
    for forged, why in (
        (evolve(result, kind=evolve(result.kind, platform="linux-riscv64")), "linux-riscv64"),
        (evolve(result, kind=evolve(result.kind, python="3.11.99")), r"3\.11\.99"),
        (evolve(result, kind=evolve(result.kind, cache_tag="pypy311")), "not Python"),
        (evolve(result, observation=evolve(result.observation, repro_digest="0")), "another probe"),
        (answer(task("1.6"), worker), "another probe"),
    ):
        with pytest.raises(Refused, match=why):
            forged.of(sent)


def test_a_result_survives_its_folder_or_is_refused(task, worker, tmp_path):
    result = answer(task(), worker)
    result.write(tmp_path)
    assert evolve(Result.read(tmp_path), log_digest="") == result
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(Refused, match=r"log.gz was changed"):
        Result.read(tmp_path)


def test_another_python_is_refused(task, worker):
    with pytest.raises(NoWorkers, match="no Python"):
        answer(evolve(task(), cache_tag="pypy311"), worker)


def test_a_gpu_other_than_the_requested_one_is_refused(task, parts, worker):
    sent = task(device=Device.CUDA)
    asked = evolve(parts.prober, gpus=(Gpu(0, "NVIDIA A100", 80, 80, "550"),))
    probe = sent.probe
    with pytest.raises(NoWorkers, match="a different observation"):
        answer(evolve(sent, key=asked.key(probe, sent.lock)), worker)


def test_trouble_around_a_probe_keeps_its_type(task, worker, tmp_path):
    """An unreachable index says nothing about the release."""
    uv = evolve(
        worker.builder.uv,
        settings=PipSettings(index_url=free_port_url()),
        extra_environment={"UV_CACHE_DIR": str(tmp_path / "empty"), "UV_HTTP_RETRIES": "0"},
    )
    apart = evolve(worker, builder=evolve(worker.builder, uv=uv))
    with pytest.raises(NoNetwork, match=r"on a worker: .* can't be reached") as trouble:
        answer(task(), apart)
    sent = pickle.loads(pickle.dumps(trouble.value))
    assert (type(sent), sent.message, sent.hint) == (NoNetwork, trouble.value.message, trouble.value.hint)


def test_a_cancelled_run_leaves_nothing(task, worker):
    cancel, sent = threading.Event(), task(body="import time\ntime.sleep(600)\n")
    cancel.set()
    with cancelled_by(cancel), pytest.raises(Cancelled):
        answer(sent, worker)


def sent(parts, interpreter, *folders, body):
    """A task whose repro imports from folders of this machine."""
    repro = parse_repro(repro_text("brittle", tool=SIGNED, body=body), name="brittle_step")
    repro = evolve(repro, search_path=tuple(map(str, folders)))
    probe = Probe(repro, Combination(python=interpreter.version, requirements=("brittle==1.5",), device=Device.CPU))
    lock = parts.prober.resolve(probe).lock
    return ProbeJob.of(probe, lock, parts.prober.key(probe, lock), parts.prober)


def test_folders_that_a_repro_imports_from_are_sent_with_it(parts, interpreter, tmp_path, worker):
    """The worker needs no path of this machine, and unpacks each content once; a link to a file outside stays here."""
    tree = tmp_path / "built"
    (tree / "src").mkdir(parents=True)
    (tree / "shop.py").write_text("import till\n", encoding="utf-8")
    (tree / "src" / "till.py").write_text("COINS = 3\n", encoding="utf-8")
    (tmp_path / "private.txt").write_text("private words", encoding="utf-8")
    (tree / "leak.txt").symlink_to(tmp_path / "private.txt")
    task = sent(parts, interpreter, tree, tree / "src", body="import shop\nassert shop.till.COINS == 3\n")
    packed = pickle.dumps(task)
    assert str(tmp_path).encode() not in packed
    tree.rename(tmp_path / "gone")
    for _ in range(2):
        assert answer(pickle.loads(packed), worker).observation.outcome is Outcome.COMPLETED
    (unpacked,) = worker.workspace.trees.iterdir()
    assert sorted(path.name for path in unpacked.iterdir()) == ["shop.py", "src"]


def test_the_folders_that_a_run_is_given_travel_with_it(parts, interpreter, tmp_path, worker):
    (tmp_path / "made" / "__pycache__").mkdir(parents=True)
    (tmp_path / "made" / "__pycache__" / "kept.txt").write_text("3", encoding="utf-8")
    digest = parts.prober.trees.keep(tmp_path / "made")
    body = """
        import os
        from pathlib import Path

        assert os.environ["HARNESS_STEP"] == "use"
        assert (Path(os.environ["HARNESS_ARTIFACTS"]) / "__pycache__" / "kept.txt").read_text() == "3"
    """
    repro = parse_repro(repro_text("brittle", tool=SIGNED, body=body), name="brittle_step")
    given = Given("HARNESS_ARTIFACTS", str(parts.prober.trees.folder(digest)), digest, "brittle 1.0", "abc")
    probe = Probe(
        repro.with_given(given, step="use"),
        Combination(python=interpreter.version, requirements=("brittle==1.5",), device=Device.CPU),
    )
    lock = parts.prober.resolve(probe).lock
    packed = pickle.dumps(ProbeJob.of(probe, lock, parts.prober.key(probe, lock), parts.prober))
    assert str(parts.workspace.root).encode() not in packed
    seen = answer(pickle.loads(packed), worker).observation
    assert (seen.outcome, seen.given["HARNESS_ARTIFACTS"]["by"]) == (Outcome.COMPLETED, "brittle 1.0")


def test_a_folder_with_other_content_is_unpacked_beside_the_first(parts, interpreter, tmp_path, worker):
    for coins in (3, 4):
        tree = tmp_path / f"built-{coins}"
        tree.mkdir()
        (tree / "till.py").write_text(f"COINS = {coins}\n", encoding="utf-8")
        task = sent(parts, interpreter, tree, body=f"import till\nassert till.COINS == {coins}\n")
        assert answer(task, worker).observation.outcome is Outcome.COMPLETED
