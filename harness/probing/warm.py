"""Warm runs: the prober answers a probe from the store, by a fork, or by a fresh process; who asks need not know which.

A fork comes from a process that has imported the modules which no candidate changes, in an environment as it is
(`warm_releases`) or in one with some files exchanged (`warm_processes`). Only what will be claimed is asked for as
`fresh`. Forks are believed as long as they agree with fresh processes (`trust`).
"""

from __future__ import annotations

import contextlib
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from harness.environment.watched import flaw_of
from harness.events import Judged, Started
from harness.model import Device, Mixture, Observation, Verdict
from harness.probing.lanes import started
from harness.probing.probe import Around, Prepared, Probe, is_warm
from harness.probing.trust import Trust, is_unsettled
from harness.probing.warm_processes import CannotFork, Unchanged, WarmEnvironments
from harness.probing.warm_releases import ForkProcesses
from harness.run.commands import is_forkable, whole
from harness.run.process import ZygoteFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from harness.model import Judgement, Lock, Repro
    from harness.probing.lanes import Lanes, Task
    from harness.probing.prober import Prober
    from harness.probing.warm_releases import ForkProcess


_FORKED = "+fork"
_LONG_S = 20.0  # of a run that is not made just to see whether forks agree
_ENDS = 2  # locks that a question begins with


@frozen
class Expected:
    """Probes with some `files` of one environment exchanged, those in `first` before others.

    `base` is the probe of the unchanged environment, with its lock; its fork must have this verdict of `judge`.
    """

    base: Probe
    files: frozenset[str]
    first: AbstractSet[str]
    judge: Callable[[Observation], Judgement]
    verdict: Verdict


@define
class WarmProber(Around):
    """Forks what may be forked, and passes all other probes to `prober`; it has to be closed.

    `trust` says whether forks are believed. `forked` counts them, `checks` those of unchanged environments.
    """

    prober: Prober
    trust: Trust
    forked: int = field(default=0, init=False)
    checks: int = field(default=0, init=False)
    _expected: dict[str, Expected] = field(factory=dict, init=False)  # by lock
    _opening: dict[str, Task[WarmEnvironments | None]] = field(factory=dict, init=False)
    _untold: dict[str, Judged] = field(factory=dict, init=False)  # forks of unchanged environments, by lock
    _families: dict[str, ForkProcesses] = field(factory=dict, init=False)  # for whole environments, by repro
    _exchanging: contextlib.ExitStack = field(factory=contextlib.ExitStack, init=False)
    _removing: list[Task[None]] = field(factory=list, init=False)

    def expect(self, expected: Expected, lanes: Lanes) -> None:
        """Prepare, on a lane, to fork many probes with files of one environment exchanged."""
        lock = expected.base.lock
        if self.trust.stopped or lock is None or lock.id in self._expected:
            return
        self.trust.reporter.report(Started("preparing a process from which the next runs are forked"))
        self._expected[lock.id] = expected
        self._opening[lock.id] = lanes.submit(partial(self._open, expected, lock, lanes.count))

    def end_expected(self) -> None:
        """Forget what was expected, and begin to remove what was prepared for it, thousands of files."""
        for opening in self._opening.values():
            opening.stop()
        wait(self._opening.values())
        self._opening.clear()
        self._untold.clear()
        self._expected.clear()
        self._removing.append(started(self._exchanging.pop_all().close))

    def close(self) -> None:
        """End the processes to fork from."""
        self.end_expected()
        for removing in self._removing:
            removing.result()
        for processes in self._families.values():
            processes.close()

    def prepare(self, probe: Probe) -> Prepared:
        """Return a stored observation, a probe to fork, or what `prober` has prepared. Raises `ForksDisagree`."""
        self.trust.check()
        lock = probe.lock
        if lock is not None and self._is_expected(probe, lock):
            return self._prepare_expected(probe, lock)
        may_fork = self._may_fork(probe)
        if may_fork and not (probe.ahead or self._is_answered(probe)):
            self._families[_family(probe.repro)].begin()  # while the environment is built
        recording = evolve(probe, records_imports=self._is_to_record(probe))
        prepared = self.prober.prepare(recording, as_is=may_fork)
        if prepared.observation is not None:
            self._learn(prepared, prepared.observation)
        elif may_fork and (known := self._known_fork(prepared.key)) is not None:
            self.trust.note(prepared.key, known)
            return evolve(prepared, key=known.key, observation=known, cached=True)
        return prepared

    def execute(self, prepared: Prepared) -> Observation:
        """Run a prepared probe. If the result of a fork is not conclusive, it is repeated in a fresh process.

        Raises `ForksDisagree`.
        """
        probe, lock = prepared.probe, prepared.probe.lock
        if prepared.observation is None and prepared.is_warm and lock is not None:
            warm = self._opening[lock.id].result()
            if (judged := self._untold.pop(lock.id, None)) is not None:
                self.trust.reporter.report(judged)
            return self._run(warm, probe, lock, prepared.key)
        forked = self._fork_release(prepared) if self._may_fork(probe) else None
        if forked is not None and self.trust.is_conclusive(forked):
            self.trust.note(prepared.key, forked)
            return forked
        observation = self.prober.execute(prepared)
        if forked is not None:
            self.trust.learn(forked, observation)
        self._learn(prepared, observation)
        return observation

    def _learn(self, prepared: Prepared, fresh: Observation) -> None:
        """Compare a fresh run with its fork. One of a whole environment may be what the next ones are forked from."""
        probe, lock = prepared.probe, fresh.lock
        if lock is None or not fresh.outcome.ran or is_warm(fresh) or probe.inside is not None:
            return
        first = evolve(probe, attempt=0, trace=None)
        self.trust.compare(self.prober.key(first, lock), probe.repro, fresh)
        if not probe.attempt and probe.mixture is None and probe.trace is None:
            family = _family(probe.repro)
            processes = self._families.setdefault(family, ForkProcesses(self.prober, self._check))
            processes.runs.setdefault(lock.id, (evolve(probe, lock=lock), fresh))
            if self._has_ends(family) and _is_forkable(probe) and not self.trust.stopped:
                processes.begin()  # the next runs will be forked

    # -- runs of whole environments

    def _is_to_record(self, probe: Probe) -> bool:
        """Whether the imports of a run are recorded, so that others can be forked in its environment: of both ends."""
        return _is_forkable(probe) and not self._has_ends(_family(probe.repro)) and not self.trust.stopped

    def _may_fork(self, probe: Probe) -> bool:
        is_first = not (probe.fresh or probe.attempt)
        return is_first and _is_forkable(probe) and self._has_ends(_family(probe.repro)) and not self.trust.stopped

    def _has_ends(self, family: str) -> bool:
        """Whether it is known what will differ: what is imported before a fork depends on it."""
        return family in self._families and len(self._families[family].runs) >= _ENDS

    def _known_fork(self, key: str) -> Observation | None:
        known = self.prober.current(key + _FORKED)
        return None if known is None or is_unsettled(known) else known

    def _fork_release(self, prepared: Prepared) -> Observation | None:
        """Fork a run in its own environment; None if that can't be done."""
        environment, family = prepared.environment, _family(prepared.probe.repro)
        if environment is None or environment.folder is None:
            return None
        processes = self._families[family]
        process = processes.for_lock(environment.lock)
        if process is None:
            return None
        try:
            zygote = process.zygote.result()
            check = processes.checked(process)
            repro = evolve(prepared.probe.repro, timeout=process.base.limit())
            forking = evolve(prepared, key=prepared.key + _FORKED, probe=evolve(prepared.probe, repro=repro))
            forked = self.prober.execute(evolve(forking, zygote=zygote))
            check.result()
        except ZygoteFailed as error:
            self.trust.stop(str(error))
            return None
        if self.trust.stopped:
            return None
        self.forked += 1
        return forked

    def _is_answered(self, probe: Probe) -> bool:
        """Whether a probe needs no run, by what is known without resolving it."""
        resolution = self.prober.resolutions.known(probe.combination) if probe.lock is None else None
        lock = probe.lock if resolution is None else resolution.lock
        if lock is None:
            return resolution is not None
        key = self.prober.key(probe, lock)
        return self.prober.current(key) is not None or self._known_fork(key) is not None

    def _check(self, process: ForkProcess, is_first: bool) -> None:
        """Compare a fork of the run that a process is made for with it, if that does not take long.

        Other lanes fork from the process meanwhile. What is known is believed for the first process in an environment.
        Raises `ForksDisagree` and `ZygoteFailed`.
        """
        base, zygote = process.base, process.zygote.result()
        if base.fresh.duration_s > _LONG_S:
            return
        probe = evolve(base.probe, fresh=False, records_imports=False, attempt=0)
        key = self.prober.key(base.probe, base.lock)
        forked = self._known_fork(key) if is_first else None
        if forked is None:
            built = self.prober.builder.build(base.lock, as_is=True)
            forked = self.prober.execute(Prepared(probe, key + _FORKED, environment=built, zygote=zygote))
            self.checks += 1
        if not self.trust.agree(probe.repro, forked, base.fresh):
            self.prober.store.forget(forked.key)
            self.trust.disagree()

    # -- runs with files exchanged

    def _is_expected(self, probe: Probe, lock: Lock) -> bool:
        expected = self._expected.get(lock.id)
        return (
            expected is not None
            and not self.trust.stopped
            and not probe.fresh
            and not probe.attempt
            and probe.mixture is not None
            and probe.inside is None
            and probe.trace is None
            and probe.mixture.files.keys() <= expected.files
            and not flaw_of(probe.mixture, lock.python)
        )

    def _prepare_expected(self, probe: Probe, lock: Lock) -> Prepared:
        fresh = self.prober.key(probe, lock)
        if (known := self.prober.current(fresh)) is not None:
            return Prepared(probe, known.key, observation=known, cached=True)
        if (known := self._known_fork(fresh)) is not None:
            self.trust.note(fresh, known)
            return Prepared(probe, known.key, observation=known, cached=True, is_warm=True)
        return Prepared(probe, fresh + _FORKED, is_warm=True)

    def _open(self, expected: Expected, lock: Lock, lanes: int) -> WarmEnvironments | None:
        """Open the environment of a probe; None if it can't be forked, or if its fork has another verdict."""
        base = expected.base
        processes = self._families.get(_family(base.repro))
        parent = processes.running_for(lock) if processes is not None else None
        try:
            original = Unchanged.opened(self.prober, base, expected.files, expected.first, parent)
            unchanged = self._exchanging.enter_context(original)
            warm = self._exchanging.enter_context(WarmEnvironments.opened(unchanged, lanes))
        except (CannotFork, ZygoteFailed) as why:
            self.trust.stop(str(why))
            return None
        nothing = evolve(base, mixture=Mixture(files={}, label="nothing exchanged"))
        prepared = self.prepare(nothing)
        if not prepared.is_warm:
            return None
        observation = prepared.observation or self._run(warm, nothing, lock, prepared.key)
        self.checks += not prepared.cached
        judgement = expected.judge(observation)
        label = f"forked: the {expected.verdict.value} environment"
        self._untold[lock.id] = Judged(label, judgement, observation, cached=prepared.cached)
        if judgement.verdict is not expected.verdict:
            self.trust.disagree()
        return None if self.trust.stopped else warm

    def _run(self, warm: WarmEnvironments | None, probe: Probe, lock: Lock, key: str) -> Observation:
        """Fork a probe; run it in a fresh process if it can't be forked or if the result is not conclusive."""
        forked = self._fork(warm, probe, lock, key) if warm is not None and not self.trust.stopped else None
        if forked is not None and self.trust.is_conclusive(forked):
            self.trust.note(key.removesuffix(_FORKED), forked)
            return forked
        fresh = self.prober.execute(self.prober.prepare(probe))
        if forked is not None:
            self.trust.learn(forked, fresh)
        return fresh

    def _fork(self, warm: WarmEnvironments, probe: Probe, lock: Lock, key: str) -> Observation | None:
        try:
            forked = warm.run(probe, lock, key)
        except ZygoteFailed as error:
            self.trust.stop(str(error))
            return None
        self.forked += 1
        return forked


def _is_forkable(probe: Probe) -> bool:
    """Whether a run of a whole environment can be a fork: on the CPU, and its verdict is no matter of time."""
    repro = probe.repro
    is_timed = repro.signature is not None and repro.signature.is_timed
    is_program = repro.argv and not is_forkable(repro.argv)
    is_alone = not (is_program or repro.given or repro.step or is_timed)
    is_whole = probe.mixture is None and probe.inside is None and probe.trace is None
    return is_alone and is_whole and probe.combination.device is not Device.CUDA


def _family(repro: Repro) -> str:
    """What the runs have in common that are forked from one process; they may be of different tests."""
    if not repro.argv:
        return repro.digest
    return repr((whole(repro.argv), repro.project, repro.inside, repro.search_path, sorted(repro.params.items())))
