"""A real environment with the real torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
from emulated import Python

TORCH = "2.13.0"


def find_links() -> list[str]:
    """The find-links folders that pip is configured with."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], text=True, capture_output=True, check=False
    ).stdout
    values = [line.partition("=")[2].strip("'\"") for line in listed.splitlines() if ".find-links=" in line]
    return sorted({folder for value in values for folder in value.replace("\\n", " ").split()})


@pytest.fixture(scope="session")
def torch_python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """An environment with torch for the CPU; skips if that can't be installed."""
    folder = tmp_path_factory.mktemp("torch") / "env"
    python = folder / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    links = [word for place in find_links() for word in ("--find-links", place)]
    ways = (
        [*links, f"torch=={TORCH}+cpu"],
        ["--torch-backend", "cpu", f"torch=={TORCH}"],
    )
    made = subprocess.run([*uv, "venv", "-q", "--python", "3.11", folder], text=True, capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no Python 3.11 for torch {TORCH}: {made.stderr.strip()[-300:]}")
    said = ""
    for way in ways:
        installed = subprocess.run(
            [*uv, "pip", "install", "-q", "--python", python, "numpy<2.3", *way],
            text=True,
            capture_output=True,
            check=False,
        )
        if installed.returncode == 0:
            return Python(python)
        said = installed.stderr.strip()
    pytest.skip(f"torch {TORCH} for the CPU can't be installed: {said[-300:]}")
