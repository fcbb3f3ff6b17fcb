"""Two wheels have one file: the first by name wins, whatever the store had, as with pip; and it is told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import make_parts, repro_text
from wheelhouse import Wheelhouse

from harness.environment import Environment, PipSettings
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """Three wheels with one module; `beta` requires `gamma`."""
    house = Wheelhouse(tmp_path_factory.mktemp("twins"))
    for name, requires in {"alpha": (), "beta": ("gamma",), "gamma": ()}.items():
        house.add(name, "1.0", files={"shared.py": f"NAME = {name!r:<9}\n", f"{name}.py": "\n"}, requires=requires)
    return house


@pytest.fixture
def made(tmp_path, uv_cache, interpreter, twins):
    """The parts that install from that index."""
    return make_parts(tmp_path, PipSettings(index_url=twins.url), uv_cache, interpreter)


def environment(parts, *requirements):
    answer = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, requirements))
    built = parts.builder.build(answer.lock)
    assert isinstance(built, Environment), built
    return built


def shared(built):
    return (site_packages(built.folder) / "shared.py").read_text()


@pytest.mark.parametrize("stored", [(), ("gamma",), ("gamma", "alpha"), ("beta",)])
def test_the_winner_does_not_depend_on_what_was_installed_before(made, stored):
    for name in stored:
        assert repr(name) in shared(environment(made, name)) or name == "beta"
    both = environment(made, "alpha", "gamma")
    assert "'alpha'" in shared(both)
    assert both.clashes == ("shared.py in alpha 1.0 and gamma 1.0: that of alpha is installed",)
    assert "'alpha'" in shared(environment(made, "alpha", "beta", "gamma"))
    assert "'alpha'" in shared(environment(made, "alpha")), "each wheel is stored whole"
    assert "'gamma'" in shared(environment(made, "gamma"))


def test_it_is_the_winner_of_pip(made, twins, tmp_path):
    for names in (("alpha", "gamma"), ("gamma", "beta")):
        where = tmp_path / "-".join(names)
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*words, "--index-url", twins.url, "--prefix", where, *names], check=True)
        (file,) = where.rglob("shared.py")
        assert shared(environment(made, *names)) == file.read_text(), names


def test_runs_never_get_the_bytecode_of_the_other_wheel_and_tell_the_clash(made):
    def seen(*requirements):
        repro = parse_repro(repro_text("alpha", body="import shared; print(shared.NAME)\n"), name="x")
        combination = Combination(made.resolver.interpreter.version, requirements)
        observation = made.prober.execute(made.prober.prepare(Probe(repro, combination)))
        assert observation.outcome is Outcome.COMPLETED, observation.detail
        return made.store.log(observation).strip(), observation.drift

    assert seen("gamma") == ("gamma", ())
    assert seen("alpha") == ("alpha", ())
    assert seen("alpha", "gamma") == ("alpha", ("shared.py in alpha 1.0 and gamma 1.0: that of alpha is installed",))
    assert seen("gamma", "beta")[0] == "beta"
