"""Runs every command of the README, the tutorial and the guides from their text: `nox -s docs_commands`.

Each page runs in a fresh copy of this repository, its blocks in order. A comment on the line above a block says what it
needs; such a block runs only where that is there:

    <!-- commands: my-project -->   runs in the project that `PROJECT` is, whose tests an upgrade broke
    <!-- commands: minutes -->      takes minutes or gigabytes: only with --minutes
    <!-- commands: WHAT -->         any other key of `NEEDS`: never runs here; its reason is shown
    <!-- file: NAME -->             the block is a file, which is written for the commands after it

Exit codes 0, 1 and 3 are answers of the harness; any other one, and a traceback, is a failure of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import asdict, frozen

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/tutorial.md",
    *(f"docs/guides/{page.name}" for page in sorted(ROOT.glob("docs/guides/*.md"))),
)
NEEDS = {
    "session": "shown with what it prints, from a run of its own",
    "minutes": "takes minutes or gigabytes (--minutes runs it)",
    "installing": "installs this project, or runs all its tests",
    "gpu": "needs a GPU",
    "github": "needs a repository on GitHub",
    "cluster": "needs a cluster",
    "elsewhere": "needs another machine, or files of yours",
    "plugin": "needs the harness installed beside pytest; tests/test_pytest_plugin.py runs it",
    "terminal": "needs a person at a terminal",
}
MY_PROJECT = "my-project"
_BLOCK = re.compile(
    r"(?:<!-- (?P<kind>commands|file): (?P<what>[^>]+?) -->\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_ANSWERS = (0, 1, 3)
_LIMIT_S, _LONG_S = 600, 3600

# pytest 9 refuses what pytest 8 warned of: marks on fixtures.
PROJECT = {
    "pyproject.toml": """\
[project]
name = "my-project"
version = "1.0"
requires-python = ">=3.11"
dependencies = [
    "packaging>=20",
]

[dependency-groups]
test = ["pytest>=8"]
""",
    "tests/test_io.py": """\
import pytest


def test_data():
    @pytest.mark.usefixtures("tmp_path")
    @pytest.fixture
    def data():
        return [1, 2]


def test_own():
    assert 1 + 1 == 2
""",
    "step.py": """\
# /// script
# dependencies = ["packaging"]
# ///
import asyncore
""",
    "train.log": """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    x = np.asfarray([1, 2])
  File "site-packages/numpy/__init__.py", line 411, in __getattr__
    raise AttributeError(
AttributeError: `np.asfarray` was removed in the NumPy 2.0 release. Use `np.asarray` with a proper dtype instead.
""",
    "freeze-may.txt": "iniconfig==2.1.0\npackaging==25.0\npluggy==1.6.0\npytest==8.3.5\n",
    "freeze-june.txt": "iniconfig==2.1.0\npackaging==25.0\npluggy==1.6.0\npygments==2.19.2\npytest==9.0.0\n",
}


@frozen
class Block:
    """A block of a page: its commands (or a file's text), and what it needs."""

    page: str
    line: int
    commands: tuple[str, ...]
    needs: tuple[str, ...] = ()
    file: str = ""


@frozen
class Ran:
    """One command and how it ended: "ran", "failed" or "left out", with the reason."""

    page: str
    line: int
    command: str
    result: str
    why: str = ""
    seconds: float = 0.0


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yield the blocks of commands and the files of a page. Raises `ValueError` for an unknown mark."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        if found["kind"] == "file":
            yield Block(page, line, (found["body"],), file=found["what"])
        elif found["language"] == "console":
            needs = tuple(one.strip() for one in (found["what"] or "").split(",") if one.strip())
            if unknown := set(needs) - {*NEEDS, MY_PROJECT}:
                raise ValueError(f"{page}:{line}: nothing is called {unknown.pop()!r}")
            body = found["body"].splitlines()
            lines = [one.removeprefix("$ ") for one in body if one.startswith("$ ")]
            if len(lines) < len(body):
                needs = ("session",)
            yield Block(page, line, tuple(lines), needs)


def run_page(page: str, folder: Path, *, minutes: bool) -> Iterator[Ran]:
    """Run the blocks of a page in `folder`, which is new, and yield how each command ended."""
    checkout, project = folder / "checkout", folder / MY_PROJECT
    checkout.mkdir(parents=True)
    for name in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    ):
        if name and (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
    for name, text in PROJECT.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=project, check=True)
    for block in blocks_of(page, (ROOT / page).read_text(encoding="utf-8")):
        if block.file:
            (checkout / block.file).write_text(block.commands[0], encoding="utf-8")
            continue
        why = next((NEEDS[one] for one in block.needs if one in NEEDS and not (minutes and one == "minutes")), "")
        for command in block.commands:
            if command == f"cd {MY_PROJECT}":
                continue  # that is where its blocks run
            if why:
                yield Ran(page, block.line, command, "left out", why)
                continue
            here = project if MY_PROJECT in block.needs else checkout
            yield run_command(block, command, here, _LONG_S if "minutes" in block.needs else _LIMIT_S)


def run_command(block: Block, command: str, folder: Path, limit_s: float) -> Ran:
    """Run one command as a shell does."""
    kept = {name: value for name, value in os.environ.items() if name != "HARNESS_RESULTS"}
    begun = time.monotonic()
    try:
        ended = subprocess.run(
            command, shell=True, cwd=folder, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Ran(block.page, block.line, command, "failed", f"not over after {limit_s:.0f} s", limit_s)
    seconds = round(time.monotonic() - begun, 1)
    last = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-2:]
    is_fine = ended.returncode in _ANSWERS and "Traceback (most recent" not in ended.stderr
    why = f"exit code {ended.returncode}" + ("" if is_fine else f": {' / '.join(last)}")
    return Ran(block.page, block.line, command, "ran" if is_fine else "failed", why, seconds)


def main() -> int:
    """Run what was asked for, and print a line for each command and the totals."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("pages", nargs="*", default=PAGES, help="pages to run, for example README.md [default: all]")
    asked.add_argument("--minutes", action="store_true", help="run also what takes minutes or gigabytes")
    asked.add_argument("--output", type=Path, help="write how each command ended as JSON")
    given = asked.parse_args()
    every: list[Ran] = []
    for page in given.pages:
        with tempfile.TemporaryDirectory(prefix="harness-docs-") as folder:
            for ran in run_page(page, Path(folder), minutes=given.minutes):
                every.append(ran)
                print(f"{ran.result:<9} {ran.page}:{ran.line}  {ran.command}  [{ran.seconds} s; {ran.why}]", flush=True)
    counts = Counter(ran.result for ran in every)
    print(f"\n{len(every)} commands: {', '.join(f'{count} {result}' for result, count in counts.items())}")
    for why, count in Counter(ran.why for ran in every if ran.result == "left out").items():
        print(f"  {count} left out: {why}")
    if given.output is not None:
        given.output.write_text(json.dumps([asdict(ran) for ran in every], indent=1), encoding="utf-8")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
