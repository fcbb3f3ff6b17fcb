"""Without a GPU, PyTorch's builds for CPUs are installed where uv can get them; the release is that of the main index.

PyTorch's own index is not available to tests, so a program in front of uv puts another one in its place.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from support import Heard, make_parts
from wheelhouse import Wheelhouse

from harness.environment import DiskSpace, Environment, PipSettings
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe

SUBSTITUTE = """#!/bin/sh
for word; do
    case $word in
    --torch-backend) echo asked >> {calls}; {then} ;;
    cpu) set -- "$@" {index} ;;
    *) set -- "$@" "$word" ;;
    esac
    shift
done
exec {uv} "$@"
"""
UNREACHABLE = "echo 'error: Failed to fetch: `https://b.example/torch/`: error sending request' >&2; exit 2"
CUDA = {"torch": "2.7.0", "nvidia-cublas-cu12": "12.6"}


@pytest.fixture(scope="module")
def main(tmp_path_factory):
    """The main index, with dates."""
    house = Wheelhouse(tmp_path_factory.mktemp("main"))
    house.add("nvidia-cublas-cu12", "12.6", files={"cublas.bin": "x"}, uploaded="2024-01-01T12:00:00Z")
    for version, month in {"2.6.0": 1, "2.7.0": 3, "2.8.0": 5}.items():
        files = {"torch/__init__.py": "cuda = '12.6'\n"}
        requires = ("nvidia-cublas-cu12==12.6",)
        house.add("torch", version, files=files, requires=requires, uploaded=f"2024-0{month}-01T12:00:00Z")
    return house


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """The index of builds for CPUs, without dates; it has none of torch 2.8."""
    house = Wheelhouse(tmp_path_factory.mktemp("builds"))
    for version in ("2.6.0", "2.7.0", "2.9.0"):
        house.add("torch", f"{version}+cpu", files={"torch/__init__.py": "cuda = None\n"}, uploaded=None)
    return house


@pytest.fixture
def made(tmp_path, main, builds, interpreter):
    """Make the parts on a machine without a GPU; PyTorch's index answers or not."""
    heard = Heard()

    def make(*, is_reachable=True):
        parts = make_parts(tmp_path, PipSettings(index_url=main.url), tmp_path / "uv", interpreter)
        program = tmp_path / "program"
        then = ":" if is_reachable else UNREACHABLE
        index = f"--default-index {builds.url}"
        calls = tmp_path / "calls"
        program.write_text(SUBSTITUTE.format(uv=parts.builder.uv.binary, calls=calls, then=then, index=index))
        program.chmod(0o755)
        uv = evolve(parts.builder.uv, binary=program)
        builder = evolve(
            parts.builder, uv=uv, has_gpu_libraries=False, disk_space=DiskSpace(parts.workspace, reporter=heard)
        )
        return evolve(parts, builder=builder, prober=evolve(parts.prober, builder=builder))

    make.heard, make.calls = heard, tmp_path / "calls"
    return make


def ran(parts, body, **more):
    text = "import torch\nfrom importlib.metadata import version\n"
    repro = parse_repro(f"# /// script\n# dependencies = ['torch']\n# ///\n{text}{body}", name="x")
    combination = Combination(parts.resolver.interpreter.version, ("torch",), **more)
    return parts.prober.execute(parts.prober.prepare(Probe(repro, combination)))


def day(month):
    return datetime(2024, month, 15, tzinfo=UTC)


def test_the_release_of_the_day_is_installed_as_its_build_for_cpus(made):
    parts = made()
    seen = ran(parts, "assert torch.cuda is None\nassert version('torch') == '2.7.0+cpu'\n", as_of=day(3))
    assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert {pin.name: pin.version for pin in seen.lock.pins} == CUDA  # what the commands of a report install
    (build,) = parts.store.get(seen.key).installed
    assert (build.name, build.version, build.wheel) == ("torch", "2.7.0+cpu", "torch-2.7.0+cpu-py3-none-any.whl")
    assert build.sha256 not in {pin.sha256 for pin in seen.lock.pins}
    assert seen.drift == (
        "torch 2.7.0+cpu instead of the build for CUDA, because no GPU is here (--torch-backend none installs that)",
    )
    assert not list(parts.workspace.root.rglob("cublas.bin"))
    earlier = ran(parts, "assert version('torch') == '2.6.0+cpu'\n", as_of=day(1))
    assert earlier.outcome is Outcome.COMPLETED, earlier.exception or earlier.detail


def test_a_release_without_such_a_build_is_installed_as_it_is(made):
    seen = ran(made(), "assert version('torch') == '2.8.0'\n")
    assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert seen.drift[0].startswith("1 package of NVIDIA's libraries left out")


def test_an_index_that_does_not_answer_is_asked_once(made):
    for _ in range(2):  # two commands
        seen = ran(made(is_reachable=False), "assert version('torch') == '2.7.0'\n", as_of=day(3))
        assert seen.outcome is Outcome.COMPLETED, seen.exception or seen.detail
    assert ran(made(), "assert version('torch') == '2.6.0'\n", as_of=day(1)).outcome is Outcome.COMPLETED
    assert made.calls.read_text() == "asked\n"
    told = [note for note in made.heard.notes if "reach" in note]
    assert told == ["uv can't reach PyTorch's builds for CPUs, so those for CUDA are installed"]


def test_what_was_found_is_used_without_the_index(made):
    lock = made().resolver.resolve(Combination("", ("torch==2.7.0",))).lock
    first = made().builder.build(lock)
    assert isinstance(first, Environment), first
    assert made(is_reachable=False).builder.build(lock) == first
    assert first.installed.version_of("torch") == "2.7.0+cpu"
    assert made().builder.estimate(lock) is None


def test_packages_with_code_for_cuda_get_the_build_for_cuda(made, main):
    main.add("bitsandbytes", "1.0", requires=("torch",), uploaded="2024-03-01T12:00:00Z")
    parts = made()
    lock = parts.resolver.resolve(Combination("", ("torch==2.7.0", "bitsandbytes"))).lock
    assert parts.builder.build(lock).installed == lock
    assert not made.calls.exists()


def test_a_gpu_and_the_user_get_the_build_for_cuda(made, tmp_path):
    parts = made()
    lock = parts.resolver.resolve(Combination("", ("torch==2.7.0",))).lock
    built = evolve(parts.builder, has_gpu_libraries=True).build(lock)
    assert isinstance(built, Environment), built
    parts.builder.give(lock, tmp_path / "mine")
    for folder in (built.folder, tmp_path / "mine"):
        assert (site_packages(folder) / "cublas.bin").exists()
        assert "12.6" in (site_packages(folder) / "torch" / "__init__.py").read_text()
    assert not made.calls.exists()
