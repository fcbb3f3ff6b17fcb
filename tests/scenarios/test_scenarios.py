"""The table of scenarios: each row of a TOML file in this folder is a question, run through the real command.

A file is a kind of question. Its rows share one local index (and repositories), all rows share one cache.

    # A package of the index. A day is a date, the number of days before today, as -30, or 0: now. Also: requires,
    # requires_python, tag, yanked = "reason", damaged = true, source_url; with sdist = true it has no wheel.
    [[packages]]
    name = "shop"
    releases = [{ version = "1.0", day = "2024-01-01", files = { "shop.py" = "def price(): return 1" } }]

    [[repositories]]                    # <repository:shop> in a command is its folder
    name = "shop"
    commits = [{ subject = "Begin", files = { "shop.py" = "" }, tag = "v1.0" }, { subject = "...", branch = "topic" }]

    [files]                             # files that all rows of this file have
    "check.py" = "import shop; assert shop.price() == 1"

    [[row]]
    name = "a sentence: what must be true"      # the id of the test
    files = { "more.py" = "" }                  # the user's files in an empty folder; false removes one (in a step)
    wheels = [{ name = "shop", version = "1.1", files = { "shop.py" = "" } }]  # in the folder <links>
    commits = [{ subject = "Lock", day = "2024-01-15", files = { "uv.lock" = "" }, tag = "v1" }]  # of all files
    git = true                                  # commit all files in a repository
    environ = { NAME = "value" }                # LIMIT_WHEN_PRINTED: the time limit comes with "at the limit" printed
    pythons = ["3.12"]                          # skipped unless these are on the machine
    commands = ["bisect shop --run 'python check.py'"]  # without `harness`; all run in order
    exit = 0                                    # of the last command, like all that follows
    runs = 12                                   # most runs that these commands may make
    facts = { "status" = "found", "failures.0.culprits.0.last_good" = "1.0" }
    says = ["a sentence on the screen"]         # stdout or stderr; also says_not
    golden = true                               # the transcript is in golden/, see below
    broken = ["probe --again"]                  # printed commands with these words fail today; a golden row runs all

    [[row.packages]]                            # the row has an index of its own, with these packages

    [[row.steps]]                               # what happens then: the same keys from files to says_not
    commands = ["report"]

In files, environ and commands <folder> is the folder of the row, <index> the address of the index, <day-30> the day
thirty days ago, <good> and <bad> are the runs of both sides of the newest answer.

The facts are those of the answer as JSON: a row with facts runs its last command with `--json`, unless it is golden or
has `says`: then the command runs as it stands, and the answer that it has kept is read. A path goes down by key, by
position (-1 is the last), and in a list by the level, package, name or release of an item, or its first element:
`head.Culprit`, `culprit.region.proved`, `steps.1.4.verdict`. A fact is a value, or a table of { at_most, at_least,
contains, contains_not, length, absent = true }.

A transcript in golden/ is the commands with what they print. `pytest tests/scenarios --update-golden` updates it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from attrs import evolve
from scenario import FOLDER, Ground, Played, Row, Stage, Step, differences, read, stage_of
from support import outer_environ
from transcript import printed_commands, transcript
from uv import find_uv_bin

from harness.environment import PipSettings, Uv
from harness.errors import UserMistake

TABLES = {path.stem: read(path) for path in sorted(FOLDER.glob("*.toml"))}
ROWS = [pytest.param(kind, row, id=f"{kind}: {row.name}") for kind, table in TABLES.items() for row in table.row]
# Exit codes of a command that did what it says: an answer or a verdict.
ANSWERS = 0, 1, 3


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "scenarios"


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_scenario(kind: str, row: Row, shared: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for python in row.pythons:
        _require_python(python)
    table = TABLES[kind]
    stage = stage_of(row, tmp_path / "here", Ground.of(table, shared / kind), shared)
    played = []
    for step in (row, *row.steps):
        files = {**table.files, **row.files} if step is row else step.files
        played.append(_play(stage, step, files, golden=row.golden))
        _run_uv_add(played[-1], stage)
        _run_part(played[-1], stage)
    if row.golden:
        _compare(kind, row, transcript(played, stage), update=request.config.getoption("--update-golden"))
        _run_printed(row, played, stage)


def _run_uv_add(played: Played, stage: Stage) -> None:
    """Every `uv add` that a step prints works in a copy of its folder."""
    commands = [line for line in played.ended.stdout.splitlines() if line.startswith("uv add ")]
    if not commands:
        return
    copy = stage.folder.with_name("project")
    shutil.copytree(stage.folder, copy, ignore=shutil.ignore_patterns(".harness"))
    for command in commands:
        words, environ = shlex.split(command)[1:], {**outer_environ(), **stage.environ}
        ended = subprocess.run([find_uv_bin(), *words], cwd=copy, env=environ, capture_output=True, text=True)
        assert ended.returncode == 0, f"`{command}` ends with {ended.returncode}:\n{ended.stderr}"
    shutil.rmtree(copy)


def _run_part(played: Played, stage: Stage) -> None:
    """The part of an update that is said to pass is a diff that git can apply, and passes the gate."""
    part = played.answer.get("part") if isinstance(played.answer, dict) else None
    if not part:
        return
    assert part["diff"], part
    copy = evolve(stage, folder=stage.folder.with_name("part"))
    shutil.copytree(stage.folder, copy.folder)
    subprocess.run(["git", "apply", "-"], cwd=copy.folder, input=part["diff"], check=True, text=True)
    ended = copy.run([*shlex.split(played.command), "--json"], {})
    assert (ended.code, ended.json["status"], len(ended.json["changes"])) == (0, "passes", len(part["kept"]))
    shutil.rmtree(copy.folder)


def _require_python(version: str) -> None:
    try:
        Uv(PipSettings()).find_python(version)
    except UserMistake:
        pytest.skip(f"no Python {version} on this machine")


def _play(stage: Stage, step: Step, files: dict[str, str | bool], *, golden: bool) -> Played:
    played = stage.play(step, files, as_typed=golden or bool(step.says or step.says_not))
    if lines := differences(step, played):
        pytest.fail("\n".join([*lines, "", str(played)]), pytrace=False)
    return played


def _compare(kind: str, row: Row, text: str, *, update: bool) -> None:
    path = _golden(kind, row)
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text.splitlines() == wanted.splitlines(), "pytest tests/scenarios --update-golden accepts it"


def _golden(kind: str, row: Row) -> Path:
    return FOLDER / "golden" / (re.sub(r"\W+", "-", f"{kind} {row.name}") + ".txt")


def _run_printed(row: Row, played: list[Played], stage: Stage) -> None:
    """Every command that a golden transcript shows works in the folder where it was printed.

    One that names a run, and so no files, works in any other folder, too.
    """
    unused, lines = set(row.broken), []
    elsewhere = evolve(stage, folder=stage.folder.with_name("elsewhere"))
    elsewhere.folder.mkdir()
    for command in printed_commands(played):
        ended = (elsewhere if "probe --again" in command else stage).run(shlex.split(command)[1:], row.environ)
        works = ended.code in ANSWERS and "Traceback" not in ended.stderr
        marks = {mark for mark in row.broken if mark in command}
        if not works and not marks:
            lines.append(f"`{command}` ends with {ended.code}:\n{ended.stderr}")
        unused -= set() if works else marks
    lines += [f"`{mark}` works, or is not printed: remove it from `broken`" for mark in sorted(unused)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[[row]]\nname = "x"\ncommands = []\nfact = {}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="fact"):
        read(path)


def test_every_transcript_belongs_to_a_row() -> None:
    paths = {_golden(kind, row) for kind, table in TABLES.items() for row in table.row if row.golden}
    assert set((FOLDER / "golden").glob("*.txt")) == paths
