"""Nothing in a wheel runs outside of a run: neither while other wheels are installed, nor to list what is installed."""

from __future__ import annotations

import pytest
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import Environment, PipSettings, find_interpreter, foreign_lock
from harness.environment.interpreter import installed_in
from harness.environment.workspace import site_packages
from harness.model import Combination, Pin
from harness.question.lockfiles import installed_pins


@pytest.fixture
def strangers(tmp_path):
    """An index of wheels that leave a mark when a Python starts with them, and others to install after them."""
    house, mark = Wheelhouse(tmp_path / "house"), tmp_path / "mark"
    leave = f"open({str(mark)!r}, 'a').write('ran')"
    house.add("early", "1.0", files={"early.pth": f"import os; {leave}\n", "early.py": "\n"})
    house.add("custom", "1.0", files={"sitecustomize.py": f"{leave}\n"})
    house.add("moving", "1.0", files={"moving-1.0.data/data/pyvenv.cfg": f"home = {tmp_path}\n", "moving.py": "\n"})
    for number in range(3):
        house.add("late", f"1.{number}", files={"late.py": f"NUMBER = {number}\n"}, requires=("early", "custom"))
    return house, mark


@pytest.fixture
def made(tmp_path, uv_cache, interpreter, strangers):
    """The parts that install from that index."""
    return make_parts(tmp_path, PipSettings(index_url=strangers[0].url), uv_cache, interpreter)


def environment(parts, *requirements):
    answer = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, requirements))
    built = parts.builder.build(answer.lock)
    assert isinstance(built, Environment), built
    return built


def test_installing_and_listing_runs_no_code_of_a_wheel(made, strangers):
    environment(made, "early", "custom")
    for number in range(3):
        built = environment(made, f"late==1.{number}", "moving")
    assert (site_packages(built.folder) / "early.pth").is_file()
    made.builder.forget(built.lock)
    made.builder.wheels.drop([made.builder.wheels.key(pin) for pin in built.lock.pins if pin.name == "late"])
    environment(made, "late==1.2", "moving")  # installs one wheel beside the others
    assert not strangers[1].exists()


def test_a_wheel_never_replaces_the_settings_of_its_environment(made, strangers, tmp_path):
    built = environment(made, "moving")
    assert built.python.is_symlink()
    assert str(tmp_path) not in (built.folder / "pyvenv.cfg").read_text()
    assert built.clashes == ("pyvenv.cfg in moving 1.0: not installed, it belongs to the environment",)


def test_an_existing_environment_is_listed_without_its_code(made, strangers, tmp_path):
    built = environment(made, "late==1.1")
    found = find_interpreter(str(built.python), made.resolver.uv)
    assert foreign_lock(found).pins == (Pin("custom", "1.0"), Pin("early", "1.0"), Pin("late", "1.1"))
    pins = installed_pins(installed_in(built.python), "built")
    assert pins.requirements == (
        "custom==1.0",
        "early==1.0",
        "late==1.1",
    )
    assert not strangers[1].exists()
