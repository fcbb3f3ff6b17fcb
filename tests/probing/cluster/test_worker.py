"""A worker runs a task unchanged, or refuses it where the observation would differ."""

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
from harness.probing.cluster.prober import answer
from harness.probing.portable import PortableProbe
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
        return PortableProbe.of(probe, lock, parts.prober.key(probe, lock), parts.prober)

    return make


def test_a_task_returns_its_observation_and_log(task, worker):
    observation, log = answer(task(body="import brittle\nprint('so far')\nbrittle.step()\n"), worker)
    assert observation.outcome is Outcome.COMPLETED
    assert gzip.decompress(log) == b"so far\n"
    assert list(worker.workspace.scratch.iterdir()) == []
    assert not worker.store.root.exists()


def test_a_task_survives_the_transfer_without_local_paths(task, parts):
    sent = task("1.6", mixture=Mixture({"brittle.py": b"x = 1\n", "gone.py": None}, "mixed"))
    packed = pickle.dumps(sent)
    assert pickle.loads(packed) == sent
    for private in (b"/home/someone", str(parts.store.root).encode(), str(parts.workspace.root).encode()):
        assert private not in packed


def test_a_mixture_is_built_from_transferred_files(task, worker):
    fixed = b"NUMBER = 6\ndef step():\n    return NUMBER\n"
    seen, _ = answer(task("1.6", mixture=Mixture({"brittle.py": fixed}, "fixed")), worker)
    assert (seen.outcome, seen.mixture) == (Outcome.COMPLETED, "fixed")
    assert answer(task("1.6"), worker)[0].outcome is Outcome.RAISED


def test_a_lock_for_another_machine_is_refused(task, worker):
    sent = task()
    with pytest.raises(NoWorkers, match="the lock is for linux-riscv64"):
        answer(evolve(sent, lock=evolve(sent.lock, platform="linux-riscv64")), worker)


def test_another_python_is_refused(task, worker):
    with pytest.raises(NoWorkers, match="no Python"):
        answer(evolve(task(), cache_tag="pypy311"), worker)


def test_a_gpu_other_than_the_requested_one_is_refused(task, parts, worker):
    sent = task(device=Device.CUDA)
    asked = evolve(parts.prober, gpus=(Gpu(0, "NVIDIA A100", 80, 80, "550"),))
    probe = Probe(sent.repro, sent.combination)
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
    return PortableProbe.of(probe, lock, parts.prober.key(probe, lock), parts.prober)


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
        assert answer(pickle.loads(packed), worker)[0].outcome is Outcome.COMPLETED
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
    packed = pickle.dumps(PortableProbe.of(probe, lock, parts.prober.key(probe, lock), parts.prober))
    assert str(parts.workspace.root).encode() not in packed
    seen = answer(pickle.loads(packed), worker)[0]
    assert (seen.outcome, seen.given["HARNESS_ARTIFACTS"]["by"]) == (Outcome.COMPLETED, "brittle 1.0")


def test_a_folder_with_other_content_is_unpacked_beside_the_first(parts, interpreter, tmp_path, worker):
    for coins in (3, 4):
        tree = tmp_path / f"built-{coins}"
        tree.mkdir()
        (tree / "till.py").write_text(f"COINS = {coins}\n", encoding="utf-8")
        task = sent(parts, interpreter, tree, body=f"import till\nassert till.COINS == {coins}\n")
        assert answer(task, worker)[0].outcome is Outcome.COMPLETED
