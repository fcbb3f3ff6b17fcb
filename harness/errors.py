"""The tree of errors: user mistakes, failures of the network, disk or cluster, and internal errors.

A failure of a probed release is an `Outcome`, never an exception. Only `harness.cli` catches these errors::

    HarnessError                 exit code
    |-- UserMistake              2   the command line or a file it names is wrong
    |   |-- UnknownProject       2   the index has no such project
    |   |-- UnknownRelease       2   the project has no such release, or it can't be tried
    |   |-- MissingProgram       2   the environment lacks the program of a command
    |   |-- BadRepro             2   the repro can't be read, or lacks its metadata
    |   |-- BadMatrix            2   the matrix file can't be read
    |   `-- BadRepository        2   a clone can't be read, or lacks a commit
    |-- NoNetwork                5   the package index can't be reached
    |   `-- IndexFault           5   the package index refuses, fails, or is something else
    |-- NoSpace                  6   the disk is full, or the store can't be written
    |-- NoWorkers              7   no worker of the cluster can run probes, or its scheduler can't be reached
    |-- Interrupted            130   Ctrl-C
    `-- HarnessFault            70   internal error

Exit codes 0 (found), 1 (not found), 3 (inconclusive) and 4 (found, but an internal error ended the search below it) are
answers, not errors.
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """Base class: one sentence, an optional hint, and an exit code.

    `hint` is a command or a sentence that says what to do next; "" if there is none.
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
    """The configured index has no project with this name."""

    def __init__(
        self, project: str, *, hint: str = "check its spelling, and the index that pip is configured for"
    ) -> None:
        super().__init__(f"no project named {project!r} on the configured package index", hint=hint)
        self.project = project


class UnknownRelease(UserMistake):
    """The project has no such release, or this interpreter can't install it."""

    def __init__(self, project: str, version: str, why: str, *, hint: str = "") -> None:
        super().__init__(f"{project} {version}: {why}", hint=hint)
        self.project = project
        self.version = version


class MissingProgram(UserMistake):
    """The program of a command is not in the environment, or would come from the user's own Python."""

    def __init__(self, message: str, program: str = "") -> None:
        super().__init__(message)
        self.program = program


class BadRepro(UserMistake):
    """A repro can't be read, or its metadata is missing or wrong."""


class BadMatrix(UserMistake):
    """A matrix file can't be read, or names something that does not exist."""


class BadRepository(UserMistake):
    """A git repository can't be read, or lacks a commit."""


class NoNetwork(HarnessError):
    """The package index can't be reached."""

    exit_code = 5


class IndexFault(NoNetwork):
    """The package index refuses, fails, or sends something other than a list of releases."""


class NoSpace(HarnessError):
    """The disk is full, or a folder can't be written."""

    exit_code = 6


class NoWorkers(HarnessError):
    """The scheduler can't be reached, or no worker matches this machine."""

    exit_code = 7


class Interrupted(HarnessError):
    """Ctrl-C. Finished observations are kept."""

    exit_code = 130


class HarnessFault(HarnessError):
    """An internal error, and no answer; please report it."""

    exit_code = 70
