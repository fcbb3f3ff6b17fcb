"""Bundles for tests: packed from the house, run by their own script without an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from support import SIGNED, Ended, Parts, repro_text
from wheelhouse import free_port_url

from harness.bundle import Packed, Packer, WantedProbe
from harness.model import Combination, Device
from harness.model.repro import parse_repro
from harness.probing import Probe

BODY = "import brittle\n\nprint('stepping')\nbrittle.step()\n"


def asked(
    parts: Parts, release: str, *, device: Device = Device.CPU, body: str = BODY, tool: str = SIGNED
) -> WantedProbe:
    """A probe of one release of `brittle`."""
    source = repro_text("brittle", body=body, tool=tool)
    repro = parse_repro(source, name="brittle_step", path="repros/brittle_step.py")
    python = parts.resolver.interpreter.version
    requirements = (f"brittle=={release}",)
    return WantedProbe(f"brittle {release}", Probe(repro, Combination(python, requirements, device=device)))


def pack(
    parts: Parts, folder: Path, *probes: WantedProbe, node: Mapping[str, str] | None = None, like: Path | None = None
) -> Packed:
    """Pack these into a folder; with `like`, as an interrupted packing of that bundle left it, with its wheels."""
    if like is not None:
        shutil.copytree(like / "wheels", folder / "wheels")
        (folder / ".packing").touch()
    return Packer(parts.prober, parts.resolver.interpreter, node or {}).pack(probes, folder)


@cache
def cut_off() -> list[str]:
    """The command prefix that cuts off the network, if this system allows that to any user."""
    permitted = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode == 0
    return ["unshare", "-rn"] if permitted else []


def start_there(bundle: Path, *arguments: str, python: str | Path = sys.executable, **environ: str) -> subprocess.Popen:
    """Start the run script of a bundle without any network."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "HARNESS_", "PYTHON"))}
    dead = free_port_url()
    nowhere = {"PIP_INDEX_URL": dead, "UV_DEFAULT_INDEX": dead, "http_proxy": dead, "https_proxy": dead}
    return subprocess.Popen(
        [*cut_off(), str(python), str(bundle / "run.py"), *arguments],
        env={**kept, **nowhere, **environ},
        cwd=bundle.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_there(bundle: Path, *arguments: str, **more: str | Path) -> Ended:
    """Run it to its end."""
    process = start_there(bundle, *arguments, **more)
    stdout, stderr = process.communicate(timeout=120)
    return Ended(process.returncode, stdout, stderr)


def node_with(folder: Path, name: str, version: str, source: str) -> Path:
    """A virtual environment with one distribution that no installer put there; returns its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / f"{name}.py").write_text(source)
    info = packages / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder / "bin" / "python"
