"""A question as a user asks it: what runs, two ends where the verdict differs, and how to search between them."""

from __future__ import annotations

from attrs import field, fields, frozen

from harness.arguments import check_between, check_fields
from harness.errors import UserMistake
from harness.model.culprit import Level
from harness.request.commands import ChosenProject


@frozen
class Policy:
    """How a question is searched, whatever its ends are.

    `find_fix` looks for what fixed it: the good end is the newer one. `prereleases` tries pre-releases too. `confirm`
    is how often both sides of the change are run again (None: until the answer is certain enough). `flaky` says that
    one run does not tell good from bad; `confidence` is the probability that a candidate needs to be named.
    `trust_ends` says that there is a change and that the bug never shows before it. `fork` allows forked runs in the
    search for lines. `git` is the repository for the commit level: a clone, a URL, "auto", or "" for none. `time_s` is
    the time limit of the search below the release, in seconds. `ask` lets a person judge each run. `made` searches the
    releases that write what the repro reads. Raises `UserMistake` for a wrong value.
    """

    find_fix: bool = False
    prereleases: bool = False
    confirm: int | None = None
    flaky: bool = False
    confidence: float = 0.99
    trust_ends: bool = False
    fork: bool = True
    git: str = ""
    time_s: float = 600.0
    ask: bool = False
    made: bool = False

    def __attrs_post_init__(self) -> None:
        check_fields(self)
        check_between("Policy(confirm=...)", self.confirm, 0, 20)
        check_between("Policy(confidence=...)", self.confidence, 0.5, 0.999999)
        check_between("Policy(time_s=...)", self.time_s, 0)


def _read_level(level: Level | str | None) -> Level | None:
    if level is None or isinstance(level, Level):
        return level
    try:
        return Level(level)
    except ValueError as error:
        known = ", ".join(one.value for one in Level)
        raise UserMistake(f"depth takes a level, not {level!r}", hint=f"the levels are {known}") from error


@frozen
class Question:
    """What broke it? The question of `harness bisect`, with the values of its options.

    `subject` is the package to look at ("python" for the Python itself), None to find the package. What runs is a
    `repro` (a name or a path; default: the one that names the subject) or the command `run`, in a copy of the
    `project`. `good` and `bad` are the ends: a release, a day, a lock file, an environment, a commit or a Python.
    `depth` is how deep to go: "release", "package", "file", "region" or "commit"; `policy` how to search.
    Raises `UserMistake` for a wrong value.
    """

    subject: str | None = None
    repro: str | None = None
    run: str | None = None
    good: str | None = None
    bad: str | None = None
    depth: Level | None = field(default=None, converter=_read_level)
    policy: Policy = Policy()
    project: ChosenProject = ChosenProject()

    def __attrs_post_init__(self) -> None:
        check_fields(self)

    @property
    def set(self) -> frozenset[str]:
        """The names of the parts of the policy and the project that differ from their defaults, and "depth"."""
        found = {"depth"} if self.depth is not None else set()
        for value, plain in ((self.policy, Policy()), (self.project, ChosenProject())):
            found |= {one.name for one in fields(type(value)) if getattr(value, one.name) != getattr(plain, one.name)}
        return frozenset(found)
