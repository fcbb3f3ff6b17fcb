"""Bundles for tests: packed from the house, run by their own script without an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from support import SIGNED, Ended, Parts, repro_text
from wheelhouse import free_port_url

from harness.model import Combination, Device
from harness.model.repro import parse_repro
from harness.probing import Probe
from harness.probing.bundle import Packed, Packer

BODY = "import brittle\n\nprint('stepping')\nbrittle.step()\n"


def asked(parts: Parts, release: str, *, device: Device = Device.CPU, body: str = BODY, tool: str = SIGNED) -> Probe:
    """A probe of one release of `brittle`."""
    source = repro_text("brittle", body=body, tool=tool)
    repro = parse_repro(source, name="brittle_step", path="repros/brittle_step.py")
    python = parts.resolver.interpreter.version
    requirements = (f"brittle=={release}",)
    return Probe(repro, Combination(python, requirements, device=device))


def pack(parts: Parts, folder: Path, *probes: Probe, **labelled: Probe) -> Packed:
    """Pack these into a folder; the label of a probe is its first requirement."""
    wanted = {probe.combination.requirements[0].replace("==", " "): probe for probe in probes}
    return Packer(parts.prober).pack({**wanted, **labelled}, folder)


def back_from(bundle: Path, folder: Path) -> Path:
    """A copy of a bundle to spoil; its harness, which nothing changes, is a link."""
    shutil.copytree(bundle, folder, ignore=lambda *_: ["harness"])
    (folder / "harness").symlink_to(bundle / "harness")
    return folder


@cache
def cut_off() -> list[str]:
    """The command prefix that cuts off the network, if this system allows that to any user."""
    permitted = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode == 0
    return ["unshare", "-rn"] if permitted else []


def start_there(bundle: Path, python: str | Path = "", **environ: str) -> subprocess.Popen:
    """Run a bundle with a Python that has no packages, as on another machine, without any network."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "HARNESS_", "PYTHON"))}
    dead = free_port_url()
    nowhere = {"PIP_INDEX_URL": dead, "UV_DEFAULT_INDEX": dead, "http_proxy": dead, "https_proxy": dead}
    own = {
        "HARNESS_SANDBOX": "off",
        "HARNESS_CACHE_DIR": str(bundle.parent / "there"),
        "UV_CACHE_DIR": str(bundle.parent / "uv-there"),
    }
    return subprocess.Popen(
        [*cut_off(), str(python or sys._base_executable), str(bundle / "run.py")],
        env={**kept, **nowhere, **own, **environ},
        cwd=bundle.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_there(bundle: Path, **more: str | Path) -> Ended:
    """Run it to its end."""
    process = start_there(bundle, **more)
    stdout, stderr = process.communicate(timeout=600)
    return Ended(process.returncode, stdout, stderr)
