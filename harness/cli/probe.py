"""`harness probe`: one repro, one environment, one run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cattrs
import click
from rich.console import Console

from harness.cli.repro_options import chosen_repro, one_date
from harness.cli.wiring import Workshop, open_workshop, resource_options, shared_options
from harness.environment import Uninstallable
from harness.errors import UserMistake
from harness.matrix.running import pinned_prereleases
from harness.model import Combination, Device, Judgement, Lock, Observation, Outcome, Verdict
from harness.planning.plan import merged_requirements
from harness.probe import Judge, Prepared, Probe, next_attempt
from harness.request.repros import find_repro
from harness.run.devices import choose_device
from harness.terminal import PlainView, print_observation
from harness.terminal.plain import WarningsOnly

_EXIT = {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.SKIP: 3}


@click.command()
@click.argument("repro", required=False)
@click.option("--run", metavar="COMMAND", help="Command to run instead of a repro.")
@click.option("--again", metavar="KEY", help="Run an observation of the results once more: same lock, same repro.")
@click.option("--fresh", is_flag=True, help="Run even if the store has the answer.")
@click.option("--json", "as_json", is_flag=True, help="Print the observation as JSON.")
@click.option(
    "--environment",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Build and leave the environment here, to look into; it is remade when its lock is another.",
)
@shared_options
@resource_options
def probe(
    repro: str | None,
    run: str | None,
    again: str | None,
    fresh: bool,
    as_json: bool,
    environment: Path | None,
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
    gpu_wait: float,
    max_disk: int | None,
) -> None:
    """Run REPRO once and say what happened.

    With --python PATH of an environment's interpreter, the repro runs in that environment as it is. With --environment
    FOLDER it runs in one that is built there; FOLDER is filled even where the answer is known already.

    \b
    harness probe whisper_lora_checkpointing --with transformers==4.53.0
    harness probe repros/second_backward.py --python ~/venv/bin/python
    """
    in_place = bool(python and "/" in python)
    if in_place and environment:
        raise UserMistake("--python PATH runs in an environment as it is; --environment builds one: give one of them")
    console = Console(stderr=True)
    workshop = open_workshop(
        results_folder,
        python=python,
        pass_env=pass_env,
        from_source=from_source,
        capability=capability,
        torch_backend=torch_backend,
        environment=environment,
        gpu_wait=gpu_wait,
        max_disk=max_disk,
        reporter=WarningsOnly(console) if as_json else PlainView(console),
    )
    if again:
        prepared = _prepared_again(workshop, again, repro, run)
    else:
        chosen = chosen_repro(repro, run, None, params)
        where, _ = choose_device(device, chosen.device, workshop.gpus)
        asked = Probe(
            chosen,
            Combination(
                python=workshop.interpreter.version,
                requirements=merged_requirements(chosen.dependencies, with_),
                holds=merged_requirements((), hold),
                as_of=one_date(as_of, with_, workshop.index),
                device=where,
                prereleases=pinned_prereleases(with_),
                from_source=from_source,
            ),
        )
        if in_place and python is not None:
            if with_ or hold:
                raise UserMistake("--python PATH runs in an environment as it is; --with and --hold can't change it")
            prepared = workshop.prober.prepare_in(python, asked)
        else:
            prepared = workshop.prober.prepare(asked)
            while fresh and prepared.cached:
                asked = next_attempt(asked)
                prepared = workshop.prober.prepare(asked)
    observation = workshop.prober.execute(prepared)
    judgement = _judged(workshop, prepared, observation)
    if as_json:
        click.echo(json.dumps(cattrs.unstructure(observation), indent=1))
    else:
        print_observation(
            Console(soft_wrap=True),
            observation,
            judgement.verdict if judgement else None,
            judgement.reason if judgement else "",
        )
    if environment and prepared.cached and observation.lock is not None:
        _fill(workshop, observation.lock, environment)
    if judgement is not None:
        sys.exit(_EXIT[judgement.verdict])
    sys.exit(0 if observation.outcome is Outcome.COMPLETED else 1)


def _fill(workshop: Workshop, lock: Lock, folder: Path) -> None:
    """What the store answers did not run here, and yet the user asked for its environment."""
    built = workshop.prober.builder.build(lock)
    if isinstance(built, Uninstallable):
        click.echo(f"{folder} is left as it was: the lock can't be installed any more: {built.words}", err=True)


def _judged(workshop: Workshop, prepared: Prepared, observation: Observation) -> Judgement | None:
    signature = prepared.probe.repro.signature
    return Judge(signature, workshop.store)(observation) if signature is not None else None


def _prepared_again(workshop: Workshop, key: str, named: str | None, run: str | None) -> Prepared:
    known = [o for o in workshop.store.observations() if o.key.startswith(key)]
    lock = known[0].lock if len(known) == 1 else None
    if lock is None:
        why = (
            "no observation begins"
            if not known
            else f"{len(known)} observations begin"
            if len(known) > 1
            else "there is no lock for the one that begins"
        )
        raise UserMistake(f"{why} with {key!r} in {workshop.store.root}", hint="harness results lists them")
    observation = known[0]
    # A command, or a repro that lies elsewhere, has to be named again: a record only has its digest.
    found = chosen_repro(named, run, None, ()) if named or run else find_repro(observation.repro)
    repro = found.with_params(observation.params)
    if repro.digest != observation.repro_digest:
        raise UserMistake(
            f"{observation.repro} has changed since {key} was observed",
            hint=f"harness probe {observation.repro} runs it as it is now",
        )
    asked = Probe(
        repro,
        Combination(
            python=lock.python,
            requirements=observation.requirements,
            device=Device(observation.device),
        ),
        attempt=max(
            o.attempt for o in workshop.store.observations() if o.lock == lock and o.repro_digest == repro.digest
        )
        + 1,
    )
    return workshop.prober.prepare_lock(asked, lock)
