"""Runs every command of the README, the tutorial and the guides from their text: `nox -s docs_commands`.

Each page runs in a fresh copy of this repository, its blocks in order, with a home folder of its own. What the text
takes for granted (a log, an issue, a clone, an old environment, a `gh`) is made by `documented_surroundings.py`. A
comment on the line above a block says how it runs:

    <!-- commands: my-project -->   in the project of those surroundings, whose tests an upgrade broke
    <!-- commands: minutes -->      takes minutes or gigabytes: only with --minutes
    <!-- commands: installing -->   in an environment of its own: only with --installing
    <!-- commands: terminal -->     at a terminal, where Ctrl-D is typed, or `q` for --ask
    <!-- commands: WHAT -->         any other key of `NEEDS`: never runs here; its reason is shown
    <!-- file: NAME -->             the block is a file, which is written for the commands after it

A command that ends in `&` runs until its page ends. Exit codes 0, 1 and 3 are answers of the harness, and 130 is how
`q` ends; any other one, and a traceback, is a failure of the page.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from attrs import asdict, field, frozen

sys.path.insert(0, str(Path(__file__).parent))
from documented_surroundings import Surroundings, at_a_terminal

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/installation.md",
    "docs/tutorial.md",
    *(f"docs/guides/{page.name}" for page in sorted(ROOT.glob("docs/guides/*.md"))),
)
NEEDS = {
    "minutes": "takes minutes or gigabytes (--minutes runs it)",
    "installing": "installs this project, or runs all its tests (--installing runs it)",
    "kubernetes": "needs a Kubernetes cluster",
    "machines": "needs other machines",
    "forge": "clones from GitHub",
}
MY_PROJECT, TERMINAL = "my-project", "terminal"
_BLOCK = re.compile(
    r"(?:<!-- (?P<kind>commands|file): (?P<what>[^>]+?) -->\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_ANSWERS, _QUIT = (0, 1, 3), 130
_LIMIT_S, _LONG_S = 600, 3600


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
    shown: str = field(default="", repr=False)  # what it wrote to stderr, or else to stdout


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yield the blocks of commands and the files of a page. Raises `ValueError` for an unknown mark."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        if found["kind"] == "file":
            yield Block(page, line, (found["body"],), file=found["what"])
        elif found["language"] == "console":
            needs = tuple(one.strip() for one in (found["what"] or "").split(",") if one.strip())
            if unknown := set(needs) - {*NEEDS, MY_PROJECT, TERMINAL}:
                raise ValueError(f"{page}:{line}: nothing is called {unknown.pop()!r}")
            lines = [one.removeprefix("$ ") for one in found["body"].splitlines() if one.startswith("$ ")]
            yield Block(page, line, tuple(lines), needs)


def run_page(page: str, folder: Path, *, wanted: Collection[str] = ()) -> Iterator[Ran]:
    """Run the blocks of a page in `folder`, which is new, and yield how each command ended.

    Of the keys of `NEEDS`, blocks run whose all are `wanted`.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    with Surroundings.made(folder, ROOT, text) as around:
        for block in blocks_of(page, text):
            if block.file:
                (around.checkout / block.file).write_text(block.commands[0], encoding="utf-8")
                continue
            why = next((NEEDS[one] for one in block.needs if one in NEEDS and one not in wanted), "")
            here = around.project if MY_PROJECT in block.needs else around.checkout
            for command in block.commands:
                if command == "cd my-project":
                    continue  # that is where its blocks run
                if command.startswith("cd "):
                    here = Path(command.removeprefix("cd ").replace("~", str(around.home)))
                elif why:
                    yield Ran(page, block.line, command, "left out", why)
                else:
                    yield run_command(block, command, here, around)


def run_command(block: Block, command: str, folder: Path, around: Surroundings) -> Ran:
    """Run one command as a shell does."""
    limit_s = _LONG_S if {"minutes", "installing"} & {*block.needs} else _LIMIT_S
    environ = around.installed if "installing" in block.needs else around.environ
    begun = time.monotonic()
    if command.endswith("&"):
        around.start(command, folder)
        return Ran(block.page, block.line, command, "ran", "in the background")
    try:
        if TERMINAL in block.needs:
            code, shown = at_a_terminal(command, folder, environ, "q" if "--ask" in command else "\x04", limit_s)
        else:
            ended = subprocess.run(
                command, shell=True, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=limit_s, check=False,
            )  # fmt: skip
            code, shown = ended.returncode, ended.stderr.strip() or ended.stdout.strip()
            if ended.stdout.strip() == shown and not code:
                shown = ""  # a report may show the traceback of a run
    except subprocess.TimeoutExpired:
        return Ran(block.page, block.line, command, "failed", f"not over after {limit_s:.0f} s", limit_s)
    seconds = round(time.monotonic() - begun, 1)
    fine = (*_ANSWERS, _QUIT) if TERMINAL in block.needs and "--ask" in command else _ANSWERS
    is_fine = code in fine and "Traceback (most recent" not in shown
    why = f"exit code {code}" + ("" if is_fine else f": {' / '.join(shown.splitlines()[-2:])}")
    return Ran(block.page, block.line, command, "ran" if is_fine else "failed", why, seconds, shown)


def main() -> int:
    """Run what was asked for, and print a line for each command and the totals."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("pages", nargs="*", default=PAGES, help="pages to run, for example README.md [default: all]")
    asked.add_argument("--minutes", action="store_true", help="run also what takes minutes or gigabytes")
    asked.add_argument("--installing", action="store_true", help="run also what installs it or runs its tests")
    asked.add_argument("--output", type=Path, help="write how each command ended as JSON")
    given = asked.parse_args()
    every: list[Ran] = []
    for page in given.pages:
        with tempfile.TemporaryDirectory(prefix="harness-docs-") as folder:
            wanted = [name for name in ("minutes", "installing") if getattr(given, name)]
            for ran in run_page(page, Path(folder), wanted=wanted):
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
