"""Packs probes: resolves them here, and puts probes, wheels and the run script into one folder.

The wheels that a machine without network lacks are downloaded from where uv finds them, and checked.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import cattrs
from attrs import evolve, field, frozen

from harness._version import __version__
from harness.atomic import is_out_of_space, sha256_of
from harness.environment.attempt import locked_files
from harness.environment.index import download
from harness.errors import BadRepro, IndexFault, NoSpace, UserMistake
from harness.events import SILENT, Note, Reporter
from harness.model import Device, Lock, Observation, Pin, normalized_name
from harness.model.repro import parse_repro
from harness.model.text import counted, size_in_words
from harness.probing import Probe, Prober, next_attempt, probe_key, seed_of
from harness.probing.portable import PortableProbe, converter
from harness.probing.prober import same_version
from harness.run.devices.cuda import QUERY
from harness.run.launch import repro_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.environment import Interpreter, Uv
    from harness.environment.resolve import Resolution


_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;#]+)")
_HINT = "run there: python -m pip list --format=freeze, or python run.py --what-is-there"


def read_installed(path: Path) -> dict[str, str]:
    """Read versions by normalised name from `pip freeze`, `pip list --format=freeze` or `run.py --what-is-there`.

    Lines without a version (a local folder, a repository) are ignored; these distributions count as missing. Raises
    `UserMistake`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"can't read what is installed from {path}: {error}", hint=_HINT) from error
    found = {normalized_name(m["name"]): m["version"] for m in map(_LINE.match, text.splitlines()) if m}
    if not found:
        raise UserMistake(f"{path} lists no package with a version (name==1.0)", hint=_HINT)
    return found


@frozen
class Wheels:
    """A folder of wheels for one interpreter, each as a pin with its hash. Existing ones are not downloaded again."""

    folder: Path
    uv: Uv
    interpreter: Interpreter
    _digests: dict[str, str] = field(factory=dict, init=False, repr=False, eq=False)

    def fetch(self, pins: Iterable[Pin]) -> tuple[Pin, ...] | str:
        """Download the wheels of these pins and check their hashes; returns the reason if that fails.

        Raises `NoNetwork` and `NoSpace`.
        """
        kept = {pin: self._kept(pin) for pin in pins}
        missing = {pin.name: pin for pin, wheel in kept.items() if wheel is None}
        if missing:
            asked = [f"{pin.name}=={pin.version}" for pin in missing.values()]
            try:
                with tempfile.TemporaryDirectory(prefix="harness-wheels-") as scratch:
                    answer, lock = self.uv.compile(
                        asked, "--no-deps", python=self.interpreter.path, folder=Path(scratch)
                    )
                    if answer.returncode != 0:
                        return " ".join(answer.words.split())
                    for file in locked_files(lock, self.interpreter):
                        pin, wheel = missing[file.pin.name], file.pin.wheel
                        if not pin.digests or file.pin.sha256 in pin.digests:
                            self._digests.pop(wheel, None)
                            download(self.uv.settings, file.url, self.folder / wheel, file.pin.sha256)
                            kept[pin] = self._kept(evolve(pin, wheel=wheel))
            except IndexFault as fault:
                return fault.message
        for pin, found in kept.items():
            if found is None:
                return f"no index has a wheel of {pin.name} {pin.version} with the hash in the lock"
        return tuple(found for found in kept.values() if found is not None)

    def size(self, wheels: Iterable[Pin]) -> int:
        """The size of these wheels in bytes; each file counts once."""
        return sum((self.folder / name).stat().st_size for name in {wheel.wheel for wheel in wheels})

    def _kept(self, pin: Pin) -> Pin | None:
        """The wheel of a pin in this folder, if it is there with the right hash."""
        path = self.folder / pin.wheel
        if not path.is_file():
            return None
        digest = self._digests.get(pin.wheel) or self._digests.setdefault(pin.wheel, sha256_of(path))
        return Pin(pin.name, pin.version, pin.wheel, digest) if not pin.digests or digest in pin.digests else None


SCHEMA = 5
# The files come from another machine, so they are not trusted.
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)

_RUN = Path(__file__).parent.parent / "run"
_SCRIPT = Path(__file__).with_name("running.py")
CARRIED_TOOLS = ("guard.py", "launch.py")
_UNFINISHED = ".packing"
_README = """\
This folder has {count} of {repro} for Python {minor} on {platform}, with everything they need except Python itself.
Run them with `python run.py`; it needs no network, and continues if it was stopped.
Then copy the folder back (wheels/, given/ and installer/ are not needed) and run `harness absorb PATH`.
"""


@frozen
class PackedProbe:
    """A probe in a bundle, with what its run script needs.

    `key` of `probe` is for an unknown GPU; `variables` are the repro's environment variables; `gpu_query` is the
    command that lists GPUs; `packed` are the wheels of its lock in the bundle, `from_node` names and versions of those
    that the machine has already; `drift` says where its lock differs from the requested holds. `given` are the folders
    that its runs get, each as the name of its variable and the hash of its archive.
    """

    label: str
    probe: PortableProbe
    packed: tuple[Pin, ...]
    from_node: dict[str, str]
    variables: dict[str, str]
    gpu_query: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    given: dict[str, str] = field(factory=dict)

    def write(self, folder: Path) -> None:
        """Write probe, script and requirements into the probe's folder. Raises `OSError`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.probe.repro.path).write_text(self.probe.repro.source, encoding="utf-8")
        (folder / "requirements.txt").write_text(as_requirements(self.packed), encoding="utf-8")
        (folder / "probe.json").write_text(json.dumps(converter.unstructure(self), indent=1) + "\n", encoding="utf-8")


@frozen
class WantedProbe:
    """A probe to pack, and its label."""

    label: str
    probe: Probe


@frozen
class Packed:
    """The result of packing.

    `wheel_bytes` counts each packed file once; `left_out` maps distributions that the machine has already to versions;
    `known` are answers that the store has or that need no run;
    `failed` are labels and the reasons why they were not packed.
    """

    probes: tuple[PackedProbe, ...]
    wheel_bytes: int = 0
    left_out: dict[str, str] = field(factory=dict)
    known: tuple[tuple[WantedProbe, Observation], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


@frozen
class Packer:
    """Packs probes for machines with the same Python and platform.

    `node` has the versions that they have already installed, including local labels (PEP 440), by normalised name.
    """

    prober: Prober
    interpreter: Interpreter
    node: Mapping[str, str] = field(factory=dict)
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
        wheels = Wheels(output / "wheels", self.prober.builder.uv, self.interpreter)
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
            pins = resolution.lock.pins
            absent = [pin for pin in pins if not same_version(self.node.get(pin.name, ""), pin.version)]
            size = sum(pin.size or 0 for pin in absent)
            told = f" ({size_in_words(size)})" if size else ""
            self.reporter.report(
                Note(f"{i} of {len(asked)}  {one.label}: fetching {counted(len(absent), 'wheel')}{told}")
            )
            fetched = wheels.fetch(absent)
            if isinstance(fetched, str):
                failed.append((one.label, fetched))
                continue
            packed_probe = self._packed_probe(evolve(one, probe=probe), resolution, resolution.lock, fetched, output)
            key = packed_probe.probe.key
            if key in kept:
                failed.append((one.label, f"same as {kept[key].label}: both resolve to the same lock"))
                continue
            packed_probe.write(output / "probes" / key)
            kept[key] = packed_probe
        left_out = {name: version for packed_probe in kept.values() for name, version in packed_probe.from_node.items()}
        return Packed(
            tuple(kept.values()),
            wheels.size(wheel for packed_probe in kept.values() for wheel in packed_probe.packed),
            left_out,
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
        self, one: WantedProbe, resolution: Resolution, lock: Lock, fetched: tuple[Pin, ...], output: Path
    ) -> PackedProbe:
        probe, store = one.probe, self.prober.store
        combination, names = probe.combination, {wheel.name for wheel in fetched}
        asked = evolve(
            combination,
            requirements=store.without_secrets(combination.requirements),
            holds=store.without_secrets(combination.holds),
        )
        key = packed_key(probe, lock, self.prober.capability)
        portable = PortableProbe.of(evolve(probe, combination=asked), lock, key, self.prober)
        return PackedProbe(
            one.label,
            evolve(portable, folders=()),
            packed=fetched,
            from_node={pin.name: self.node[pin.name] for pin in lock.pins if pin.name not in names},
            variables=repro_variables(probe.repro.params, combination.device.value, seed_of(probe, lock)),
            gpu_query=QUERY if combination.device is Device.CUDA else (),
            drift=resolution.drift,
            given=_given(portable, output),
        )

    def _finish(self, output: Path, packed: Packed) -> None:
        """Add the files that run the probes, and last `bundle.json`, which makes the folder a bundle."""
        wanted = {wheel.wheel for packed_probe in packed.probes for wheel in packed_probe.packed}
        for left in (path for path in (output / "wheels").iterdir() if path.name not in wanted):
            left.unlink()  # from a probe that could not be packed, or from an interrupted call
        tools = output / "harness-run"
        tools.mkdir(exist_ok=True)
        for name in CARRIED_TOOLS:
            shutil.copy(_RUN / name, tools / name)
        _copy_python(_RUN / "inside", tools / "inside")
        _copy_python(_pip(), output / "installer" / "pip")
        shutil.copy(_SCRIPT, output / "run.py")
        count = counted(len(packed.probes), "probe")
        repro = packed.probes[0].probe.repro.path.removesuffix(".py")
        platform, minor = self.interpreter.platform, self.interpreter.minor
        readme = _README.format(count=count, repro=repro, minor=minor, platform=platform)
        (output / "README.txt").write_text(readme, encoding="utf-8")
        manifest = {
            "schema": SCHEMA,
            "harness": __version__,
            "python": self.interpreter.version,
            "implementation": self.interpreter.implementation,
            "platform": platform,
            "probes": [packed_probe.probe.key for packed_probe in packed.probes],
        }
        (output / "bundle.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (output / _UNFINISHED).unlink()


def _claim(output: Path) -> None:
    """Claim an empty folder, or one that an interrupted call left, whose wheels are reused."""
    if output.exists() and not (output / _UNFINISHED).exists() and (output.is_file() or any(output.iterdir())):
        raise UserMistake(f"{output} is not an empty folder", hint="--output takes a new or empty folder")
    (output / "wheels").mkdir(parents=True, exist_ok=True)
    (output / _UNFINISHED).touch()
    for name in ("probes", "given"):
        shutil.rmtree(output / name, ignore_errors=True)


def _given(portable: PortableProbe, output: Path) -> dict[str, str]:
    """Write the archives of the folders that a probe is given; returns their hashes by variable. Raises `OSError`."""
    contents = {folder.name: folder.content for folder in portable.folders}
    packed = {}
    for one in portable.repro.given:
        packed[one.variable] = hashlib.sha256(contents[one.digest]).hexdigest()
        (output / "given").mkdir(exist_ok=True)
        (output / "given" / f"{packed[one.variable]}.tar.gz").write_bytes(contents[one.digest])
    return packed


def _pip() -> Path:
    """The folder of our pip; the bundle has a copy, so that no environment needs pip."""
    import pip

    return Path(pip.__file__).parent


def _copy_python(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.exe"), dirs_exist_ok=True)


def read_packed(folder: Path) -> tuple[PackedProbe, Probe]:
    """Read a packed probe and its probe. Raises `UserMistake` if they can't be read or were changed."""
    try:
        told = json.loads(inside(folder, "probe.json").read_text(encoding="utf-8"))
        packed = converter.structure(told, PackedProbe)
        sent = packed.probe
        source = inside(folder, sent.repro.path).read_text(encoding="utf-8")
        repro = parse_repro(source, name=sent.repro.name, path=sent.repro.path).with_params(sent.repro.params)
        repro = repro.with_given(*sent.repro.given, step=sent.repro.step) if sent.repro.given else repro
    except (*UNREADABLE, cattrs.BaseValidationError, BadRepro) as error:
        raise UserMistake(f"its probe in {folder} can't be read: {_said(error)}") from error
    probe = Probe(repro, sent.combination, attempt=sent.attempt, lock=sent.lock)
    known = {pin.name: pin for pin in sent.lock.pins}
    fits = all(
        (pin := known.get(wheel.name)) is not None
        and pin.version == wheel.version
        and (not pin.digests or wheel.sha256 in pin.digests)
        for wheel in packed.packed
    )
    # The key is a hash of repro, parameters, device and lock, so it differs if any of them was changed.
    if not fits or sent.key != folder.name or sent.key != packed_key(probe, sent.lock, sent.capability):
        raise UserMistake("its repro, parameters, device or lock are not those that were packed")
    return packed, probe


def inside(folder: Path, name: str) -> Path:
    """Return the path of a regular file directly in this folder.

    Raises `ValueError` if it is a link, a pipe, or elsewhere, `OSError` if it does not exist.
    """
    path = folder / name
    if Path(name).name != name or folder.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(f"{name} is not a regular file in its folder")
    return path


def packed_key(probe: Probe, lock: Lock, capability: str) -> str:
    """The key of a probe's observation before its GPU is known."""
    return probe_key(probe, lock, gpus=(), capability=capability)


def as_requirements(wheels: Iterable[Pin]) -> str:
    """Return requirement lines for pip, each with the hash of the packed wheel."""
    return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)


def _said(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
