"""Nights over a local index that gains releases between them: an app, its helper, and a package without harm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from attrs import define, field
from support import Ended, Harness
from wheelhouse import Wheelhouse

MESSAGE = "the helper is of no help"
REPRO = """
# /// script
# dependencies = ["app"]
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "{message}"
# ///
import app

app.step()
"""
# Both functions change between releases; one of them matters.
HELPER = '''"""Helps."""

VERSION = "{version}"


def count():
    """Counts."""
    return {count}


def help():
    """Helps or not."""
    {body}
'''
APP = '''"""Steps."""

import helper


def step():
    """Takes a step."""
    return helper.help()
'''
GOOD, BROKEN = "return 1", f"raise RuntimeError({MESSAGE!r})"


@define
class Nights:
    """A working directory with a matrix, and an index of its own."""

    harness: Harness
    house: Wheelhouse
    cache: Path
    cases: list[int] = field(factory=lambda: [1])

    def helper(self, version: str, day: str, body: str = GOOD) -> None:
        """Release a helper."""
        text = HELPER.format(version=version, count=len(version), body=body)
        self.house.add("helper", version, files={"helper.py": text}, uploaded=f"{day}T12:00:00Z")

    def other(self, version: str, day: str) -> None:
        """Release a package that changes without harm."""
        self.house.add("other", version, files={"other.py": f"N = {version!r}\n"}, uploaded=f"{day}T12:00:00Z")

    def write(self) -> Path:
        """The matrix as it is now."""
        path = self.harness.folder / "matrices" / "nightly.toml"
        path.parent.mkdir(exist_ok=True)
        axes = f'[axes]\nrepro = "step"\n[axes.packages]\napp = ["1.0"]\n[axes.parameters]\ncase = {self.cases}\n'
        path.write_text(axes, encoding="utf-8")
        return path

    def run(self, day: str, *words: str, **environ: str) -> Ended:
        """One night. What the index was asked before is forgotten, as after a day."""
        shutil.rmtree(self.cache / "index", ignore_errors=True)
        return self.harness("nightly", self.write(), "--date", day, *words, **environ)

    def reports(self) -> dict[str, str]:
        """Every report in Markdown, by its id."""
        folder = self.harness.folder / "results" / "reports"
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


@pytest.fixture
def nights(tmp_path, uv_cache, cache, monkeypatch) -> Nights:
    """An app that works with its helper, both out since long."""
    folder = tmp_path / "here"
    (folder / "repros").mkdir(parents=True)
    (folder / "repros" / "step.py").write_text(REPRO.format(message=MESSAGE), encoding="utf-8")
    monkeypatch.chdir(folder)
    house = Wheelhouse(tmp_path / "index")
    harness = Harness(
        folder,
        {
            **house.environ,
            "UV_CACHE_DIR": str(uv_cache),
            "HARNESS_CACHE_DIR": str(cache),
            "HARNESS_RESULTS": "results",
            "PIP_CONFIG_FILE": "/dev/null",
        },
    )
    found = Nights(harness, house, cache)
    found.helper("1.0", "2024-01-01")
    found.other("1.0", "2024-01-01")
    files = {"app.py": APP}
    house.add("app", "1.0", files=files, requires=("helper", "other"), uploaded="2024-01-01T12:00:00Z")
    return found
