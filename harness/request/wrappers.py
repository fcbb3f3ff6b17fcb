"""Commands in wrappers: `uv run pytest` is run as `pytest`; what makes environments of its own is refused at once.

The packages of a run are what the harness tries, so the program of a wrapper, which would install others, can't run.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from harness.errors import UserMistake
from harness.repository.declared import read_ini, read_toml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_RUNS = ("uv", "poetry", "pdm", "pipenv", "rye")
# Options of `uv run` that don't say what is installed.
_HARMLESS = {
    *("--frozen", "--locked", "--no-sync", "--isolated", "--active", "--offline", "--exact", "--dev", "--no-progress"),
    *("-q", "--quiet", "-v", "--verbose", "-s", "--site-packages", "--no-ansi", "-n", "--no-interaction"),
}
_ENVIRONMENTS = ("nox", "tox", "hatch")


def unwrapped(command: str, project: Path | None = None) -> str:
    """Return a command without the wrapper that would choose its packages; any other command is returned as it is.

    `project` is the folder whose files name its scripts. Raises `UserMistake`, which says what to type instead.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    inner = _inner(words, command, project)
    return command if inner == words else unwrapped(shlex.join(inner), project)


def _inner(words: list[str], command: str, project: Path | None) -> list[str]:
    program, *rest = words or [""]
    if program.startswith("python") and rest[:1] == ["-m"]:
        program, *rest = rest[1:] or [""]
    if program in _ENVIRONMENTS:
        raise UserMistake(
            f"{program} makes its own environments, so {command!r} can't run with the packages of a release",
            hint=_instead(program, project),
        )
    if program == "uvx" or (program == "uv" and rest[:2] == ["tool", "run"]):
        return _without_options(rest if program == "uvx" else rest[2:], command)
    if program not in _RUNS or rest[:1] != ["run"]:
        return words
    inner = _without_options(rest[1:], command)
    scripts = _scripts(program, project)
    if inner and inner[0] in scripts:
        return [*shlex.split(scripts[inner[0]]), *inner[1:]]
    if inner and program == "uv" and inner[0].endswith(".py"):
        return ["python", *inner]
    return inner


def _without_options(words: Sequence[str], command: str) -> list[str]:
    for at, word in enumerate(words):
        if word in ("-m", "--module"):
            return ["python", "-m", *words[at + 1 :]]
        if word == "--":
            return list(words[at + 1 :])
        if not word.startswith("-"):
            return list(words[at:])
        if word not in _HARMLESS:
            raise UserMistake(
                f"{word} in {command!r} changes what is installed, which the harness chooses",
                hint="type the command without its wrapper; harness has --python, --with, --extra and --group",
            )
    raise UserMistake(f"{command!r} names no command to run")


def _scripts(program: str, project: Path | None) -> dict[str, str]:
    """Return the commands that a project's file names for `pdm run NAME` or `pipenv run NAME`."""
    if project is None or program not in ("pdm", "pipenv"):
        return {}
    if program == "pipenv":
        scripts = read_toml(project / "Pipfile").get("scripts", {})
    else:
        scripts = read_toml(project / "pyproject.toml").get("tool", {}).get("pdm", {}).get("scripts", {})
    texts = {name: script.get("cmd") if isinstance(script, dict) else script for name, script in scripts.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str) and text.strip()}


def _instead(program: str, project: Path | None) -> str:
    commands = ""
    if program == "tox" and project is not None:
        commands = read_ini(project / "tox.ini").get("testenv", "commands", fallback="")
    lines = [line.split("{posargs")[0].strip() for line in commands.splitlines()]
    known = next((line for line in lines if line and "{" not in line), "pytest")
    return f'give the command that it runs, for example --run "{known}"; --with, --extra and --group add packages'
