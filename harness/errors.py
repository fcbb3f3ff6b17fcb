"""The one tree of errors: mistakes of the user, failures of the surroundings, and faults of ours.

What a probed release does wrong is never an exception but an `Outcome`. Only `harness.cli` catches these.

    HarnessError                 exit code
    |-- UserMistake              2   the command or a file it names is wrong
    |   |-- UnknownProject       2   the index has no such project
    |   |-- UnknownRelease       2   the project has no such release, or none that can be tried
    |   |-- MissingProgram       2   the environment lacks the program of a command
    |   |-- BadRepro             2   the repro can't be read, or lacks its metadata
    |   |-- BadMatrix            2   the matrix file can't be read
    |   `-- BadRepository        2   a clone can't be read, or lacks a commit
    |-- NoNetwork                5   the package index can't be reached
    |   `-- IndexFault           5   what answers there refuses, fails, or is no package index
    |-- NoSpace                  6   the disk is full, or the store can't be written
    |-- NoWorkers              7   no worker of the cluster can answer, or its scheduler can't be reached
    |-- Interrupted            130   Ctrl-C: a normal end
    `-- HarnessFault            70   a mistake of the harness itself

Exit codes 0 (found), 1 (not found), 3 (inconclusive) are answers, not errors.
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """Base of all: one sentence that says what to do, and an exit code.

    `hint` is a command line or a second sentence that leads on; empty if there is none.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserMistake(HarnessError):
    """The command line, or a file that it names, is wrong."""

    exit_code = 2


class UnknownProject(UserMistake):
    """The configured index knows no project of this name."""

    def __init__(self, project: str, *, hint: str = "") -> None:
        super().__init__(f"no project named {project!r} on the configured package index", hint=hint)
        self.project = project


class UnknownRelease(UserMistake):
    """The project has no such release, or none that this interpreter can install."""

    def __init__(self, project: str, version: str, why: str, *, hint: str = "") -> None:
        super().__init__(f"{project} {version}: {why}", hint=hint)
        self.project = project
        self.version = version


class MissingProgram(UserMistake):
    """The program that a command starts is not in the environment, or would be one of the user's own Python."""

    def __init__(self, message: str, program: str = "") -> None:
        super().__init__(message)
        self.program = program


class BadRepro(UserMistake):
    """A repro can't be read, or its metadata is missing or wrong."""


class BadMatrix(UserMistake):
    """A matrix file can't be read, or names what does not exist."""


class BadRepository(UserMistake):
    """A git repository can't be read, or lacks the commit that is asked for."""


class NoNetwork(HarnessError):
    """The package index can't be reached."""

    exit_code = 5


class IndexFault(NoNetwork):
    """Something answers in place of the package index, but refuses, fails, or sends no list of releases."""


class NoSpace(HarnessError):
    """The disk is full, or a folder can't be written."""

    exit_code = 6


class NoWorkers(HarnessError):
    """The scheduler can't be reached, no worker is like this machine, or those that are have gone."""

    exit_code = 7


class Interrupted(HarnessError):
    """Ctrl-C. Every finished observation is kept."""

    exit_code = 130


class HarnessFault(HarnessError):
    """A mistake of the harness itself; please report it."""

    exit_code = 70
