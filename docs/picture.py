"""Writes the session that README.md shows, and draws it as docs/_static/session.svg: `nox -s picture`.

Both are rendered from the record of a real run, docs/session.json: its events and its answer are printed as `harness
bisect` prints them. With `--run` the command runs first, with results of its own, and its record replaces that one.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

import attrs
from attrs import evolve, field, frozen
from rich.console import Console as Screen
from rich.text import Text

from harness import events
from harness.api import reported_answer
from harness.atomic import write_whole
from harness.bisection.answer import Answer
from harness.bisection.wording import head_of
from harness.cli.output import write_constraints
from harness.events import Event, Judged, LevelBegan, Note, Progress, SearchBegan, SignatureCaptured, Started
from harness.model import Judgement, Observation, Pin, Repro, Signature
from harness.model.culprit import Level
from harness.model.text import cut_between_words
from harness.question.request import Request
from harness.records import as_record, value_of
from harness.redact import everywhere
from harness.search import PositionState
from harness.settings import Settings
from harness.terminal import PlainView, print_answer
from harness.terminal.console import Console, duration

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RECORD = ROOT / "docs" / "session.json"
OUT = ROOT / "docs" / "_static" / "session.svg"
COMMAND = "harness bisect transformers"
COLUMNS, ROWS = 120, 40
_WIDEST = 136  # columns of a line in the README
_ANSWER = re.compile(r"(?<=<!-- answer -->\n```text\n).*?(?=```)", re.DOTALL)
_SESSION = re.compile(r"<!-- session -->.*?```console\n(?P<text>.*?)```", re.DOTALL)
_SECONDS = re.compile(r"(?<=environments built before: )[^;]+")
_RUN = re.compile(r"(?P<verdict>good|bad|skipped) +(?P<label>.*?)(?P<rest>   .*?|)(?P<tail>  \[[^\]]*\])?$")
_COLORS = {
    "good": "bold green",
    "bad": "bold red",
    "skipped": "bold yellow",
    "proved": "green",
    "+": "green",
    "-": "red",
}
# What a view without a picture prints, or takes its times from. Warnings are about one machine.
_KINDS = {kind.__name__: kind for kind in (Note, SearchBegan, SignatureCaptured, LevelBegan, Started, Judged)}
_NAMES = {kind.__name__: kind for kind in (Judgement, Level, Observation, PositionState, Signature)}
for _kind in (Progress, *get_args(Event)):
    attrs.resolve_types(_kind, vars(events) | _NAMES)


@frozen
class Session:
    """A run of the command: its events, each with its seconds since the start, its answer, and the files it wrote."""

    command: str
    happened: tuple[tuple[float, Event], ...]
    answer: Answer
    report: str
    constraints: str

    @classmethod
    def of_now(cls, command: str) -> Session:
        """Run a command `harness bisect PACKAGE`, with results of its own. Raises `HarnessError`."""
        _, _, subject = shlex.split(command)
        recorder = _Recorder()
        with tempfile.TemporaryDirectory() as results:
            os.environ["HARNESS_RESULTS"] = results
            answer, reports = reported_answer(Request(subject), Settings(), recorder)
            constraints = write_constraints(answer, None, Path(results))
            report = next((path for path in reports if path.suffix == ".html"), None)
            written = [
                f"results/{path.relative_to(results)}" if path is not None else "" for path in (report, constraints)
            ]
        answer = everywhere(everywhere(answer, Observation, _slim), Repro, _without_places)
        return cls(command, tuple(recorder.happened), answer, *written)

    @classmethod
    def read(cls, path: Path = RECORD) -> Session:
        """Return the session in a file. Raises `ValueError` if it can't be read."""
        record = json.loads(path.read_text(encoding="utf-8"))
        answer = value_of(record["answer"], Answer)
        happened = [(at, value_of(event, _KINDS[kind])) for at, kind, event in record["happened"]]
        if answer is None or None in (event for _, event in happened):
            raise ValueError(f"{path} was written by another version: run nox -s picture -- --run")
        return cls(record["command"], tuple(happened), answer, record["report"], record["constraints"])  # type: ignore[arg-type]

    def write(self, path: Path = RECORD) -> None:
        """Write the session to a file."""
        happened = [(round(at, 3), type(event).__name__, as_record(event)) for at, event in self.happened]
        rest = {"command": self.command, "report": self.report, "constraints": self.constraints}
        lines = ",\n".join(json.dumps(event) for event in happened)
        head = json.dumps({**rest, "answer": as_record(self.answer)})
        write_whole(path, f'{head[:-1]}, "happened": [\n{lines}\n]}}\n')

    @property
    def lines(self) -> list[str]:
        """What the command printed, without the defaults below its headline."""
        screen, now = io.StringIO(), [0.0]
        console = Console(file=screen, width=COLUMNS, soft_wrap=True)
        with PlainView(console, counting=True, now=lambda: now[0]) as view:
            for at, event in self.happened:
                now[0] = at
                view.report(event)
        print_answer(console, self.answer, "results", [self.report], self.constraints)
        headline, *rest = screen.getvalue().rstrip().splitlines()
        steps = next((number for number, line in enumerate(rest) if not line.startswith("  ")), 0)
        return [headline, *(["..."] if steps else []), *rest[steps:]]


def _without_places(repro: Repro) -> Repro:
    """The repro without its source, and without where it is on this machine."""
    return evolve(repro, source="", path=Path(repro.path).name)


@frozen
class _Recorder:
    """A reporter that keeps what happened, and after how many seconds."""

    began: float = field(factory=time.monotonic)
    happened: list[tuple[float, Event]] = field(factory=list)

    def report(self, event: Event) -> None:
        if isinstance(event, Judged):
            run, progress = evolve(_slim(event.observation), lock=None), evolve(event.progress, states=())
            event = evolve(event, observation=run, progress=progress)
        if type(event) in _KINDS.values():
            self.happened.append((time.monotonic() - self.began, event))


def _slim(run: Observation) -> Observation:
    """Return a run with what is printed of it."""
    lock = run.lock and evolve(run.lock, pins=tuple(Pin(pin.name, pin.version) for pin in run.lock.pins))
    return Observation(
        run.key, run.outcome, run.repro, run.repro_digest, run.device, lock=lock, duration_s=run.duration_s
    )


def with_session(readme: str, session: Session) -> str:
    """Return the README with a session and the head of its answer; long lines of the session are cut."""
    lines = [f"$ {session.command}", *map(_cut, session.lines)]
    block = _SESSION.search(readme)
    if block is None:
        raise ValueError("README.md has no session")
    start, end = block.span("text")
    readme = readme[:start] + "".join(f"{line}\n" for line in lines) + readme[end:]
    head = "".join(f"{label:<12}{text}\n" for label, text in head_of(session.answer) if text)
    readme = _ANSWER.sub(lambda _: head, readme)
    return _SECONDS.sub(duration(session.answer.effort.wall_s), readme)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else line[: cut_between_words(line, _WIDEST - 1)] + "…"


def rows_of(readme: str) -> list[str]:
    """Return the rows of the picture: the command, and the last rows of what it printed, cut to the columns."""
    block = _SESSION.search(readme)
    if block is None:
        raise ValueError("README.md has no session")
    command, *printed = [line[:COLUMNS].rstrip() for line in block["text"].rstrip().splitlines()]
    return [command, "...", *printed[-ROWS:]] if len(printed) > ROWS else [command, *printed]


def drawn(rows: list[str]) -> str:
    """Return the picture of rows as SVG."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Screen(record=True, width=COLUMNS, file=nowhere, force_terminal=True, color_system="truecolor")
        # Above the first empty row are the steps, then the answer and its head.
        answer = rows.index("") if "" in rows else len(rows)
        for number, row in enumerate(rows):
            console.print(_coloured(row, number, answer), no_wrap=True, crop=True)
        return console.export_svg(title="harness", font_aspect_ratio=0.6)


def _coloured(row: str, number: int, answer: int) -> Text:
    """Return a row with the colours that it has in a terminal."""
    if number == 0:
        return Text.assemble(("$ ", "bold green"), (row.removeprefix("$ "), "bold"))
    if number < answer:
        run = _RUN.fullmatch(row)
        if run is None:
            return Text(row, "dim")
        start, end = run.span("label")
        text = Text(row)
        text.stylize(_COLORS[run["verdict"]], 0, run.end("verdict"))
        text.stylize("bold", start, end)
        text.stylize("dim", run.start("tail") if run["tail"] else len(row))
        return text
    if number == answer + 1:
        return Text(row, "bold red")
    if row == "Next":
        return Text(row, "bold")
    text = Text(row)
    if head := re.match(r"[A-Z][a-z]+( [a-z]+)*(?=  )", row):
        text.stylize("bold", 0, head.end())
    elif (label := re.match(r"  ([a-z]+)  ", row)) and label[1] in _COLORS:
        text.stylize(_COLORS[label[1]], 0, label.end())
    elif row.startswith("    ") and row.strip()[:1] in ("+", "-"):
        text.stylize(_COLORS[row.strip()[0]])
    return text


if __name__ == "__main__":
    if "--run" in sys.argv:
        Session.of_now(COMMAND).write()
    page = with_session(README.read_text(encoding="utf-8"), Session.read())
    README.write_text(page, encoding="utf-8")
    OUT.write_text(drawn(rows_of(page)), encoding="utf-8")
