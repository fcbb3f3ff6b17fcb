"""An index without upload times beside one that has them: its files stay, and follow the dates of the other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from packaging.version import Version
from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.environment.resolve import caps, of_a_torch_backend
from harness.model import Combination, Release

DAYS = {"2.6.0": "2024-01-01", "2.7.1": "2024-02-01", "2.8.0": "2024-03-01", "2.6.1": "2024-03-05"}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """A main index, and one without upload times for separate builds, like PyTorch's."""
    main = Wheelhouse(tmp_path_factory.mktemp("main"))
    builds = Wheelhouse(tmp_path_factory.mktemp("builds"))
    for version, day in DAYS.items():
        main.add("torch", version, uploaded=f"{day}T12:00:00Z", requires=("numbers",))
        builds.add("torch", f"{version}+cpu", uploaded=None, requires=(f"nvidia-x=={version}", "numbers"))
        builds.add("nvidia-x", version, uploaded=None)
    builds.add("torch", "2.9.0+cpu", uploaded=None)
    for version, day in {"1.0": "2024-01-01", "2.0": "2024-03-01"}.items():
        main.add("numbers", version, uploaded=f"{day}T12:00:00Z")
        builds.add("numbers", version, uploaded=None)
        main.add("plain", version, uploaded=f"{day}T12:00:00Z")
    return main, builds


@pytest.fixture
def resolve(tmp_path, indexes, uv_cache, interpreter):
    """Resolve with both indexes in the settings of pip."""
    main, builds = indexes

    def asked(*requirements, **more):
        with main.served() as url, builds.served() as extra:
            settings = PipSettings(index_url=url, extra_index_urls=(extra,))
            resolver = make_parts(tmp_path, settings, uv_cache, interpreter).resolver
            answer = resolver.resolve(Combination(interpreter.version, requirements, **more))
        assert answer.lock is not None, answer
        return {pin.name: pin.version for pin in answer.lock.pins}

    return asked


def day(month, date=15):
    return datetime(2024, month, date, tzinfo=UTC)


def test_undated_builds_follow_the_dates_of_the_main_index(resolve):
    then = {"torch": "2.7.1+cpu", "nvidia-x": "2.7.1", "numbers": "1.0", "plain": "1.0"}
    assert resolve("torch", "plain", as_of=day(2)) == then
    assert resolve("torch", as_of=day(1))["torch"] == "2.6.0+cpu"


def test_a_later_patch_of_an_older_line_is_left_out(resolve):
    assert resolve("torch<2.7", as_of=day(2))["torch"] == "2.6.0+cpu"
    assert resolve("torch<2.7", as_of=day(4))["torch"] == "2.6.1+cpu"


def test_indirect_dependencies_follow_the_dates(resolve, indexes):
    indexes[0].add("model", "1.0", requires=("torch",), uploaded="2024-01-20T12:00:00Z")
    assert resolve("model", as_of=day(2)) == {
        "model": "1.0", "torch": "2.7.1+cpu", "nvidia-x": "2.7.1", "numbers": "1.0",
    }  # fmt: skip


def test_nothing_is_capped_without_a_date(resolve):
    assert resolve("torch", "plain") == {"torch": "2.9.0+cpu", "plain": "2.0"}


def test_a_held_or_pinned_package_can_be_newer_than_the_day(resolve):
    assert resolve("torch", as_of=day(1), holds=("torch==2.8.0",))["torch"] == "2.8.0+cpu"
    assert resolve("torch==2.8.0", "numbers", as_of=day(1))["numbers"] == "1.0"
    assert resolve("torch", as_of=day(2), holds=("torch<2.8",))["torch"] == "2.7.1+cpu"


def release(version, uploaded=None):
    return Release("p", Version(version), uploaded=uploaded)


class Pages:
    """An index of one project."""

    def __init__(self, *releases):
        self._releases = releases

    def known_releases(self, project):
        """The releases it was created with."""
        return self._releases


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        ((release("1", day(1)), release("2", day(3))), ("p<=1",)),
        ((release("1", day(3)), release("2", day(1))), ("p<=2", "p!=1")),
        ((release("1"), release("2", day(3))), ("p!=2",)),
        ((release("1", day(1)), release("2rc1", day(1)), release("3")), ("p<=1",)),
        ((release("1"), release("2")), ()),
    ],
)
def test_caps_keep_the_releases_of_the_day(releases, expected):
    assert caps({"p"}, Pages(*releases), day(2)) == expected


def test_a_torch_backend_uses_the_pytorch_index():
    named = {"torch", "torchvision", "torchaudio", "triton", "pytorch-triton-rocm", "nvidia-cudnn-cu12"}
    assert of_a_torch_backend({*named, "transformers", "torchmetrics", "tritonclient", "numpy"}) == named


PYLOCK = """
lock-version = "1.0"
packages = [
  { name = "torch", version = "2.7.1+cpu", wheels = [{ name = "torch-2.7.1+cpu-py3-none-any.whl", hashes = {} }] },
  { name = "nvidia-x", version = "2.7.1", wheels = [{ name = "nvidia_x-2.7.1-py3-none-any.whl", hashes = {} }] },
]
"""


def test_with_a_torch_backend_torch_is_capped_without_its_index(tmp_path, indexes, interpreter):
    """The real PyTorch index is not available here: the fake uv only records its arguments."""
    asked = tmp_path / "asked"
    program = tmp_path / "uv"
    program.write_text(
        f"#!/bin/sh\n(echo \"$@\"; cat constraints.txt) > {asked}\ncat > pylock.toml <<'.'\n{PYLOCK}\n.\n"
    )
    program.chmod(0o755)
    settings = PipSettings(index_url=indexes[0].url)
    parts = make_parts(tmp_path, settings, tmp_path, interpreter)
    for backend, dates in {"cu128": ["nvidia-x=false", "torch=false"], "": []}.items():
        uv = evolve(parts.resolver.uv, binary=program, extra_environment={"UV_TORCH_BACKEND": backend})
        resolver = evolve(parts.resolver, builds=evolve(parts.resolver.builds, uv=uv))
        resolver.resolve(Combination(interpreter.version, ("torch",), as_of=day(2)))
        command, *constraints = asked.read_text().split("\n")
        words = command.split()
        given = [words[i + 1] for i, word in enumerate(words) if word == "--exclude-newer-package"]
        assert given == dates
        assert constraints[0] == ("torch<=2.7.1" if backend else "")
