"""The sandbox does not stop a repro that writes into its environment: the repro gets its own copy."""

from __future__ import annotations

import pytest
from attrs import evolve
from support import repro_text

from harness.events import SILENT
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.run.sandbox import SandboxMode, choose

SANDBOX = choose(SandboxMode.AUTO, network=False, reporter=SILENT)
pytestmark = pytest.mark.skipif(SANDBOX is None, reason="no bubblewrap that works here")
APPENDS = "import helper\nopen(helper.__file__, 'a').write('x = 1')\nprint(open(helper.__file__).read())\n"


def sandboxed(parts):
    uv = evolve(parts.builder.uv, sandbox=evolve(SANDBOX, hidden=(parts.workspace.root,)))
    return evolve(parts.prober, builder=evolve(parts.builder, uv=uv))


def test_a_run_sees_its_own_writes_and_no_other_run_does(parts):
    prober = sandboxed(parts)
    repro = parse_repro(repro_text("helper", body=APPENDS), name="appends")
    probe = Probe(repro, Combination(parts.resolver.interpreter.version, ("helper==1.0",)))
    seen = prober.execute(prober.prepare(probe))
    assert seen.outcome is Outcome.COMPLETED
    assert any(path.endswith("helper.py") for path in seen.altered)
    reader = parse_repro(repro_text("helper", body="import helper\nassert not hasattr(helper, 'x')\n"), name="reads")
    later = prober.execute(prober.prepare(evolve(probe, repro=reader)))
    assert later.outcome is Outcome.COMPLETED
    assert later.altered == ()


def test_files_outside_the_environment_stay_read_only(parts):
    prober = sandboxed(parts)
    folder = parts.workspace.environments
    repro = parse_repro(repro_text("helper", body=f"open({str(folder)!r} + '/x', 'w')\n"), name="escapes")
    probe = Probe(repro, Combination(parts.resolver.interpreter.version, ("helper==1.0",)))
    seen = prober.execute(prober.prepare(probe))
    assert seen.outcome is Outcome.RAISED
    assert not (folder / "x").exists()


def test_bytecode_of_the_first_run_is_kept_for_later_runs(parts):
    prober = sandboxed(parts)
    repro = parse_repro(repro_text("helper", body="import helper\n"), name="imports")
    probe = Probe(repro, Combination(parts.resolver.interpreter.version, ("helper==1.0",)))
    assert prober.execute(prober.prepare(probe)).outcome is Outcome.COMPLETED
    assert list(parts.workspace.wheels.rglob("helper.*.pyc"))
