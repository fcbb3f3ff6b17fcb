"""Commands to type: those that reproduce one side with only uv and the repro, and a set of packages to install or keep.

No local part of a version (torch 2.6.0+cpu) is in them, because only some indexes have such wheels.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from attrs import evolve
from packaging.requirements import InvalidRequirement

from harness.model import Lock, Observation, Pin, Repro, Signature, name_of
from harness.run.commands import typed


def required_names(requirements: Iterable[str]) -> set[str]:
    """The normalised names of requirements; invalid requirements are ignored."""
    return {name for text in requirements if (name := _name(text))}


def side_command(
    observation: Observation,
    lock: Lock,
    pinned: Collection[str],
    held: Collection[str],
    repro: Repro,
    signature: Signature | None,
) -> str:
    """Return the shell command that reproduces one side.

    It pins the names in `pinned` to the versions in the lock; everything else is resolved as of the requested date, or
    else the time of the run. Names in `held` may be newer than the requested date, so their limit is the time of the
    run. The script is started with `python`, so that uv does not read its inline metadata, which would install the
    newest releases.
    """
    words = _uv_run(lock)
    for pin in lock.pins:
        if pin.name in pinned:
            words += ["--with", f"{pin.name}=={public_version(pin)}"]
    if day := _zulu(observation.as_of or observation.started):
        words += ["--exclude-newer", day]
    if observation.as_of and observation.started:
        for name in sorted({pin.name for pin in lock.pins} & set(held) & set(pinned)):
            words += ["--exclude-newer-package", f"{name}={_zulu(observation.started)}"]
    line = f"{shlex.join(words)} {_started(repro)}"
    return f"HARNESS_METRICS=metrics.json {line}" if signature is not None and signature.is_written else line


def exact_command(lock: Lock, lock_file: str, repro: Repro) -> str:
    """Return the command that installs exactly the files of a lock, whose requirement lines are in `lock_file`."""
    return f"{shlex.join([*_uv_run(lock), '--with-requirements', lock_file])} {_started(repro)}"


def lock_text(lock: Lock) -> str:
    """Requirement lines with hashes; a version with a local part has none, since its public wheel is another file."""
    pins = [pin if public_version(pin) == pin.version else Pin(pin.name, public_version(pin)) for pin in lock.pins]
    return evolve(lock, pins=pins).as_requirements().rstrip("\n")


def local_versions(pins: Iterable[Pin]) -> tuple[str, ...]:
    """The versions that the commands install without their local part, such as "torch 2.6.0+cpu"."""
    return tuple(f"{pin.name} {pin.version}" for pin in pins if public_version(pin) != pin.version)


def public_version(pin: Pin) -> str:
    """The version without its local part, which only some indexes have."""
    return pin.version.partition("+")[0]


def _zulu(time: str) -> str:
    return time.replace("+00:00", "Z")


def _uv_run(lock: Lock) -> list[str]:
    return ["uv", "run", "--no-project", "--python", lock.minor]


def _started(repro: Repro) -> str:
    """The command of a repro as its user would type it: the tests to run are named as their tool expects them."""
    folders = repro.without_copies.search_path
    variables = [f"PYTHONPATH={':'.join(folders)}"] if folders else []
    variables += [f"HARNESS_PARAMS={json.dumps(repro.params)}"] if repro.params else []
    settings = f"{shlex.join(['env', *variables])} " if variables else ""
    return settings + (typed(repro.argv) if repro.argv else shlex.join(["python", f"{repro.name}.py"]))


def install_commands(
    program: Sequence[str], requirements: Iterable[str], options: Mapping[str, tuple[str, ...]]
) -> str:
    """Return the commands that install requirements, one for all with the same options.

    `program` is `uv add` or `pip install`, `options` are by normalised name.
    """
    by_options: dict[tuple[str, ...], list[str]] = {}
    for text in requirements:
        by_options.setdefault(options.get(name_of(text), ()), []).append(text)
    return "\n".join(shlex.join([*program, *words, *texts]) for words, texts in sorted(by_options.items()))


def exact_pins(lock: Lock, names: Iterable[str]) -> tuple[str, ...]:
    """Return the packages `names` (normalised) at the versions of a lock, without the local part of the versions."""
    wanted = set(names)
    return tuple(f"{pin.name}=={public_version(pin)}" for pin in lock.pins if pin.name in wanted)


def constraints_text(lock: Lock, sentence: str) -> str:
    """Return a constraints file with every package of a lock; `sentence` is its first line."""
    return f"# {sentence}\n" + "".join(f"{pin.name}=={public_version(pin)}\n" for pin in lock.pins)


def _name(text: str) -> str:
    try:
        return name_of(text)
    except InvalidRequirement:
        return ""
