"""An end is what its user said, or the answer is that it could not be had."""

from __future__ import annotations

import os
import subprocess

import pytest
from planted_upgrades import TO_THE_RELEASE, source, suite_of, write_project
from uv import find_uv_bin
from wheelhouse import Wheelhouse

from harness.store import Store

RUN = ("--run", "python -m unittest -q test_mine", *TO_THE_RELEASE, "--json")
OLD = "cp38-cp38-manylinux1_x86_64"


@pytest.fixture
def old(tmp_path):
    """`aged` 1.0 has no wheel for this Python, and 2.0 is broken; `plain` 1.0 has no wheel at all, 2.0 works too."""
    house = Wheelhouse(tmp_path / "old")
    house.add("aged", "1.0", tag=OLD, uploaded="2022-01-01T12:00:00Z")
    house.add_sdist("aged", "1.0", files={"aged.py": source("1.0")}, uploaded="2022-01-01T12:00:00Z")
    house.add("aged", "2.0", files={"aged.py": source("2.0", broken="aged is broken")}, uploaded="2024-01-01T12:00:00Z")
    house.add("plain", "0.4", files={"plain.py": source("0.4")}, uploaded="2020-01-01T12:00:00Z")
    house.add_sdist("plain", "1.0", files={"plain.py": source("1.0")}, uploaded="2021-01-01T12:00:00Z")
    house.add("plain", "2.0", files={"plain.py": source("2.0")}, uploaded="2023-01-01T12:00:00Z")
    return house


@pytest.fixture
def asked(harness, old):
    """Return a function that asks about a project with tests of `aged` and `plain`."""
    here = harness.with_environ(**old.environ)
    write_project(here.folder, suite_of("aged", "plain"), requires=["aged", "plain"])
    return lambda good, *more: here("bisect", "--good", good, "--bad", "2024-03-01", *RUN, *more)


def pins(folder, *lines, name="good.txt"):
    file = folder / name
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def culprits(answer):
    return [
        (one["package"], one["last_good"], one["first_bad"])
        for failure in answer["failures"]
        for one in failure["culprits"]
    ]


def good_versions(here):
    """The versions at each run with aged 1.0."""
    runs = Store.opened(here.folder / "results").observations()
    return [{pin.name: pin.version for pin in run.lock.pins} for run in runs if run.lock.version_of("aged") == "1.0"]


def test_what_has_no_wheel_is_built_for_a_day_and_for_a_lock(asked, tmp_path, harness):
    for good in ("2022-03-01", pins(tmp_path, "aged==1.0", "plain==1.0")):
        answer = asked(good).json
        assert culprits(answer) == [("aged", "1.0", "2.0")]
        assert any("built from source" in note and "aged 1.0, plain 1.0" in note for note in answer["notes"])
    assert {"aged": "1.0", "plain": "1.0"} in good_versions(harness)


def test_a_pin_that_may_not_be_built_is_refused_with_the_python_that_has_its_wheel(asked, tmp_path):
    ended = asked(pins(tmp_path, "aged==1.0", "plain==2.0"), "--no-build")
    assert ended.code == 2
    assert "aged 1.0 has no wheel for Python" in ended.stderr
    assert "--no-build forbids building it" in ended.stderr
    assert "--python 3.8 has wheels of aged 1.0" in ended.stderr
    ended = asked("2022-03-01", "--no-build")
    assert ended.code == 2
    assert "nothing can be installed as of 2022-03-01" in ended.stderr


def test_a_day_without_any_wheel_takes_nothing_from_a_later_day(asked, old):
    old.withdraw("aged", "1.0")
    old.add("aged", "1.5", files={"aged.py": source("1.5")}, uploaded="2023-06-01T12:00:00Z")
    ended = asked("2022-03-01")
    assert ended.code == 2
    assert "aged" in ended.stderr
    assert "1.5" not in ended.stderr


def test_a_changed_good_end_that_fails_could_not_be_rebuilt(asked, old, tmp_path):
    old.add_sdist("hidden", "1.0", files={}, backend="raise OSError('no compiler')", uploaded="2021-01-01T12:00:00Z")
    old.add("plain", "1.5", files={"plain.py": "import hidden\n" + source("1.5")}, uploaded="2021-06-01T12:00:00Z")
    old.add("plain", "2.0", files={"plain.py": source("2.0", broken="plain too")}, uploaded="2023-01-01T12:00:00Z")
    ended = asked(pins(tmp_path, "aged==2.0", "plain==1.5", "hidden==1.0"))
    answer = ended.json
    assert (ended.code, answer["status"]) == (3, "inconclusive")
    told = "hidden 1.0 has no wheel for Python 3.11 and can't be built: OSError: no compiler: left out"
    assert answer["sentence"] == f"Not sure: the good end could not be rebuilt: {told}."
    assert answer["not_rebuilt"] == told


def test_what_is_missing_is_resolved_under_the_pins_and_the_day_of_the_end(asked, old, tmp_path, harness):
    old.add("core", "1.0", uploaded="2021-01-01T12:00:00Z")
    old.add("core", "2.0", uploaded="2023-01-01T12:00:00Z")
    for version, needs, year in (("1.0", "core", 2021), ("1.1", "core>=2", 2021), ("7.0", "core", 2023)):
        old.add("extra", version, requires=(needs,), uploaded=f"{year}-06-01T12:00:00Z")
    answer = asked(pins(tmp_path, "aged==1.0", "plain==1.0", "core==1.0"), "--with", "extra").json
    assert culprits(answer) == [("aged", "1.0", "2.0")]
    assert {"aged": "1.0", "plain": "1.0", "core": "1.0", "extra": "1.0"} in good_versions(harness)
    assert any("has no extra: installed as well, as of 2022-01-01" in note for note in answer["notes"])


def environment(folder, old, *pinned):
    """A real environment with what could only be installed there."""
    subprocess.run([find_uv_bin(), "venv", "-q", "--python", "3.11", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name, version, text in pinned:
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (packages / f"{name}.py").write_text(text)
    return folder


def content(folder):
    return {path: os.lstat(path).st_mtime_ns for path in folder.rglob("*")}


def test_an_environment_runs_as_it_is_and_is_not_changed(asked, old, tmp_path):
    aged, plain = ("aged", "1.0", source("1.0")), ("plain", "1.0", source("1.0"))
    folder = environment(tmp_path / "env", old, aged, plain)
    before = content(folder)
    answer = asked(folder).json
    assert culprits(answer) == [("aged", "1.0", "2.0")]
    assert answer["ends"]["good"]["kind"] == "python"
    assert content(folder) == before


def test_an_environment_that_passes_only_as_it_is_is_told_from_its_copy(asked, old, tmp_path):
    aged, plain = ("aged", "2.0", source("2.0")), ("plain", "2.0", source("2.0"))
    folder = environment(tmp_path / "env", old, aged, plain)
    old.add("plain", "3.0", files={"plain.py": source("3.0")}, uploaded="2024-02-01T12:00:00Z")
    ended = asked(folder)
    assert (ended.code, ended.json["status"]) == (3, "inconclusive")
    assert "passes as it is, and fails when it is rebuilt" in ended.json["sentence"]


def test_an_environment_that_fails_as_it_is_is_no_good_end(asked, old, tmp_path):
    aged, plain = ("aged", "1.0", source("1.0", broken="it too")), ("plain", "1.0", source("1.0"))
    answer = asked(environment(tmp_path / "env", old, aged, plain)).json
    assert answer["status"] == "not-a-regression"


def test_both_versions_of_a_package_and_those_between_may_have_to_be_built(harness, old, tmp_path):
    here = harness.with_environ(**old.environ)
    for version, broken in (("1.0", ""), ("1.5", "late is broken"), ("2.0", "late is broken")):
        old.add_sdist("late", version, files={"late.py": source(version, broken=broken)})
    write_project(here.folder, suite_of("late"), requires=["late"])
    good, bad = (pins(tmp_path, f"late=={version}", name=f"{version}.txt") for version in ("1.0", "2.0"))
    assert culprits(here("bisect", "--good", good, "--bad", bad, *RUN).json) == [("late", "1.0", "1.5")]


def test_what_the_bad_end_needs_built_is_also_built_for_the_days_before(harness, tmp_path):
    """Without a good end, no day could be resolved that lacks a wheel of what is required."""
    house = Wheelhouse(tmp_path / "source-only")
    house.add_sdist("always", "1.0", files={"always.py": source("1.0")}, uploaded="2020-01-01T12:00:00Z")
    house.add("late", "1.0", files={"late.py": source("1.0")}, uploaded="2022-01-01T12:00:00Z")
    house.add("late", "2.0", files={"late.py": source("2.0", broken="late is broken")}, uploaded="2024-02-20T12:00:00Z")
    here = harness.with_environ(**house.environ)
    write_project(here.folder, suite_of("always", "late"), requires=["always", "late"])
    ended = here("bisect", "--bad", "2024-03-01", *RUN)
    assert culprits(ended.json) == [("late", "1.0", "2.0")]
    refused = here("bisect", "--bad", "2024-03-01", "--no-build", *RUN)
    assert refused.code == 2
    assert "always" in refused.stderr
