"""`harness bundle`: probes in a folder, for a machine without network."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click
from rich.console import Console

from harness.bundle import Asked, Installed, Packed, Packer, read_installed
from harness.cli.repro_options import chosen_repro, one_date
from harness.cli.wiring import open_workshop, shared_options
from harness.errors import NoSpace, UserMistake
from harness.model import Combination, Device, Repro
from harness.planning.plan import merged_requirements
from harness.probe import Judge, Probe
from harness.store import Store
from harness.terminal import PlainView
from harness.terminal.bundle import print_packed


@click.command()
@click.argument("repro")
@click.option("--over", multiple=True, metavar="REQ", help="One probe for each of these, such as transformers==4.53.0.")
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="New folder for the bundle."
)
@click.option("--zip", "as_zip", is_flag=True, help="Put the folder into FOLDER.zip, too.")
@click.option(
    "--installed",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What the machine has already (pip list --format=freeze there): those wheels are left out.",
)
@click.option("--fresh", is_flag=True, help="Pack it even if the store has the answer.")
@shared_options
def bundle(
    repro: str,
    over: tuple[str, ...],
    output: Path,
    as_zip: bool,
    installed: Path | None,
    fresh: bool,
    with_: tuple[str, ...],
    hold: tuple[str, ...],
    python: str | None,
    as_of: str | None,
    device: str,
    capability: str,
    params: tuple[str, ...],
    pass_env: tuple[str, ...],
    from_source: tuple[str, ...],
    torch_backend: str | None,
    results_folder: Path,
) -> None:
    """Pack probes of REPRO into a folder that runs on a machine without network.

    There, `python run.py` runs them; back here, `harness absorb FOLDER` takes what was observed into the results.
    The machine needs the same minor version of Python on the same platform, and nothing else.

    \b
    harness bundle whisper_lora_checkpointing --over transformers==4.52.4 --over transformers==4.53.0 --output carry
    """
    if from_source:
        raise UserMistake("a bundle holds wheels; what has to be built (--build) can't go into one")
    chosen = chosen_repro(repro, None, None, params)
    workshop = open_workshop(
        results_folder, python=python, pass_env=pass_env, capability=capability, torch_backend=torch_backend
    )
    node = read_installed(installed) if installed else Installed()
    node.check(workshop.interpreter)
    requirements = merged_requirements(chosen.dependencies, with_)
    asked = [
        Asked(
            one or " ".join(with_) or chosen.name,
            Probe(
                chosen,
                Combination(
                    python=workshop.interpreter.version,
                    requirements=merged_requirements(requirements, (one,)) if one else requirements,
                    holds=merged_requirements((), hold),
                    as_of=one_date(as_of, (*with_, one) if one else with_, workshop.index),
                    device=_device(device, chosen),
                ),
            ),
        )
        for one in dict.fromkeys(over or ("",))
    ]
    console = Console(stderr=True, soft_wrap=True)
    packer = Packer(workshop.prober, workshop.index, workshop.interpreter, node, PlainView(console))
    packed = packer.pack(asked, output, fresh=fresh)
    archive = _zipped(output) if as_zip and packed.orders else None
    print_packed(Console(soft_wrap=True), packed, output, archive, _verdicts(packed, workshop.store))
    sys.exit(3 if packed.failed else 0)


def _device(asked: str, repro: Repro) -> Device:
    """Where it will run: what this machine has counts for nothing, and bundles are for machines with a GPU."""
    if asked != "auto":
        return Device(asked)
    return Device.CPU if repro.device == "cpu" else Device.CUDA


def _verdicts(packed: Packed, store: Store) -> list[str]:
    """What is known already, in words."""
    told = []
    for asked, observation in packed.known:
        signature = asked.probe.repro.signature
        judgement = Judge(signature, store)(observation) if signature is not None else None
        told.append(f"{judgement.verdict.value}, {judgement.reason}" if judgement else observation.detail)
    return told


def _zipped(folder: Path) -> Path:
    try:
        return Path(shutil.make_archive(str(folder), "zip", root_dir=folder.absolute().parent, base_dir=folder.name))
    except OSError as error:
        raise NoSpace(
            f"can't write {folder}.zip: {error.strerror or error}", hint="the folder itself is whole"
        ) from error
