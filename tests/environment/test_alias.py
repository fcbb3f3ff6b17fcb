"""Each repetition of a run has another path to its environment, and the same number the same path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from support import make_parts, repro_text
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.events import SILENT
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe, seed_of
from harness.question.commands import command_repro
from harness.run.sandbox import SandboxMode, choose

SANDBOX = choose(SandboxMode.AUTO, network=False, reporter=SILENT)
SANDBOXES = [None, pytest.param(SANDBOX, marks=pytest.mark.skipif(SANDBOX is None, reason="no bubblewrap"))]
TELLS = "import json, sys, placed; print(json.dumps([sys.prefix, placed.__file__, sys.executable]))"


@pytest.fixture
def made(tmp_path, uv_cache, interpreter):
    """The parts that install a wheel with a program."""
    house = Wheelhouse(tmp_path / "house")
    program = "[console_scripts]\nplaced = placed:main\n"
    source = "def main():\n    import json, sys\n    print(json.dumps([sys.prefix, __file__, sys.executable]))\n"
    house.add("placed", "1.0", files={"placed.py": source, "placed-1.0.dist-info/entry_points.txt": program})
    return make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter)


def probe(parts, repro=None, **more):
    repro = repro or parse_repro(repro_text("placed", body=TELLS), name="tells")
    return Probe(repro, Combination(parts.resolver.interpreter.version, ("placed==1.0",)), **more)


def seen(parts, asked, sandbox=None):
    prober = evolve(parts.prober, builder=evolve(parts.builder, uv=evolve(parts.builder.uv, sandbox=sandbox)))
    observation = prober.execute(prober.prepare(asked))
    log = parts.store.log(observation)
    assert observation.outcome is Outcome.COMPLETED, log
    assert observation.altered == ()
    return log


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("is_command", [False, True])
def test_repetitions_have_other_paths_and_a_seed_its_own(made, sandbox, is_command):
    repro = command_repro("placed") if is_command else None
    told = [json.loads(seen(made, probe(made, repro, attempt=n), sandbox)) for n in range(3)]
    for parts in zip(*told, strict=True):
        assert len(set(parts)) == 3
    assert all(Path(file).is_relative_to(prefix) for prefix, file, _ in told)
    for number, expected in enumerate(told):
        first = probe(made, repro, attempt=number)
        seed = seed_of(first, made.prober.resolve(first).lock)
        assert json.loads(seen(made, probe(made, repro, attempt=3 + number, hash_seed=seed), sandbox)) == expected


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_bytecode_is_shared_by_all_paths(made, sandbox):
    loud = command_repro("python -v -c 'import placed'")
    seen(made, probe(made, loud, attempt=1), sandbox)
    (kept,) = made.workspace.wheels.rglob("placed.*.pyc")
    for attempt in (2, 0, 3):
        log = seen(made, probe(made, loud, attempt=attempt), sandbox)
        assert f"/{kept.name} matches " in log
        assert "wrote" not in log


def test_a_changed_path_is_restored(made):
    spoils = "import os, sys; p = sys.prefix + '/bin/placed'; os.chmod(p, 0o755); open(p, 'w').write('#!/bin/false')"
    seen(made, probe(made, command_repro(f'python -c "{spoils}"'), attempt=1))
    assert seen(made, probe(made, command_repro("placed"), attempt=1))
