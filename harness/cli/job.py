"""`harness bundle` packs probes for a machine without network, `harness job run` answers them, `harness absorb` reads.

`harness job run` is also what executors start on other machines.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from attrs import evolve
from rich.text import Text

from harness.arguments import OptionGroup
from harness.cli.options import FOLDER, SectionCommand, json_option, repro_argument, settings_options
from harness.environment.uv import TORCH_BACKEND
from harness.errors import NoSpace, UserMistake
from harness.model import Device, Repro
from harness.model.requirements import merged_requirements
from harness.model.text import counted, size_in_words, to_json
from harness.probing import Cancelled, Probe
from harness.probing.bundle import Absorbed, Packed, Packer
from harness.probing.bundle import absorb as take_back
from harness.probing.node import run_folder
from harness.question.repros import chosen_repro
from harness.question.single import probe_of
from harness.session import Session, local_session
from harness.settings import Settings
from harness.store import Store
from harness.terminal import PlainView
from harness.terminal.answer import print_observation
from harness.terminal.console import Console, print_text


@click.command(cls=SectionCommand)
@repro_argument()
@click.option("--over", multiple=True, metavar="REQ", help="One probe for each of these, such as transformers==4.53.0.")
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="New folder for the bundle."
)
@click.option("--fresh", is_flag=True, help="Pack it even if the results have the answer.")
@json_option("what was packed as JSON")
@settings_options(OptionGroup.QUESTION, OptionGroup.RUNS)
def bundle(
    repro: str,
    over: tuple[str, ...],
    output: Path,
    fresh: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Pack probes of REPRO into a folder that runs on a machine without network.

    What a first step writes is made here and carried along, as are inputs. There, `python run.py` runs the probes;
    back here, `harness absorb FOLDER` reads their results in.
    The machine needs the Python of the probes, and for the harness, which is in the bundle, the one that runs it here.

    \b
    harness bundle whisper_lora_checkpointing --over transformers==4.52.4 --over transformers==4.53.0 --output carry
    """
    if settings.from_source:
        raise UserMistake("a bundle holds only wheels, so it can't hold what --build would build")
    chosen = chosen_repro(repro, None, None, settings.params, settings.timeout)
    view = PlainView(Console(stderr=True, soft_wrap=True))
    session = local_session(settings, requires_python=chosen.requires_python)
    probes = dict(_labelled_probe(session, chosen, release) for release in over or ("",))
    packed = Packer(session.local, view).pack(probes, output, fresh=fresh)
    if as_json:
        known = {label: observation.key for label, _, observation in packed.known}
        rows = {"packed": [job.label for job in packed.jobs], "known": known, "not_packed": dict(packed.failed)}
        click.echo(to_json({**rows, "folder": str(output)}))
    else:
        print_packed(Console(soft_wrap=True), packed, output)
    sys.exit(3 if packed.failed else 0)


@click.command(cls=SectionCommand)
@click.argument("folder", type=FOLDER)
@json_option("what was read in as JSON")
@settings_options()
def absorb(folder: Path, as_json: bool, settings: Settings) -> None:
    """Read the results of the bundle in FOLDER back in.

    What does not fit the bundle is refused. Reading it in twice changes nothing.
    Exit codes: 0 all read in, 2 something was refused, 3 something has not run yet.

    \b
    harness absorb carry
    """
    store = Store.opened(settings.results)
    absorbed = take_back(folder, store)
    if as_json:
        taken = {row.label: row.observation.key for row in absorbed.taken}
        click.echo(to_json({"taken": taken, "missing": dict(absorbed.missing), "refused": dict(absorbed.refused)}))
    else:
        print_absorbed(Console(soft_wrap=True), absorbed, store)
    sys.exit(2 if absorbed.refused else 3 if absorbed.missing else 0)


@click.group()
def job() -> None:
    """Run probes that were packed as jobs."""


@job.command(cls=SectionCommand)
@click.argument("folder", type=FOLDER)
def run(folder: Path) -> None:
    """Run the job in FOLDER, or those of a bundle, and write what happened beside it.

    Nothing is judged here. A job with a result is not run again, so the same command continues.
    Exit codes: 0 all have run, 3 something could not run.

    \b
    harness job run carry
    """
    console = Console(soft_wrap=True)
    try:
        count, failed = run_folder(folder, lambda words: print_text(console, words))
    except Cancelled:
        sys.exit(3)  # whoever sent the job has removed it
    except OSError as error:
        raise NoSpace(f"can't write to {folder}: {error.strerror or error}") from error
    print_text(console, f"{count - failed} of {counted(count, 'job')} have run")
    sys.exit(3 if failed else 0)


def _labelled_probe(session: Session, repro: Repro, release: str) -> tuple[str, Probe]:
    """The label and the probe for one requested release, or ("") for `--with` alone."""
    settings = session.settings
    with_ = merged_requirements(settings.with_, (release,)) if release else settings.with_
    # A first step runs here, where the network is.
    probe = probe_of(evolve(session, settings=evolve(settings, with_=with_, device="auto")), repro)
    backend = session.local.builder.uv.environment.get(TORCH_BACKEND)
    combination = evolve(probe.combination, device=_device(settings.device, probe.repro, backend))
    return release or " ".join(settings.with_) or repro.name, evolve(probe, combination=combination)


def _device(choice: str, repro: Repro, torch_backend: str | None) -> Device:
    """The device of a probe. It does not depend on this machine's GPUs, because another machine runs the bundle."""
    if choice != "auto":
        return Device(choice)
    is_for_cpu = repro.device == "cpu" or (repro.device == "any" and torch_backend == "cpu")
    return Device.CPU if is_for_cpu else Device.CUDA


def print_packed(console: Console, packed: Packed, output: Path) -> None:
    """Print what was packed, what is known already, what was not packed, sizes, and the next step."""
    for job in packed.jobs:
        wheels = counted(len(job.wheels), "wheel")
        print_text(console, Text.assemble(("packed ", "bold green"), f"{job.label} ({wheels})"))
    for label, judgement, observation in packed.known:
        state = f"{judgement.verdict.value}, {judgement.reason}" if judgement else observation.detail
        print_text(console, Text.assemble(("known already ", "bold"), f"{label}: {state}; --fresh packs it again"))
    for label, why in packed.failed:
        print_text(console, Text.assemble(("not packed ", "bold yellow"), f"{label}: {why}"))
    if not packed.jobs:
        console.print(Text("nothing is left to pack"))
        return
    files = {wheel.wheel for job in packed.jobs for wheel in job.wheels}
    size = size_in_words(packed.wheel_bytes)
    print_text(console, f"  {counted(len(files), 'wheel')}, {size}, in {output}")
    first = packed.jobs[0]
    device = first.probe.combination.device.value
    print_text(console, f"  for Python {first.lock.minor} on {first.lock.platform} only; to run on {device}")
    console.print(Text(f"  there: python {output.name}/run.py"), soft_wrap=True)
    console.print(Text(f"  back here: {shlex.join(['harness', 'absorb', str(output)])}"), soft_wrap=True)


def print_absorbed(console: Console, absorbed: Absorbed, store: Store) -> None:
    """Print each observation as `harness probe` does, then what is missing or refused; the store has their logs."""
    for taken in absorbed.taken:
        print_text(console, f"{taken.label}{' (known already)' if taken.known else ''}", style="bold")
        print_observation(console, taken.observation, taken.judgement, store)
    for label, why in absorbed.missing:
        print_text(console, Text.assemble(("missing ", "bold yellow"), f"{label}: {why}"))
    for label, why in absorbed.refused:
        print_text(console, Text.assemble(("refused ", "bold red"), f"{label}: {why}"))
    new = sum(not taken.known for taken in absorbed.taken)
    counts = f"{counted(new, 'observation')} taken, {len(absorbed.taken) - new} known already"
    print_text(console, f"{counts}, {len(absorbed.missing)} missing, {len(absorbed.refused)} refused")
