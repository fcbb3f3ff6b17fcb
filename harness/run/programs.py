"""What is wrong with a command itself: a program that the environment lacks, no tests, a wrong path.

A `pytest` from the user's PATH would run with the user's packages instead of the probed ones. A failure that comes from
a wrong command would be found in every release or in none, if the harness took it for the bug.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from harness.model import Outcome, TestOutcome
from harness.model.observation import WHOLE_RUN
from harness.run.commands import NO_TESTS, is_python, program_at, recognised
from harness.run.locks import UNFINISHED, claimed_folder, put_in_place
from harness.run.result import Ran

# Tools that are Python packages, even if a file with this name on the user's PATH is something else.
_SAME_NAME = "accelerate coverage deepspeed hatch ipython jupyter mypy nox pdm poetry pytest ray tox trl"
_PYTHON_TOOLS = {
    **{name: name for name in _SAME_NAME.split()},
    "huggingface-cli": "huggingface-hub",
    "py.test": "pytest",
    "torchrun": "torch",
    "transformers-cli": "transformers",
}
_SYSTEM = frozenset({"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"})
_PYTHON_NAME = re.compile(r"(python|pypy)[\d.]*|pip[\d.]*")
_SHEBANG = re.compile(rb"#![^\n]*(python|pypy)|#!/bin/sh\n'''exec'")
# Part of Debian and written in Python. Libraries call it, and it uses no packages.
_HARMLESS = frozenset({"lsb_release"})
_LACKING = """\
echo "${0##*/}: command not found in the environment of the probe; add the package that has it with --with NAME" >&2
exit 127
"""
_LACKS = ".stub"  # what all stubs of programs without another one are links to
# Programs that run another one with the packages of a project, in Makefiles and scripts, too; and their options that
# don't say what is installed.
WRAPPERS = ("uv", "poetry", "pdm", "pipenv", "rye")
HARMLESS_OPTIONS = {
    *("--frozen", "--locked", "--no-sync", "--isolated", "--active", "--offline", "--exact", "--dev", "--no-progress"),
    *("-q", "--quiet", "-v", "--verbose", "-s", "--site-packages", "--no-ansi", "-n", "--no-interaction"),
}
# The packages of a run are chosen, so of `uv run pytest` only pytest is left.
_WRAPPER_STUB = """#!/bin/sh
if [ "$1" = run ]; then
    while shift; do
        case "$1" in
            HARMLESS) ;;
            --) shift; exec "$@" ;;
            -m | --module) exec python "$@" ;;
            -*) echo "${0##*/} run $1 changes what is installed, which the harness chooses" >&2; exit 127 ;;
            *.py) exec python "$@" ;;
            *) exec "$@" ;;
        esac
    done
fi
""".replace("HARMLESS", " | ".join(sorted(HARMLESS_OPTIONS)))
_CHANGES = re.compile(r"^(?P<name>[a-z]+ run -\S+ changes what is installed, which the harness chooses)$", re.MULTILINE)
_MAKE_127 = re.compile(r"^g?make: \*\*\* .*Error 127$", re.MULTILINE)
_MAKE_NOT_FOUND = re.compile(r"^g?make(?:\[\d+\])?: (?P<name>[^\s:]+): No such file or directory$", re.MULTILINE)
_NOT_FOUND = re.compile(r"(?:^|: )(?P<name>[^\s:]+): (?:command )?not found", re.MULTILINE)
_NO_TOOL = re.compile(r"python[\d.]*: No module named (?P<name>[\w.]+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>\w+)[\w.]*'")
_NO_FILE = re.compile(r"python[\d.]*: can't open file '(?P<name>[^'\n]+)'")
# What task runners say of a task that the project does not have.
_NO_TASK = re.compile(
    r"^(?:make: \*\*\* |error: )?(?P<name>No rule to make target '[^'\n]*'|No targets specified and no makefile found"
    r"|Justfile does not contain recipe [^\n]*|No justfile found|No idea what '[^'\n]+' is!"
    r"|Can't find any collection named '[^'\n]+'!)",
    re.MULTILINE,
)
_SYNTAX = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)\n(?:(?!\s*(?:E\s+)?File ")[^\n]*\n){0,4}?(?:E\s+)?'
    r"(?P<error>(?:Syntax|Indentation|Tab)Error: [^\n]*)"
)
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|getaddrinfo failed|Failed to resolve"
    r"|Network is unreachable|We couldn't connect to 'https?://|LocalEntryNotFoundError|ENETUNREACH"
)
_RAN_NO_TESTS = re.compile(r"no tests ran in|^Ran 0 tests|^NO TESTS RAN", re.MULTILINE)
_PYTEST_USAGE = re.compile(r"^ERROR: usage:.*", re.MULTILINE)
_NO_TEST = re.compile(r"^ERROR: (?P<file>file or directory )?not found: (?P<name>.*)", re.MULTILINE)


def program_of(argv: Sequence[str]) -> str:
    """Return the program that a command starts, as written; "" if there is none."""
    return "".join(argv[program_at(argv) :][:1])


def missing_program(
    argv: Sequence[str], python: Path, path: str, invoked_from: Path, beside: Sequence[Path] = ()
) -> str:
    """Return in one sentence why a command can't run in the environment of `python`, "" if it can.

    `path` is the user's PATH; `invoked_from` is the base of relative program paths; `beside` are further folders with
    programs below `bin`.
    """
    program, own = program_of(argv), python.parent
    if os.sep in program:
        return _unfit_script(invoked_from / program, own)
    if not program or any((folder / program).exists() for folder in (own, *(folder / "bin" for folder in beside))):
        return ""
    executable = shutil.which(program, path=path)
    if (
        program in _PYTHON_TOOLS
        or _PYTHON_NAME.fullmatch(program)
        or (executable is not None and _is_python_tool(executable))
    ):
        if is_python(program):
            return f"{program} is not the Python of the environment; write python, or choose it with --python"
        return f"{program} is not in the environment; add --with {_PYTHON_TOOLS.get(program, program)}"
    if executable is None and program != "env":
        return f"{program} is neither in the environment nor on the PATH; --with adds the package that has it"
    return ""


def stub_folder(parent: Path, python: Path, path: str) -> Path:
    """Return a folder of stubs that is on the PATH after the environment's programs and before the user's.

    For each of the user's Python tools that the environment lacks, the stub says so and exits with 127. Of `uv run` and
    its like it runs the command alone. This also works if a shell or another program starts it. The folder is below
    `parent`, and made now if it is missing or was changed: hundreds of links take longer than a short run. Raises
    `OSError`.
    """
    stubs = _stubs(python.parent, path)
    folder = parent / hashlib.sha256(json.dumps(stubs).encode()).hexdigest()[:16]
    if _contents(folder) == stubs:
        return folder
    parent.mkdir(parents=True, exist_ok=True)
    with claimed_folder(parent, UNFINISHED) as spare:
        fresh = spare / "stubs"
        fresh.mkdir()
        for name, content in stubs.items():
            if content.startswith("#!"):
                (fresh / name).write_text(content, encoding="utf-8")
                (fresh / name).chmod(0o755)
            else:
                (fresh / name).symlink_to(content)
        put_in_place(folder, fresh)
    return folder


def _stubs(own: Path, path: str) -> dict[str, str]:
    """The stubs by name, each its text, or what it is a link to; `own` is the folder of the environment's programs."""
    stubs = {_LACKS: f"#!/bin/sh\n{_LACKING}"}
    for name, real in user_tools(path):
        if os.path.exists(f"{own}/{name}"):  # noqa: PTH110 - for speed
            continue
        if name in WRAPPERS:
            stubs[name] = _WRAPPER_STUB + (f'exec {shlex.quote(real)} "$@"\n' if real else _LACKING)
        else:
            stubs[name] = real or _LACKS
    return stubs


def _contents(folder: Path) -> dict[str, str]:
    """What is in a folder of stubs, as in `_stubs`; empty if there is none."""
    with contextlib.suppress(OSError, ValueError), os.scandir(folder) as entries:
        return {
            entry.name: os.readlink(entry.path) if entry.is_symlink() else Path(entry.path).read_text(encoding="utf-8")  # noqa: PTH115 - for speed
            for entry in entries
        }
    return {}


@lru_cache(maxsize=8)
def user_tools(path: str) -> tuple[tuple[str, str], ...]:
    """Return the Python tools on a PATH, each with the first program of that name that is no Python tool, or "".

    The programs that run others with the packages of a project are among them, also if they are on no PATH.
    """
    first: dict[str, str] = {}
    hidden: set[str] = set()
    for folder in dict.fromkeys(path.split(os.pathsep)):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name) if folder else []
        except OSError:
            continue
        for entry in entries:
            if entry.name in first or entry.name.startswith("_") or not os.access(entry.path, os.X_OK):
                continue
            if entry.name in _PYTHON_TOOLS or _PYTHON_NAME.fullmatch(entry.name) or _is_python_tool(entry.path):
                hidden.add(entry.name)
            else:
                first[entry.name] = entry.path
    return tuple((name, first.get(name, "")) for name in sorted(hidden.union(WRAPPERS)))


def _is_python_tool(file: str) -> bool:
    """Whether a file is a Python script, in a virtual environment, or a shim such as pyenv's."""
    folder, _, name = file.rpartition("/")
    if name in _HARMLESS:
        return False
    head = _head(file)
    if head.startswith(b"#!") and _SHEBANG.match(head):
        return True
    signs = ("../pyvenv.cfg", *(("python", "python3") if head.startswith(b"#!") else ()))
    return folder not in _SYSTEM and any(Path(folder, sign).exists() for sign in signs)


def _unfit_script(script: Path, own: Path) -> str:
    """Why a script can't run by its path, "" if it can: its first line may name another Python."""
    line = _head(str(script)).partition(b"\n")[0].decode("utf-8", "replace")
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    if words and is_python(words[0]) and Path(words[0]).parent != own:
        return f"{script} runs with {words[0]}, not with the environment's Python; write python {script.name}"
    return ""


def _head(file: str) -> bytes:
    try:
        with open(file, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
            return opened.read(200) or b""
    except OSError:
        return b""


def mistake_in(ran: Ran, argv: Sequence[str], invoked_from: Path) -> str:
    """Return one sentence about what is wrong with the command, "" if nothing is.

    `argv` is empty for a script, which can only have a syntax error, or import the user's own project, which is not
    installed in the environment.
    """
    if ran.outcome not in (Outcome.EXITED, Outcome.RAISED, Outcome.NO_REPORT):
        return ""
    own = _syntax_error(ran) or _own_project(ran, invoked_from)
    if own or not argv:
        return own
    if ran.exit_code == 127 or (ran.exit_code == 2 and _MAKE_127.search(ran.tail)):
        if changes := _last(_CHANGES, ran.tail):
            return changes
        if name := _last(_NOT_FOUND, ran.tail) or _last(_MAKE_NOT_FOUND, ran.tail):
            return f"{name}: command not found; if a Python package provides it, add that with --with"
    if name := _last(_NO_TOOL, ran.tail):
        return f"python -m {name}: no such module in the environment; add --with {name.split('.')[0]}"
    if problem := _last(_NO_TASK, ran.tail):
        return problem
    if ran.exit_code == 2 and (name := _last(_NO_FILE, ran.tail)):
        return f"no such file: {Path(name).name}"
    return _test_tool(ran, argv)


def _syntax_error(ran: Ran) -> str:
    """Say that a file of the user's own is not Python; "" if none is, or if there are results of other tests."""
    matches = list(_SYNTAX.finditer(ran.tail))
    if not matches or any(test.outcome is not TestOutcome.ERROR for test in ran.tests):
        return ""
    last = matches[-1]
    if any(part in last["file"] for part in ("/site-packages/", "/lib/python3")):
        return ""
    return f"{last['error'].strip()} ({Path(last['file']).name}, line {last['line']})"


def needs_network(ran: Ran) -> str:
    """Say that a run in a sandbox without network needs it; "" if it does not. A model hub says so in many words."""
    if ran.outcome not in (Outcome.EXITED, Outcome.RAISED) or not _NO_NETWORK.search(ran.tail):
        return ""
    return "it needs the network, which runs don't have in the sandbox; --network allows it"


def _own_project(ran: Ran, invoked_from: Path) -> str:
    """Say that the run imports the user's own project, which is not installed in the environment; "" if it does not."""
    names = [match["name"] for match in _NO_MODULE.finditer(ran.tail)]
    for name in dict.fromkeys(reversed(names)):
        for folder in (invoked_from, invoked_from / "src"):
            if (folder / name).is_dir() or (folder / f"{name}.py").is_file():
                return f"No module named {name!r}: {folder / name} is not installed in the environment"
    return ""


def _test_tool(ran: Ran, argv: Sequence[str]) -> str:
    command = recognised(argv)
    if any(test.id != WHOLE_RUN for test in ran.tests):
        return ""
    if ran.exit_code in (0, 5) and (command is not None or _RAN_NO_TESTS.search(ran.tail)):
        return NO_TESTS
    if ran.exit_code == 4 and (missing := _NO_TEST.search(ran.tail)):
        return f"no such {'file' if missing['file'] else 'test'}: {Path(missing['name']).name}"
    if ran.exit_code == 4 and (usage := _PYTEST_USAGE.search(ran.tail)):
        return f"pytest usage error: {usage[0].removeprefix('ERROR: ').strip()}"
    return ""


def _last(pattern: re.Pattern[str], text: str) -> str:
    return next((match["name"] for match in reversed(list(pattern.finditer(text)))), "")
