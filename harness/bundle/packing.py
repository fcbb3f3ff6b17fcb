"""Packs probes: resolves them here, and puts probes, wheels and the run script into one folder."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness import __version__
from harness.atomic import is_out_of_space
from harness.bundle.installed import Installed
from harness.bundle.packed_probe import SCHEMA, PackedProbe, PackedWheel, packed_key
from harness.bundle.wheels import Unfetchable, Wheels
from harness.errors import HarnessFault, NoSpace, UserMistake
from harness.events import SILENT, Note, Reporter
from harness.model import Device
from harness.probe import next_attempt
from harness.run.devices.cuda import gpu_queries
from harness.run.launch import repro_variables
from harness.run.runner import script_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.environment import Index, Interpreter
    from harness.model import Lock, Observation
    from harness.probe import Probe, Prober
    from harness.store import StoredResolution

_RUN = Path(__file__).parent.parent / "run"
_RUNNING = Path(__file__).parent / "running"
CARRIED_TOOLS = ("guard.py", "launch.py")
_UNFINISHED = ".packing"
_README = """\
This folder has {count} of {repro} for Python {minor} on {platform}, with everything they need except Python itself.
Run them with `python run.py`; it needs no network, and continues if it was stopped.
Then copy the folder back (wheels/ and installer/ are not needed) and run `harness absorb PATH`.
"""


@frozen
class WantedProbe:
    """A probe to pack, and its label."""

    label: str
    probe: Probe


@frozen
class Packed:
    """The result of packing.

    `wheel_bytes` counts each packed file once; `left_out` maps distributions that the machine has already to versions,
    and `left_out_bytes` is the size of their wheels; `known` are answers that the store has or that need no run;
    `failed` are labels and the reasons why they were not packed.
    """

    probes: tuple[PackedProbe, ...]
    wheel_bytes: int = 0
    left_out: dict[str, str] = field(factory=dict)
    left_out_bytes: int = 0
    known: tuple[tuple[WantedProbe, Observation], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


@frozen
class Packer:
    """Packs probes for machines with the same Python and platform; `node` is what they have already installed."""

    prober: Prober
    index: Index
    interpreter: Interpreter
    node: Installed = field(factory=Installed)
    reporter: Reporter = SILENT

    def pack(self, asked: Sequence[WantedProbe], output: Path, *, fresh: bool = False) -> Packed:
        """Pack the probes without an answer, or with `fresh` a new attempt of each.

        Raises `UserMistake` if the folder is in use, `NoSpace` if it can't be written, and `NoNetwork`.
        """
        try:
            _claim(output)
            packed = self._pack(asked, output, fresh=fresh)
            if packed.probes:
                self._finish(output, packed)
            else:
                shutil.rmtree(output)
        except OSError as error:
            why = "no space left" if is_out_of_space(error) else error.strerror or str(error)
            raise NoSpace(f"can't write to {output}: {why}", hint="--output chooses another folder") from error
        return packed

    def _pack(self, asked: Sequence[WantedProbe], output: Path, *, fresh: bool) -> Packed:
        kept: dict[str, PackedProbe] = {}
        known, failed = [], []
        wheels = Wheels(output / "wheels", self.index, self.interpreter)
        for i, one in enumerate(asked, 1):
            self.reporter.report(Note(f"{i} of {len(asked)}  {one.label}: resolving"))
            resolution = self.prober.resolve(one.probe)
            if resolution.lock is None:
                known.append((one, self.prober.execute(self.prober.prepare(one.probe))))
                continue
            probe, answer = self._unanswered(one.probe, resolution.lock, fresh=fresh)
            if answer is not None:
                known.append((one, answer))
                continue
            absent = [pin for pin in resolution.lock.pins if not self.node.has(pin.name, pin.version)]
            size = sum(pin.size or 0 for pin in absent)
            fetching = f"{one.label}: fetching its wheels, {len(absent)} in all{_of(size)}"
            self.reporter.report(Note(f"{i} of {len(asked)}  {fetching}"))
            fetched = wheels.fetch(absent)
            if isinstance(fetched, Unfetchable):
                failed.append((one.label, fetched.words))
                continue
            packed_probe = self._packed_probe(evolve(one, probe=probe), resolution, resolution.lock, fetched)
            if packed_probe.key in kept:
                failed.append((one.label, f"same as {kept[packed_probe.key].label}: both resolve to the same lock"))
                continue
            packed_probe.write(output / "probes" / packed_probe.key, probe.repro.source)
            kept[packed_probe.key] = packed_probe
        left_out = {name: version for packed_probe in kept.values() for name, version in packed_probe.from_node.items()}
        sizes = {pin.name: pin.size or 0 for packed_probe in kept.values() for pin in packed_probe.lock.pins}
        return Packed(
            tuple(kept.values()),
            wheels.size(wheel for packed_probe in kept.values() for wheel in packed_probe.packed),
            left_out,
            sum(sizes[name] for name in left_out),
            tuple(known),
            tuple(failed),
        )

    def _unanswered(self, probe: Probe, lock: Lock, *, fresh: bool) -> tuple[Probe, Observation | None]:
        """The probe to run and its answer in the store, if any; with `fresh`, the first attempt without an answer."""
        while True:
            answer = self.prober.store.get(packed_key(probe, lock, self.prober.capability))
            if answer is None or not fresh:
                return probe, answer
            probe = next_attempt(probe)

    def _packed_probe(
        self, one: WantedProbe, resolution: StoredResolution, lock: Lock, fetched: tuple[PackedWheel, ...]
    ) -> PackedProbe:
        probe, capability = one.probe, self.prober.capability
        repro, combination = probe.repro, probe.combination
        names = {wheel.name for wheel in fetched}
        return PackedProbe(
            key=packed_key(probe, lock, capability),
            label=one.label,
            script=script_name(repro),
            device=combination.device,
            capability=capability,
            wall_s=repro.timeout,
            memory=repro.memory,
            lock=lock,
            packed=fetched,
            from_node={pin.name: self.node.versions[pin.name] for pin in lock.pins if pin.name not in names},
            variables=repro_variables(repro.params, combination.device.value, probe.attempt),
            params=repro.params,
            pass_env=self.prober.pass_env,
            gpu_queries=tuple(map(tuple, gpu_queries())) if combination.device is Device.CUDA else (),
            requirements=self.prober.store.without_secrets(combination.requirements),
            holds=self.prober.store.without_secrets(combination.holds),
            as_of=combination.as_of.isoformat() if combination.as_of else None,
            attempt=probe.attempt,
            drift=resolution.drift,
        )

    def _finish(self, output: Path, packed: Packed) -> None:
        """Add the files that run the probes, and last `bundle.json`, which makes the folder a bundle."""
        wanted = {wheel.file for packed_probe in packed.probes for wheel in packed_probe.packed}
        for left in (path for path in (output / "wheels").iterdir() if path.name not in wanted):
            left.unlink()  # from a probe that could not be packed, or from an interrupted call
        tools = output / "harness-run"
        tools.mkdir(exist_ok=True)
        for name in CARRIED_TOOLS:
            shutil.copy(_RUN / name, tools / name)
        shutil.copy(_RUNNING / "packed_run.py", tools / "packed_run.py")
        _copy_python(_RUN / "inside", tools / "inside")
        _copy_python(_pip(), output / "installer" / "pip")
        shutil.copy(_RUNNING / "run.py", output / "run.py")
        count = f"{len(packed.probes)} probe{'s' if len(packed.probes) > 1 else ''}"
        repro = packed.probes[0].script.removesuffix(".py")
        platform, minor = self.interpreter.platform, self.interpreter.minor
        readme = _README.format(count=count, repro=repro, minor=minor, platform=platform)
        (output / "README.txt").write_text(readme, encoding="utf-8")
        manifest = {
            "schema": SCHEMA,
            "harness": __version__,
            "python": self.interpreter.version,
            "implementation": self.interpreter.implementation,
            "platform": platform,
            "probes": [probe.key for probe in packed.probes],
        }
        (output / "bundle.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (output / _UNFINISHED).unlink()


def _claim(output: Path) -> None:
    """Claim an empty folder, or one that an interrupted call left, whose wheels are reused."""
    if output.exists() and not output.is_dir():
        raise UserMistake(f"{output} is a file", hint="--output takes a new or empty folder")
    if output.is_dir() and any(output.iterdir()) and not (output / _UNFINISHED).exists():
        kind = "already a bundle" if (output / "bundle.json").exists() else "not empty"
        raise UserMistake(f"{output} is {kind}", hint="--output takes a new or empty folder")
    (output / "wheels").mkdir(parents=True, exist_ok=True)
    (output / _UNFINISHED).touch()
    shutil.rmtree(output / "probes", ignore_errors=True)


def _pip() -> Path:
    """The folder of the pip that downloads the wheels; the bundle has a copy, so that no environment needs pip."""
    spec = importlib.util.find_spec("pip")
    if spec is None or spec.origin is None:
        raise HarnessFault("pip is missing beside the harness", hint="reinstall the harness")
    return Path(spec.origin).parent


def _copy_python(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.exe"), dirs_exist_ok=True)


def _of(size: int) -> str:
    return f" ({size / 2**20:.0f} MiB)" if size else ""
