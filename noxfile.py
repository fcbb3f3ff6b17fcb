"""The tasks of this repository: `nox` runs the checks, `nox -l` lists all sessions.

`nox -s matrix` runs every cell of `matrices/*.toml`; `nox -l -s matrix` lists them; `nox -s "matrix(NAME)"` runs one;
`-k` and `-t` select cells: `nox -s matrix -k "transformers_4_53_0 and not case_lora"`. A cell's environment stays in
`.nox/` for inspection. Look-ups in the package index are cached for an hour.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import nox
import nox.command

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # harness.matrix needs only what nox depends on

from harness.atomic import write_whole  # noqa: E402
from harness.errors import BadMatrix  # noqa: E402
from harness.matrix import read_matrix  # noqa: E402

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["tests", "lint", "types"]
nox.options.reuse_venv = "yes"
nox.options.default_venv_backend = "uv|virtualenv"

VERDICTS = ("good", "bad", "skip")
RESULTS = "results"


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; arguments after -- go to pytest."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "auto"]))


_FIND = "import sys; from harness.environment import *; print(find_interpreter(sys.argv[1], Uv(PipSettings())).path)"
_OF_PROCESSES = (
    *(f"tests/run/test_{name}.py" for name in ("forking", "guard", "runner", "child_report")),
    "tests/probing/test_warm.py",
    "tests/scenarios/test_scenarios.py",
)
# Of the scenarios, those in which the Python counts that runs them, or forks: each kind of file, of lines and of fork.
_ROWS = "not test_scenarios or line_search or forks or (regions and (compiled or lanes or import))"


@nox.session(default=False)
def pythons(session: nox.Session) -> None:
    """Run the tests of processes, forks and lines on the newer Pythons of this machine that the classifiers name."""
    session.install("-e", ".[test]")
    for minor in ("3.12", "3.13"):
        found = session.run("python", "-c", _FIND, minor, silent=True, success_codes=[0, 1])
        path = Path(str(found).strip())
        if not path.is_file():
            session.log(f"no Python {minor} on this machine")
            continue
        with tempfile.TemporaryDirectory() as folder:
            session.run("uv", "venv", "--quiet", "--clear", "--python", str(path), folder)
            python = str(Path(folder, "bin", "python"))
            session.run("uv", "pip", "install", "--quiet", "--python", python, "-e", ".[test]")
            session.run(python, "-m", "pytest", "-q", "-n", "auto", *_OF_PROCESSES, "-k", _ROWS)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and import layers."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation in docs/_build/html; broken links and references are errors."""
    session.install("-e", ".[docs]")
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "-b", "html", "docs", "docs/_build/html")


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def e2e(session: nox.Session) -> None:
    """Bisect real releases (half an hour, some GB); `-- quick` runs only the shortest."""
    session.install("-e", ".[test]")
    chosen = ("-k", "quick") if "quick" in session.posargs else ()
    rest = [word for word in session.posargs if word != "quick"]
    session.run("python", "-m", "pytest", "tests/e2e/real_releases.py", "-v", *chosen, *rest)


@nox.session(default=False)
def docs_commands(session: nox.Session) -> None:
    """Run the commands of README, tutorial and guides; `-- --minutes --installing` also those that take long."""
    session.install("-e", ".[test]")
    session.run("python", "tests/e2e/documented_commands.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmark speed against loops with pip and uv; `-- culprits` asks about regressions kept aside; --help helps."""
    session.install("-e", ".[test]")
    culprits, words = "culprits" in session.posargs, [word for word in session.posargs if word != "culprits"]
    session.run("python", f"benchmarks/{'regressions' if culprits else 'bisect_speed'}.py", *words)


@nox.session(default=False)
def truth(session: nox.Session) -> None:
    """Bisect the known regressions of `repros/` over real releases (two hours, some GB); `-- WORDS` chooses."""
    session.install("-e", ".[test]")
    session.run("python", "benchmarks/truth.py", *session.posargs)


@nox.session
def bench_match(session: nox.Session) -> None:
    """Look tracebacks of other releases up in the catalogue; `-- --folder` takes what `truth -- --folder` left."""
    session.install("-e", ".")
    session.run("python", "benchmarks/match.py", *session.posargs)


@nox.session
def bench_flaky(session: nox.Session) -> None:
    """Benchmark searches for flaky bugs on simulated histories; `-- --help` lists options."""
    session.install("-e", ".", "git-bayesect>=1.2", "scipy", "numpy")
    session.run("python", "benchmarks/flaky_search.py", *session.posargs)


@nox.session
def bench_lines(session: nox.Session) -> None:
    """Benchmark the search for lines on planted regressions (all 200 take hours; `-- --cases 20` is shorter)."""
    session.install("-e", ".[test]")
    session.run("python", "benchmarks/planted_lines.py", *session.posargs)


@nox.session
def bench_sets(session: nox.Session) -> None:
    """Benchmark the searches over sets on random puzzles; `-- --help` lists options."""
    session.install("-e", ".")
    session.run("python", "benchmarks/set_searches.py", *session.posargs)


@nox.session
def bench_packages(session: nox.Session) -> None:
    """Benchmark the search for packages on planted upgrades, through the real command; `-- --help` lists options."""
    session.install("-e", ".[test]")
    session.run("python", "benchmarks/package_search.py", *session.posargs)


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz the readers of untrusted text for ten minutes; `-- --minutes 3 repro` is shorter, for one reader."""
    session.install("-e", ".[fuzz]")
    session.run("python", "tests/fuzz/coverage_guided.py", *session.posargs)


@nox.session
def bench_cluster(session: nox.Session) -> None:
    """Benchmark four Dask workers against one; `-- --help` lists options."""
    session.install("-e", ".[test]")
    session.run("python", "benchmarks/cluster_speed.py", *session.posargs)


@nox.session
def harness(session: nox.Session) -> None:
    """Make the environment that starts the cells of a matrix."""
    session.install("-e", ".")
    python = Path(session.bin_paths[0]) / "python" if session.bin_paths else Path(sys.executable)  # --no-venv
    _python_file(session).write_text(str(python), encoding="utf-8")


class Row(NamedTuple):
    """A cell for nox: its name, the arguments of `harness probe`, and its tags."""

    name: str
    arguments: tuple[str, ...]
    tags: tuple[str, ...]


def _rows() -> tuple[dict[str, Row], dict[str, BadMatrix]]:
    """All cells by session id, and the errors of broken files, which must not stop `nox -s tests`."""
    rows: dict[str, Row] = {}
    broken: dict[str, BadMatrix] = {}
    for path in sorted((HERE / "matrices").glob("*.toml")):
        try:
            rows.update((f"{path.stem}:{row.name}", row) for row in _rows_of(path))
        except BadMatrix as error:
            broken[path.stem] = error
    return rows, broken


def _rows_of(path: Path) -> list[Row]:
    read = read_matrix(path)
    if not read.needs_index:
        return [Row(cell.name, cell.arguments, cell.tags) for cell in read.cells]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    kept = CACHE / "cells" / f"{path.stem}-{digest}.json"
    is_fresh = kept.exists() and time.time() - kept.stat().st_mtime < FRESH_S
    if not is_fresh and MAY_ASK:
        listed = _listed(path)
        if isinstance(listed, str):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, listed)
        elif not kept.exists():
            raise listed
    if not kept.exists():
        raise BadMatrix(f"{path}: nox -l and nox -s matrix look up its cells in the package index")
    document = json.loads(kept.read_text(encoding="utf-8"))
    return [Row(cell["name"], tuple(cell["arguments"]), tuple(cell["tags"])) for cell in document["cells"]]


def _listed(path: Path) -> str | BadMatrix:
    """The output of `harness matrix --list` for a file: JSON, or an error."""
    named = CACHE / PYTHON_FILE
    python = Path(named.read_text(encoding="utf-8")) if named.exists() else Path(sys.executable)
    words = [python if python.exists() else sys.executable, "-m", "harness", "matrix", path, "--list", "--json"]
    ended = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return ended.stdout
    said = " ".join(line.strip().removeprefix("error: ") for line in ended.stderr.splitlines() if line.strip())
    if "ModuleNotFoundError" in said:
        said = "run nox -s harness first; it makes the environment that looks up the cells"
    return BadMatrix(f"{path}: {said}" if str(path) not in said else said)


CACHE = Path(os.environ.get("NOX_ENVDIR", HERE / ".nox")) / ".cache"
PYTHON_FILE = "harness-python.txt"
FRESH_S = 3600.0
# A plain `nox`, `nox -l` or `nox -s tests` must not wait for the network, and a list of sessions be one of cells.
WORDS = (*sys.argv[1:], os.environ.get("NOXSESSION", ""))
SELECTING = ("-k", "--keywords", "-t", "--tags")
MAY_ASK = any("matrix" in word or word.startswith(SELECTING) for word in WORDS)
ROWS, BROKEN = _rows()
PARAMETERS = [nox.param(name, id=name, tags=list(row.tags)) for name, row in ROWS.items()]
PARAMETERS += [nox.param(name, id=name) for name in BROKEN]
RAN: set[str] = set()  # the matrices of which cells ran
if "matrix" in WORDS and not any(word.startswith((*SELECTING, "-l", "--list")) for word in WORDS):
    print(f"{len(ROWS)} cells, with an environment each; -k and -t select some of them", file=sys.stderr)


def matrix(session: nox.Session, cell: str) -> None:
    """Run the repro of each cell and show the verdict; bad is an answer, not a failure; `-l -s matrix` lists them."""
    if cell in BROKEN:
        session.error(str(BROKEN[cell]))
    python = _python_file(session).read_text(encoding="utf-8")
    words = [python, "-m", "harness", "probe", *ROWS[cell].arguments, "--repeat", "--results", RESULTS]
    if session.virtualenv.is_sandboxed:  # not --no-venv, where the harness uses its own cache
        words += ["--environment", session.virtualenv.location]
    # 0, 1 and 3 are good, bad and skip; anything else is an error.
    said: Any = session.run(*words, external=True, silent=True, stderr=None, success_codes=[0, 1, 3])
    line = next(iter(str(said).splitlines()), "")
    if not line.startswith(VERDICTS):
        session.error(f"no verdict: {line or 'the probe printed nothing'}")
    session.log(line)
    if session.virtualenv.is_sandboxed:
        session.log(f"its environment: {session.virtualenv.bin}/python")
    RAN.add(cell.partition(":")[0])
    try:
        session.notify("matrix_report")
    except ValueError:  # nox --parallel runs each cell in its own nox
        session.log("nox -s matrix_report shows the table")


nox.session(requires=["harness"])(nox.parametrize("cell", PARAMETERS)(matrix) if MAY_ASK else matrix)


@nox.session(venv_backend="none", default=False, requires=["harness"])
def matrix_report(session: nox.Session) -> None:
    """Show a table and write a page for each matrix; runs automatically after the cells, for their matrices."""
    python = _python_file(session).read_text(encoding="utf-8")
    for stem in sorted(RAN or {name.partition(":")[0] for name in ROWS}):
        path = Path("matrices") / f"{stem}.toml"
        session.run(python, "-m", "harness", "matrix", str(path), "--show", "--results", RESULTS, external=True)
    for error in BROKEN.values():
        session.warn(str(error))


TEMPLATES = HERE / "harness" / "report" / "templates"
ASSETS = (".css", ".js")
# A standalone page forbids external resources; with shared assets it must allow them.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n')


@nox.session(default=False)
def showcase(session: nox.Session) -> None:
    """Copy the newest report, history and matrix to results/showcase/; `-- ID` chooses another report."""
    session.install("-e", ".")
    show = Path(RESULTS) / "showcase"
    show.mkdir(parents=True, exist_ok=True)
    for style, suffix in (("markdown", "md"), ("html", "html")):
        output = str(show / f"report.{suffix}")
        session.run(
            "python", "-m", "harness", "report", *session.posargs, "--format", style, "--output", output
        )  # fmt: skip
    session.run("python", "-m", "harness", "matrix", "matrices/transformers.toml", "--show")
    shutil.copy(Path(RESULTS) / "matrices" / "transformers.html", show / "matrix.html")
    histories = sorted((Path(RESULTS) / "reports").glob("history-*.html"), key=lambda page: page.stat().st_mtime)
    if histories:
        shutil.copy(histories[-1], show / "history.html")
    for page in show.glob("*.html"):
        share_assets(page)


@nox.session(default=False)
def picture(session: nox.Session) -> None:
    """Print the session of README.md from its record docs/session.json, and draw it; `-- --run` makes a new record."""
    session.install("-e", ".")
    session.run("python", str(HERE / "docs" / "picture.py"), *session.posargs)


def share_assets(page: Path) -> None:
    """Link a page of this repository to the styles and scripts of the templates, instead of having a copy of each."""
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    shared = {
        asset: asset.read_text(encoding="utf-8").strip() for asset in TEMPLATES.iterdir() if asset.suffix in ASSETS
    }
    links = []
    for asset in sorted((a for a, content in shared.items() if content in text), key=lambda a: text.index(shared[a])):
        text = text.replace(shared[asset], "", 1)
        address = os.path.relpath(asset, page.parent.absolute())
        is_style = asset.suffix == ".css"
        links.append(
            f'<link rel="stylesheet" href="{address}">' if is_style else f'<script src="{address}" defer></script>'
        )
    page.write_text(text.replace("</head>", "\n".join([*links, "</head>"]), 1), encoding="utf-8")


def _python_file(session: nox.Session) -> Path:
    return session.cache_dir / PYTHON_FILE


# The nightly job: one session for each step of .github/workflows/nightly-gpu.yml (see docs/guides/nightly.md).
BRANCH = "nightly-results"
SITE = HERE / "site"
LOCKED = HERE / ".github" / "locked.txt"
MOST_PACKAGES = 25  # an installation stays small enough to try it with uvx


def _install_locked(session: nox.Session) -> None:
    """Install the harness for a job that holds a token: only with the files that .github/locked.txt names."""
    session.install("--require-hashes", "--only-binary", ":all:", "-r", str(LOCKED))
    session.install("--no-deps", "--no-build-isolation", "-e", ".")


@nox.session(default=False)
def wheel(session: nox.Session) -> None:
    """Build what is uploaded to an index, in dist/, and run it as pip and uvx install it."""
    _install_locked(session)
    shutil.rmtree(HERE / "dist", ignore_errors=True)
    session.run("python", "-m", "hatchling", "build", "-d", "dist")
    (built,) = map(str, (HERE / "dist").glob("*.whl"))
    bare = Path(session.create_tmp(), "bare")
    session.run("python", "-m", "venv", "--clear", str(bare))
    began = time.monotonic()
    session.run(str(bare / "bin" / "pip"), "install", "--quiet", built, external=True)
    took = time.monotonic() - began
    installed = bare.glob("lib/*/site-packages/*.dist-info")
    count = sum(not path.name.startswith(("pip-2", "setuptools-")) for path in installed)
    session.log(f"pip installed {count} packages in {took:.0f} s")
    if count >= MOST_PACKAGES:
        session.error(f"{count} packages; it must be fewer than {MOST_PACKAGES}")
    session.run(str(bare / "bin" / "regression-harness"), "--version", external=True)
    session.run("uvx", "--from", built, "regression-harness", "doctor")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Write .github/locked.txt again, with the newest versions."""
    session.install("uv")
    words = ("--universal", "--python-version", "3.11", "--generate-hashes", "--only-binary", ":all:", "--upgrade")
    words += ("--custom-compile-command", "nox -s lock", "--output-file", str(LOCKED.relative_to(HERE)))
    session.run("uv", "pip", "compile", "--quiet", *words, ".github/locked.in", "pyproject.toml")


def _kept() -> Path:
    """The folder for nights: the results branch if it is checked out, else the normal results folder."""
    return HERE / BRANCH if (HERE / BRANCH / ".git").exists() else HERE / RESULTS


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Run a night of matrices/nightly.toml, or of the files after --; other arguments go to `harness nightly`."""
    _install_locked(session)
    files = [word for word in session.posargs if word.endswith(".toml")]
    rest = [word for word in session.posargs if word not in files]
    failed = []
    for file in files or ["matrices/nightly.toml"]:
        try:
            session.run("python", "-m", "harness", "nightly", file, "--results", str(_kept()), *rest)
        except nox.command.CommandFailed:
            failed.append(file)
    if failed:
        session.error(f"something new broke or could not be judged: {', '.join(failed)}")


@nox.session(default=False)
def nightly_issues(session: nox.Session) -> None:
    """Update one issue per cause in this repository; `-- --dry-run` changes nothing."""
    _install_locked(session)
    session.run("python", "-m", "harness", "issues", "--results", str(_kept()), *session.posargs)


@nox.session(venv_backend="none", default=False)
def nightly_open(session: nox.Session) -> None:
    """Check out the results branch beside the code; create it if it does not exist."""
    folder = HERE / BRANCH
    if (folder / ".git").exists():
        session.log(f"{BRANCH} is already checked out")
        return
    session.run("git", "worktree", "prune", external=True)
    there = session.run("git", "ls-remote", "--heads", "origin", BRANCH, external=True, silent=True, stderr=None)
    if there:
        remote = f"refs/remotes/origin/{BRANCH}"
        session.run("git", "fetch", "--depth=1", "origin", f"+refs/heads/{BRANCH}:{remote}", external=True)
        session.run("git", "worktree", "add", "-B", BRANCH, str(folder), remote, external=True)
    else:
        session.run("git", "worktree", "add", "--detach", str(folder), external=True)
        session.run("git", "-C", str(folder), "checkout", "--orphan", BRANCH, external=True)
        session.run("git", "-C", str(folder), "rm", "-rfq", ".", external=True)


@nox.session(venv_backend="none", default=False)
def nightly_take(session: nox.Session) -> None:
    """Take the results of a night that ran elsewhere, from the folder after --, into the results branch.

    What the night ran may have changed any of them, so links and hidden files, such as .git, are left out.
    """
    (folder,) = map(Path, session.posargs)
    taken = 0
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        parents = [folder.joinpath(*inside.parts[:depth]) for depth in range(1, len(inside.parts) + 1)]
        if path.is_file() and not any(each.is_symlink() or each.name.startswith(".") for each in parents):
            target = HERE / BRANCH / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            taken += 1
    session.log(f"{taken} files taken")


@nox.session(venv_backend="none", default=False)
def nightly_keep(session: nox.Session) -> None:
    """Commit the results of the night to the results branch, and push it."""
    folder = str(HERE / BRANCH)
    who = ("-c", "user.name=harness nightly", "-c", "user.email=harness-nightly@users.noreply.github.com")
    session.run("git", "-C", folder, "add", "--all", external=True)
    if session.run("git", "-C", folder, "status", "--porcelain", external=True, silent=True):
        session.run("git", *who, "-C", folder, "commit", "--quiet", "-m", "Results of a night", external=True)
    session.run("git", "push", "origin", BRANCH, external=True)


@nox.session(venv_backend="none", default=False)
def nightly_pages(session: nox.Session) -> None:
    """Collect the pages of all nights in site/; nothing else is published."""
    shutil.rmtree(SITE, ignore_errors=True)
    pages = [page for kind in ("nights", "reports", "matrices") for page in sorted((_kept() / kind).glob("*.html"))]
    for page in pages:
        target = SITE / page.relative_to(_kept())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, target)
    SITE.mkdir(exist_ok=True)
    (SITE / "index.html").write_text(
        '<meta http-equiv="refresh" content="0; url=nights/index.html">\n', encoding="utf-8"
    )
    session.log(f"{len(pages)} pages in {SITE.name}")
