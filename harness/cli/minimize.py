"""`harness minimize`: makes a repro smaller while its signature stays."""

from __future__ import annotations

from pathlib import Path

import click
from attrs import evolve

from harness.cli.options import settings_options
from harness.cli.written import write
from harness.drafting.smaller import Smaller, removed
from harness.errors import Interrupted, UserMistake
from harness.model import Verdict
from harness.model.repro import parse_repro
from harness.model.text import counted
from harness.planning.given import Giver
from harness.planning.single import executed, prepared_probe
from harness.probing import Judge, Probe
from harness.request.repros import chosen_repro, required_python
from harness.session import local_session
from harness.settings import Group, Settings
from harness.terminal.console import Console, print_text
from harness.terminal.live import WarningsOnly


@click.command()
@click.argument("repro")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the smaller repro [default: NAME_min.py beside it].",
)
@settings_options(Group.QUESTION, Group.RUNS, Group.LIMITS)
def minimize(repro: str, output: Path | None, settings: Settings) -> None:
    """Make REPRO smaller while it still fails by its signature.

    Statements are taken out, outer ones first; each candidate runs in one environment, built once. Ctrl-C keeps the
    smallest so far.

    \b
    harness minimize repros/mine.py
    harness minimize repros/mine.py --with transformers==4.53.0 --output small.py
    """
    console = Console(stderr=True)
    session = local_session(settings, WarningsOnly(console), requires_python=required_python(repro, None, None))
    found = chosen_repro(repro, None, None, settings.params, settings.timeout)
    if found.signature is None:
        raise UserMistake(
            f"{found.name} has no signature, so a smaller one could fail for another reason",
            hint="add [tool.harness.signature] with its exception and message",
        )
    prepared = prepared_probe(session, found)
    first = executed(session, prepared)
    lock = first.observation.lock
    if first.judgement is None or first.judgement.verdict is not Verdict.BAD or lock is None:
        reason = first.judgement.reason if first.judgement is not None else first.observation.detail
        raise UserMistake(
            f"{found.name} does not show its bug here: {reason}",
            hint="--with PACKAGE==VERSION runs it with a release that does",
        )
    judge = Judge(found.signature, session.store)
    path = output or Path(found.path).with_name(f"{Path(found.path).stem}_min.py")

    giver, combination = Giver(session.local, session.index), prepared.probe.combination

    def judged(source: str) -> Verdict:
        smaller = parse_repro(source, name=found.name, path=found.path).with_params(found.params).within(found.timeout)
        # A smaller first step must still write what the smaller reader fails to read.
        smaller = giver.given_if_made(smaller, combination, settings.as_of, settings.made_with)
        probe = Probe(evolve(smaller, signature=found.signature), combination)
        return judge(session.local.execute(session.local.prepare_lock(probe, lock))).verdict

    search = Smaller(found.source, judged)
    try:
        search.reduce(lambda words: print_text(console, f"  {words}"))
    except (KeyboardInterrupt, Interrupted) as error:
        write(path, search.source)
        raise Interrupted(f"stopped; the smallest so far is in {path}") from error
    write(path, search.source)
    shown = Console(soft_wrap=True)
    for line in removed(found.source, search.source):
        print_text(shown, line, {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], ""))
    before, after = len(found.source.splitlines()), len(search.source.splitlines())
    print_text(shown, f"wrote {path}: {after} of {counted(before, 'line')}, {counted(search.runs, 'run')}")
    print_text(shown, f"  harness probe {path}")
