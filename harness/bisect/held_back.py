"""Finds the fewest packages that must be held back in the bad world for the tests to pass."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from attrs import define, evolve, field, frozen

from harness.events import Judged, LevelBegan, Progress, Reporter, Started
from harness.model import Change, Judgement, Observation, Repro, Verdict, normalized_name
from harness.model.culprit import Level
from harness.model.words import listed
from harness.probe import Judge, Probe
from harness.scheduling.loop import PATIENCE_S, Engine
from harness.search import FewestChanges

if TYPE_CHECKING:
    from harness.bisect.standing import Stand
    from harness.environment import Index, Interpreter
    from harness.model import RaisedException
    from harness.planning.world import Versions, World
    from harness.probe.probe import Probing
    from harness.scheduling.scheduler import Lanes

C = TypeVar("C")
Candidate = frozenset[str]


@define
class Count:
    """Counts the probes that were run rather than answered by the store, and the groups of tests still to search."""

    ran_now: int = 0
    open_groups: int = 0

    def add(self, observation: Observation, *, cached: bool) -> None:
        """Count one probe."""
        self.ran_now += not cached and observation.outcome.ran


@frozen
class Means:
    """Runs the probes of a question between two worlds, for all of its levels."""

    prober: Probing
    lanes: Lanes
    index: Index
    interpreter: Interpreter
    reporter: Reporter
    count: Count = field(factory=Count)

    def observe(self, label: str, probe: Probe, stand: Stand | None = None) -> Observation:
        """Run one probe, or take its observation from the store; `stand` determines the reported verdict.

        Without `stand` the run is that of an end: any failure is bad.
        """
        self.reporter.report(Started(label))
        prepared = self.prober.prepare(probe)
        observation = self.prober.execute(prepared)
        self.count.add(observation, cached=prepared.cached)
        judgement = stand(observation).strict if stand is not None else self._as_it_ended(observation)
        progress = Progress(groups=self.count.open_groups)
        self.reporter.report(Judged(label, judgement, observation, cached=prepared.cached, progress=progress))
        return observation

    def _as_it_ended(self, observation: Observation) -> Judgement:
        """Return the verdict on the run of an end, where any failure is bad."""
        judgement = Judge(None, self.prober.store)(observation)
        is_failure = judgement.verdict is Verdict.SKIP and observation.outcome.may_show_bug
        return evolve(judgement, verdict=Verdict.BAD) if is_failure else judgement

    def engine(
        self,
        probe_of: Callable[[C], Probe],
        label_of: Callable[[C], str],
        judge: Callable[[C, Observation], Judgement],
        progress: Callable[[], Progress],
    ) -> Engine[C]:
        """Return the main loop over candidates; it counts its runs."""

        def judged(candidate: C, observation: Observation, cached: bool) -> Judgement:
            self.count.add(observation, cached=cached)
            return judge(candidate, observation)

        def with_groups() -> Progress:
            return evolve(progress(), groups=self.count.open_groups)

        return Engine(
            self.prober, self.lanes, probe_of, label_of, judged, self.reporter, with_groups, patience_s=PATIENCE_S
        )


@frozen
class HeldBack:
    """The packages that must be changed together, and the run that showed that they are enough (None if none did)."""

    names: Candidate
    shown: Observation | None
    runs: int


def find_held_back(
    means: Means,
    bad: World,
    changes: Mapping[str, Change],
    order: Sequence[str],
    stand: Stand,
    repro: Repro,
    held: Versions,
) -> HeldBack:
    """Find the fewest packages of `order` whose older versions in the bad world make the tests pass.

    `held` is also held back in every run.
    """

    def probe_of(names: Candidate) -> Probe:
        return bad.with_versions({**held, **{name: changes[name].before for name in names}}, repro)

    told = f"{len(order)} packages changed: which must be held back for the tests to pass?"
    means.reporter.report(LevelBegan(Level.PACKAGE, told))
    return _search(means, order, probe_of, stand, Verdict.GOOD, lambda names: f"held back: {listed(sorted(names))}")


def find_partners(
    means: Means,
    good: World,
    changes: Mapping[str, Change],
    order: Sequence[str],
    stand: Stand,
    repro: Repro,
    upgraded: Versions,
) -> HeldBack:
    """Find the fewest packages of `order` that must be upgraded beside `upgraded` in the good world for a failure."""

    def probe_of(names: Candidate) -> Probe:
        return good.with_versions({**upgraded, **{name: changes[name].after for name in names}}, repro)

    told = f"{listed(upgraded)} alone does not make the tests fail: what must come with it?"
    means.reporter.report(LevelBegan(Level.PACKAGE, told))
    return _search(means, order, probe_of, stand, Verdict.BAD, lambda names: f"upgraded too: {listed(sorted(names))}")


def _search(
    means: Means,
    order: Sequence[str],
    probe_of: Callable[[Candidate], Probe],
    stand: Stand,
    flipped: Verdict,
    label_of: Callable[[Candidate], str],
) -> HeldBack:
    search = FewestChanges(order, flipped=flipped)
    seen: dict[Candidate, Observation] = {}

    def judged(names: Candidate, observation: Observation) -> Judgement:
        seen[names] = observation
        return stand(observation).strict

    means.engine(
        probe_of,
        label_of,
        judged,
        lambda: Progress(candidates=len(order), tried=search.result.runs),
    ).drive(search)
    result = search.result
    if not result.shown:  # the search assumed that all of them are enough
        judgement = judged(result.needed, means.observe(label_of(result.needed), probe_of(result.needed)))
        if judgement.verdict is not flipped:
            return HeldBack(result.needed, None, result.runs + 1)
    return HeldBack(result.needed, seen[result.needed], result.runs)


# Tools that run and measure tests rarely break them.
_TEST_TOOL = re.compile(r"^(pytest.*|pluggy|iniconfig|coverage|exceptiongroup|tox)$")
_RAISES_FOR_OTHERS = ("_pytest", "pytest", "pluggy")
_NO_FIXTURE = "FixtureLookupError"
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z]")


def ranked(
    changes: Mapping[str, Change], exceptions: Sequence[RaisedException], log: str, asked: Sequence[str]
) -> tuple[str, ...]:
    """Return the names of the changed packages, the most likely culprit first.

    In this order: named by the message, the exception type or an error line of the log, in the traceback, in a path of
    the log, not a test tool, present at both ends, requested, a larger version step.
    """
    message = _projects(" ".join(raised.message for raised in exceptions))
    types = _projects(" ".join(map(_type, exceptions))) | _plugins(exceptions, changes)
    frames = _packages_of_frames(exceptions)
    printed = _projects("\n".join(line for line in log.splitlines() if "Error" in line or line.startswith("E ")))
    files = _projects(" ".join(re.findall(r"site-packages/([A-Za-z0-9_]+)", log)))

    def rank(name: str) -> tuple[object, ...]:
        change = changes[name]
        return (
            name not in message,
            name not in types,
            name not in printed,
            frames.index(name) if name in frames else len(frames),
            name not in files,
            _TEST_TOOL.match(name) is not None,
            change.before is None or change.after is None,
            name not in asked,
            change.step,
            name,
        )

    return tuple(sorted(changes, key=rank))


def named_in(exceptions: Sequence[RaisedException], order: Sequence[str]) -> tuple[str, ...]:
    """Return the packages of `order` that exceptions name, then those in their tracebacks, the innermost first."""
    words = _projects(" ".join(f"{_type(raised)} {raised.message}" for raised in exceptions))
    words |= _plugins(exceptions, order)
    frames = _packages_of_frames(exceptions)
    named = [name for name in order if name in words]
    return tuple(dict.fromkeys([*named, *(name for name in frames if name in order)]))


def _type(raised: RaisedException) -> str:
    """Return the type of an exception, "" for those that pytest raises to report a failure of something else."""
    return "" if raised.name in ("Failed", _NO_FIXTURE) else raised.type


def _packages_of_frames(exceptions: Sequence[RaisedException]) -> list[str]:
    """Return the packages in the tracebacks of exceptions, the innermost first, without pytest and pluggy."""
    packages = [frame.package for raised in exceptions for frame in reversed(raised.frames) if frame.package]
    return [normalized_name(package) for package in packages if package not in _RAISES_FOR_OTHERS]


def _plugins(exceptions: Sequence[RaisedException], names: Iterable[str]) -> frozenset[str]:
    """Return the pytest plugins among some packages if a fixture is missing, which one of them may provide."""
    if not any(raised.name == _NO_FIXTURE for raised in exceptions):
        return frozenset()
    return frozenset(name for name in names if name.startswith("pytest-"))


def _projects(text: str) -> frozenset[str]:
    """Return the words of a text as project names, and the first part of each dotted name."""
    words = set(_WORD.findall(text))
    return frozenset(normalized_name(part) for word in words for part in (word, word.split(".")[0]))
