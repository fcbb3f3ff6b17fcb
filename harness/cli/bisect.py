"""`harness bisect`: what broke it, or fixed it; with `--ask` its user judges each run."""

from __future__ import annotations

import select
import sys
from pathlib import Path

import click

from harness.api import reported_answer
from harness.bisection.answer import Answer
from harness.bisection.showing import json_of
from harness.cli.options import (
    FILE,
    SectionCommand,
    end_option,
    option,
    repro_options,
    subject_argument,
)
from harness.cli.output import Output, check_replaceable, output_options, write, write_constraints
from harness.cli.search_options import CONSTRAINTS, as_request, project_options, question_settings, search_options
from harness.cli.shell import Entered, enter
from harness.errors import HarnessError, UserMistake
from harness.model import Verdict
from harness.probing.judge import JudgedRun, Wish
from harness.question.request import Request
from harness.report.commands import required_names
from harness.report.junit import junit_of
from harness.report.privacy import private_of
from harness.run.process import pause
from harness.settings import Settings
from harness.store import Store
from harness.terminal import PlainView, print_answer
from harness.terminal.console import Console, short_path
from harness.terminal.stream import is_for_agent, last_line

_LINES = 12
_LOOK_S = 0.2
_PROMPT = "  [g]ood, [b]ad, s[k]ip, [q]uit; [r]un it again, open a [s]hell in it, show the whole [l]og: "
_REPLIES: dict[str, Verdict | Wish] = {
    **dict.fromkeys(("g", "good"), Verdict.GOOD),
    **dict.fromkeys(("b", "bad"), Verdict.BAD),
    **dict.fromkeys(("k", "skip"), Verdict.SKIP),
    **dict.fromkeys(("q", "quit"), Wish.QUIT),
    **dict.fromkeys(("r", "run"), Wish.AGAIN),
}


class AtTheTerminal:
    """A user at the terminal: shows the end of what a run printed, and asks on stderr."""

    def judge(self, shown: JudgedRun) -> Verdict | Wish:
        """Ask until there is a verdict or a wish; the end of the input quits. Raises `Cancelled`."""
        lines = shown.log.splitlines()
        click.echo(f"\n{_name(shown)}: {shown.observation.detail or 'ran to its end'}", err=True)
        if len(lines) > _LINES:
            click.echo(f"  ... {len(lines) - _LINES} lines before (l shows them)", err=True)
        _show(lines[-_LINES:])
        while True:
            click.echo(_PROMPT, nl=False, err=True)
            typed = _line()
            if typed is None:
                return Wish.QUIT
            if (reply := _REPLIES.get(typed)) is not None:
                return reply
            if typed in ("l", "log"):
                _show(lines or ["(it printed nothing)"])
            elif typed in ("s", "shell"):
                _open(shown)
            else:
                click.echo("  type one of these letters", err=True)


def _name(shown: JudgedRun) -> str:
    lock, named = shown.observation.lock, required_names(shown.probe.combination.requirements)
    releases = [f"{pin.name} {pin.version}" for pin in (lock.pins if lock is not None else ()) if pin.name in named]
    return ", ".join(releases) or shown.observation.repro


def _show(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"  | {line}", err=True)


def _open(shown: JudgedRun) -> None:
    try:
        enter(shown.builder, Entered(_name(shown), shown.observation, shown.probe.repro), [])
    except HarnessError as error:
        click.echo(f"  {error.message}", err=True)


def _line() -> str | None:
    """Return the next line in lower case, None at the end of the input. Raises `Cancelled`."""
    while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        pause()
    line = sys.stdin.readline()
    return line.strip().lower() if line else None


@click.command(cls=SectionCommand)
@subject_argument(required=False)
@repro_options
@end_option(
    "--good",
    metavar="END",
    help="Where it works: a release, a day, a lock file (also uv.lock@v1.4.0), a Python, docker://IMAGE or a commit "
    "[default: the repro's, else steps back].",
)
@end_option("--bad", metavar="END", help="Where it fails [default: the repro's, else the newest].")
@project_options
@search_options
@output_options("the answer as JSON")
@option(
    "Output",
    "--junit",
    type=FILE,
    metavar="FILE",
    help="Write the tests as they ran at the bad end to FILE, as JUnit XML, with what broke each.",
)
@question_settings
@as_request
def bisect(request: Request, constraints: Path | None, output: Output, junit: Path | None, settings: Settings) -> None:
    """Find the release of SUBJECT that broke a repro, or of whatever package did.

    With SUBJECT alone, it takes the repro that names it, with that repro's own bounds. Without SUBJECT, it finds the
    package too, between two days, lock files or environments; without --good it tries older packages. With "python" as
    SUBJECT it finds the Python.

    \b
    harness bisect --run pytest
    harness bisect --run pytest --good 2025-06-20
    harness bisect --run "python -m unittest" --good freeze-old.txt --bad ~/venv-new
    harness bisect transformers
    harness bisect transformers --good 4.50.3 --bad 4.57.6
    harness bisect transformers --find-fix --bad 4.57.6
    harness bisect peft --run "pytest -x tests/test_lora.py" --with pytest
    harness bisect peft --good v0.17.0 --bad main --git ~/src/peft
    harness bisect python --run pytest
    harness bisect matplotlib --repro plot.py --ask
    """
    is_by_hand = request.policy.ask
    if is_by_hand and (output.lines is not None or not sys.stdin.isatty()):
        raise UserMistake("--ask needs a terminal at which you judge each run")
    check_replaceable(constraints)
    # A live picture would be drawn over the questions.
    view = PlainView(Console(stderr=True)) if is_by_hand else output.reporting()
    with view as reporter:
        typed = (CONSTRAINTS,) if constraints is not None else ()
        person = AtTheTerminal() if is_by_hand else None
        answer, reports = reported_answer(request, settings, reporter, typed, person)
    written = write_constraints(answer, constraints, settings.results.absolute())
    if not output.is_for_people:
        _write_junit(answer, junit, settings)
    page = next((path for path in reports if path.suffix == ".html"), None)
    record = short_path(settings.results.absolute() / f"answers/{page.stem}.json") if page is not None else None
    output.answer(json_of(answer), answer.exit_code, answer=record, report=page, constraints=written, junit=junit)
    if output.is_for_people:
        pages = [str(short_path(page))] if page is not None else []
        limits = str(short_path(written)) if written is not None else ""
        print_answer(Console(soft_wrap=True), answer, str(settings.results), pages, limits)
        if is_for_agent():
            guilty = ", ".join(culprit.named for culprit in answer.culprits)
            what = " ".join(filter(None, (answer.status.value, guilty)))
            click.echo(last_line(what, answer.exit_code, record))
        _write_junit(answer, junit, settings)  # if it can't be, the answer is shown nevertheless
    sys.exit(answer.exit_code)


def _write_junit(answer: Answer, path: Path | None, settings: Settings) -> None:
    if path is not None:
        write(path, junit_of(answer, private_of(Store.opened(settings.results, settings.pass_env))))
