"""Regressions planted in real packages, found by the harness: are the lines that it names the planted ones?

Each case (`planting.py`) is a published package and the same with one wrong line among unrelated refactorings. Both
become wheels of a local index; the harness descends from the package to lines in real environments, and what it names
is compared with what was planted. Beside it, plain delta debugging (ddmin) over the same regions, in processes that
are only forked: its runs are counted, not timed.

    python benchmarks/planted_lines.py --cases 200 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uv
from attrs import asdict, define, frozen

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests"), str(HERE)]  # the harness of this checkout, and its tests

from ddmin import DeltaDebugging
from planted_packages import PACKAGES, Package
from planting import MESSAGE, Case, Runner, plant
from wheelhouse import Wheelhouse

from harness.bisection.ask import looked_up
from harness.bisection.boundaries import answer_line
from harness.bisection.releases import release_question
from harness.culprit.edits import Edits
from harness.culprit.sides import PackageFiles
from harness.environment import Builder, Index, PipSettings, Resolver, Uv, Workspace, find_interpreter
from harness.events import Event, Judged, Note
from harness.model import Verdict
from harness.probing import Prober
from harness.probing.resolutions import Resolutions
from harness.probing.trust import ForksDisagree
from harness.question.request import Request
from harness.session import Session, warmed
from harness.settings import Settings
from harness.store import Store

if TYPE_CHECKING:
    from harness.bisection.answer import Answer
    from harness.question.question import Question

_MOST_DDMIN = 400


@frozen
class Found:
    """What came of one case: "exact", "wider", "wrong" or "not sure"; `ddmin` are the runs of ddmin, 0: not asked."""

    name: str
    outcome: str
    runs: int
    seconds: float
    ddmin: int = 0
    ddmin_exact: bool = False
    named: tuple[str, ...] = ()
    planted: str = ""
    detail: str = ""
    forked: int = 0
    disagreed: bool = False


@define
class _Forks:
    """Counts forked runs, and notes whether forks were given up because a fresh process disagreed."""

    forked: int = 0
    disagreed: bool = False

    def report(self, event: Event) -> None:
        """Look for forks."""
        if isinstance(event, Judged):
            self.forked += bool(event.observation.machine.get("forked"))
        elif isinstance(event, Note):
            self.disagreed |= "disagree" in str(event)


def main() -> int:
    """Plant, search, compare; a table line for each case and a summary as JSON."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="planted-", dir=options.work))
    sources = Path(options.sources) if options.sources else folder / "sources"
    cases = _cases(options.seed, options.cases, sources, folder, Path(options.kept) if options.kept else None)
    found = []
    for number, case in enumerate(cases):
        if (options.only and options.only != case.name) or number < options.skip:
            continue
        one = measure(case, folder / f"case{number}", with_ddmin=number < options.ddmin)
        found.append(one)
        told = f"{one.outcome:9} {one.name:24} {one.runs:3} runs {one.seconds:6.1f} s"
        told += f" · ddmin {one.ddmin} {'exact' if one.ddmin_exact else 'not exact'}" if one.ddmin else ""
        print(
            told,
            "" if one.outcome == "exact" else f"· planted {one.planted}, named {one.named} {one.detail}",
            flush=True,
        )
    print(json.dumps(summary(found), indent=1))
    if options.out:
        Path(options.out).write_text(json.dumps([asdict(one) for one in found], indent=1), encoding="utf-8")
    return 0


def summary(found: list[Found]) -> dict[str, Any]:
    """The figures of all cases."""
    runs = sorted(one.runs for one in found)
    plain = sorted(one.ddmin for one in found if one.ddmin)
    return {
        "cases": len(found),
        **{
            outcome: sum(one.outcome == outcome for one in found) for outcome in ("exact", "wider", "wrong", "not sure")
        },
        "runs": _middle(runs),
        "seconds": {"median": round(statistics.median(one.seconds for one in found), 1)} if found else {},
        "forked runs": sum(one.forked for one in found),
        "cases in which a fork and a fresh process disagreed": sum(one.disagreed for one in found),
        "ddmin": {**_middle(plain), "exact": sum(one.ddmin_exact for one in found)} if plain else {},
    }


def _middle(runs: list[int]) -> dict[str, float]:
    """Median and 90th percentile of sorted numbers."""
    return {"median": statistics.median(runs), "p90": runs[int(0.9 * (len(runs) - 1))]} if runs else {}


def measure(case: Case, folder: Path, *, with_ddmin: bool) -> Found:
    """One case in real environments."""
    folder.mkdir(parents=True)
    house = Wheelhouse(folder / "house")
    for version, tree in (("1.0", case.before), ("1.1", case.after)):
        house.add(
            "planted", version, files=tree, uploaded=f"2024-01-0{version[-1] or 1}T12:00:00Z".replace("-00T", "-01T")
        )
    repro = folder / "planted_step.py"
    repro.write_text(_script(case), encoding="utf-8")
    settings = PipSettings(index_url=house.url)
    tool = Uv(settings, extra_environment={"UV_CACHE_DIR": str(folder / "uv")})
    interpreter = find_interpreter(None, tool)
    workspace = Workspace(folder / "cache")
    index = Index(settings, workspace.index, environ={})
    store = Store(folder / "results")
    builder = Builder(tool, interpreter, workspace)
    prober = Prober(store, Resolutions(store, Resolver(index, builder.builds)), builder)
    begun = time.monotonic()
    forks = _Forks()
    one_lane = Settings(results=store.root, device="cpu", lanes=1)
    session = Session(one_lane, forks, store, index, interpreter, prober, ())
    _, question = looked_up(session, Request("planted", str(repro), good="1.0", bad="1.1", depth="region"))
    answer = _answered(session, question)
    seconds = time.monotonic() - begun
    outcome, named, detail = judged(case, answer)
    ddmin, exact = _ddmin(case, folder) if with_ddmin else (0, False)
    subprocess.run(["rm", "-rf", str(folder)], check=False)
    planted = f"{case.path}:{case.line}"
    runs = answer.effort.culprit_probes
    return Found(case.name, outcome, runs, seconds, ddmin, exact, named, planted, detail, forks.forked, forks.disagreed)


def _answered(session: Session, question: Question) -> Answer:
    """The answer, searched as a question of a user is: with forks, until a fresh process disagrees with one."""
    with contextlib.suppress(ForksDisagree), warmed(session) as warm:
        return _searched(warm, question)
    return _searched(session, question)


def _searched(session: Session, question: Question) -> Answer:
    with session.lanes(question.combination.device, question.repro) as lanes:
        return answer_line(session, release_question(session, question), lanes)


def judged(case: Case, answer: Answer) -> tuple[str, tuple[str, ...], str]:
    """Exact: one place is named, with the planted line; wider: several, with it; wrong: others are proved."""
    if not answer.findings:
        return "not sure", (), answer.sentence
    finest = answer.findings[-1]
    named = tuple(f"{one.file}:{one.after[0]}-{one.after[1]}" for one in finest.regions)
    has = any(one.file == case.path and one.after[0] <= case.line <= one.after[1] for one in finest.regions)
    if has and len(finest.regions) == 1:
        return "exact", named, ""
    if has and finest.is_proved:
        return "wider", named, " · ".join(finest.notes)
    if not finest.regions or not finest.is_proved or has:
        return "not sure", named or finest.files, " · ".join(finest.notes)
    return "wrong", named, " · ".join(finest.notes)


def _ddmin(case: Case, folder: Path) -> tuple[int, bool]:
    """Runs that plain ddmin takes over the same regions and files, and whether it names the planted line alone."""
    before, after = _written(folder / "b", case.before), _written(folder / "a", case.after)
    paths = sorted({*case.before, *case.after})
    changed = {path: (path,) for path in paths if case.before.get(path) != case.after.get(path)}
    edits = Edits.of(changed, before, after, changed)
    run = Runner(folder)
    try:
        good, bad = (run(tree, case.setup, case.expression) for tree in (case.before, case.after))

        def verdict(old: frozenset[str]) -> Verdict:
            files = edits.files(old, newer_base=True)
            tree = {path: text for path, text in case.after.items() if path not in files}
            tree |= {path: data.decode() for path, data in files.items() if data is not None}
            ran = run(tree, case.setup, case.expression)
            return Verdict.BAD if ran == good else Verdict.GOOD if ran.raised == bad.raised else Verdict.SKIP

        search = DeltaDebugging(tuple(sorted(edits.all)))
        runs = 0
        while not search.done and runs < _MOST_DDMIN:
            (candidate,) = search.ask(1)
            search.tell(candidate, verdict(candidate))
            runs += 1
    finally:
        run.close()
    regions = edits.regions(search.result.minimal)
    has = any(one.file == case.path and one.after[0] <= case.line <= one.after[1] for one in regions)
    return runs, has and len(search.result.minimal) == 1


def _written(folder: Path, tree: dict[str, str]) -> PackageFiles:
    digests = {}
    for path, text in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
        digests[path] = hashlib.sha256(text.encode()).hexdigest()
    return PackageFiles(folder, digests)


def _script(case: Case) -> str:
    """The repro: the expression, and the answer that it must have."""
    check = f"answer = {case.expression}\nif repr(answer)[:5000] != {case.expected!r}:\n"
    check += f"    raise RuntimeError({MESSAGE!r})\n"
    exception = case.raised or "RuntimeError"
    head = [
        "# /// script",
        '# dependencies = ["planted"]',
        "# [tool.harness.signature]",
        f'# exception = "{exception}"',
        *([] if case.raised else [f'# message = "{MESSAGE}"']),
        "# [tool.harness.subjects.planted]",
        "# ///",
    ]
    return "\n".join(head) + f"\n{case.setup}\n{check}"


def _cases(seed: int, count: int, sources: Path, folder: Path, kept: Path | None) -> list[Case]:
    """Cases of a seed, made now or read from a file of an earlier time."""
    if kept is not None and kept.is_file():
        loaded: list[Case] = pickle.loads(kept.read_bytes())  # noqa: S301 - our own file
        return loaded[:count]
    run = Runner(folder)
    trees = {package.project: _tree(package, sources) for package in PACKAGES}
    found: list[Case] = []
    number = 0
    while len(found) < count:
        package = PACKAGES[number % len(PACKAGES)]
        number += 1
        case = plant(
            f"{package.project}-{number}",
            package.module,
            trees[package.project],
            package.setup,
            list(package.expressions),
            run,
            random.Random(f"{seed}-{number}"),
        )
        if case is not None:
            found.append(case)
    run.close()
    if kept is not None:
        kept.write_bytes(pickle.dumps(found))
    return found


def _tree(package: Package, sources: Path) -> dict[str, str]:
    """The Python files of a package and of what it needs, in ASCII: positions in a text are then those of bytes."""
    tree: dict[str, str] = {}
    for project in (package.project, *package.needs):
        place = sources / f"src-{project}"
        if not place.is_dir():
            words = ["pip", "install", "--quiet", "--no-deps", "--target", str(place), project]
            subprocess.run([uv.find_uv_bin(), *words, "--python", sys.executable], check=True)
        for file in sorted(place.rglob("*.py")):
            path = file.relative_to(place).as_posix()
            if not path.startswith("bin/"):
                tree[path] = file.read_text(encoding="utf-8").encode("ascii", "backslashreplace").decode()
    return tree


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of the first cases")
    parser.add_argument("--ddmin", type=int, default=0, help="count the runs of plain ddmin for so many of the cases")
    parser.add_argument("--only", help="the one case of this name")
    parser.add_argument("--work", default=tempfile.gettempdir(), help="a folder for what is made")
    parser.add_argument("--sources", help="a folder with the packages, unpacked; downloaded to if empty")
    parser.add_argument("--kept", help="a file to keep the planted cases in")
    parser.add_argument("--out", help="a file for the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
