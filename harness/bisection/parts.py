"""The part of an update that passes: searched, written as a file of its kind, and verified by a run of that file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.bisection.both_ends import BothEnds
from harness.bisection.failures import Groups
from harness.bisection.flow import passes_whole
from harness.bisection.packages import PackageSearch
from harness.errors import BadRepository, UserMistake
from harness.model import Change, Lock, Observation, Outcome, name_of
from harness.model.text import counted, listed, picked
from harness.question.ends import End, EndKind
from harness.question.lock_edits import command_of, diff_of, files_with_versions
from harness.question.lower_bounds import admits
from harness.question.revisions import TrackedFile, laid_out

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from harness.bisection.answer import Answer
    from harness.probing import Probe
    from harness.question.package_set import Snapshot
    from harness.session import Session


_ROUNDS = 5
_IN_A_SENTENCE = 4


@frozen
class Part:
    """A part of an update that a `run` has verified: without the changes in `held`, with those in `kept`.

    `diff` goes from the head's file to one with these packages, "" if it can't be edited; `command` is that of the
    lock's own tool. `unmet` are requirements of the project that `held` contradicts.
    """

    held: tuple[Change, ...]
    kept: tuple[Change, ...]
    run: Observation
    diff: str = ""
    command: str = ""
    unmet: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What passes, in a sentence."""
        which = f"{len(self.kept)} of its {counted(len(self.kept) + len(self.held), 'change')}"
        them = "it" if len(self.kept) == 1 else "them"
        is_whole = self.run.outcome is Outcome.COMPLETED
        shown = f"a run with {them} passed" if is_whole else f"nothing newly fails with {them}"
        return f"The largest part of the update that passes has {which}: {shown}."

    def as_json(self) -> dict[str, Any]:
        """Return it as part of the JSON of a gate."""
        return {
            "sentence": self.sentence,
            "held": changes_as_json(self.held),
            "kept": changes_as_json(self.kept),
            **picked(self, "diff command unmet"),
            "verified_by": self.run.key,
        }


def changes_as_json(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Return the changes of an update as JSON."""
    return [picked(change, "name before after") for change in changes]


@frozen
class Parts:
    """The search for the part of an update that passes. `groups` are the failures, `changes` those of the update."""

    session: Session
    both: BothEnds
    base: Snapshot
    head: Snapshot
    groups: Groups
    changes: Mapping[str, Change]

    def largest(self, guilty: Collection[str]) -> Part | None:
        """Return the largest part without these packages that passes, None if none is known.

        What fails in it without them is searched again, as long as something else explains it.
        """
        held = self._consistent({name: self.base.lock.version_of(name) for name in guilty if name in self.changes})
        for _ in range(_ROUNDS):
            if held.keys() >= self.changes.keys():
                return None
            probe, diff = self._made(held)
            names = listed((f"{name} {version or '(absent)'}" for name, version in held.items()), _IN_A_SENTENCE)
            run = self.both.run_whole(f"the update with {names}", probe, self.groups)
            left = self.both.left_in(run)
            if run.outcome.ran and passes_whole(left, run):
                return self._part(run, diff)
            more = self._more(left, held)
            if not more:
                return None
            held = self._consistent({**held, **more})
        return None

    def _consistent(self, held: Mapping[str, str | None]) -> dict[str, str | None]:
        """Hold back what can't be without these packages, too; unchanged if packages contradict each other anyway."""
        prober, tied = self.session.prober, dict(held)
        while True:
            lock = prober.resolve(self._head.at(prober, tied)).lock
            if lock is None:
                return dict(held)
            moved = [change.name for change in self._missing_from(lock) if change.name not in tied]
            if not moved:
                return tied
            tied |= {name: self.base.lock.version_of(name) for name in moved}

    def _missing_from(self, lock: Lock) -> tuple[Change, ...]:
        return tuple(change for change in self.head.lock.diff(lock) if change.name in self.changes)

    @property
    def _head(self) -> Snapshot:
        """The head, in which packages of the base may be built as they were there."""
        combination = self.head.combination
        combination = evolve(combination, from_source=(*combination.from_source, *self.base.sources))
        return evolve(self.head, combination=combination)

    def _made(self, held: Mapping[str, str | None]) -> tuple[Probe, str]:
        """Return the probe of the head without some changes, and the diff to its file if the file can be edited."""
        end, other = self.head.end, self.base.end
        resolved = self._head.at(self.session.prober, held)
        before, older = _files(end), _files(other) if kind_of_file(end) == kind_of_file(other) else {}
        is_unix = before and not any("\r" in text for text in before.values())
        after = files_with_versions(before, older, held) if is_unix else None
        if after is None:
            return resolved, ""
        with laid_out({path: text.encode() for path, text in after.items()}) as top:
            edited = End(EndKind.LOCK, end.text, end.moment, top / next(iter(after)))
            try:
                snapshot = self.both.snapshots.of(edited)
            except UserMistake:
                return resolved, ""
        wanted = {pin.name: pin.version for pin in self.head.lock.pins} | dict(held)
        names = [name for name in wanted if snapshot.lock.version_of(name) is None and wanted[name] is not None]
        if names and all(name in self.changes and self.changes[name].before is None for name in names):
            return self._made({**held, **dict.fromkeys(names)})  # only what is held back needs them
        if any(snapshot.lock.version_of(name) != version for name, version in wanted.items()):
            return resolved, ""
        return snapshot.itself(), "".join(diff_of(before[path], text, path) for path, text in after.items())

    def _more(self, left: Groups, held: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return what must be held back, too, for the rest of the failures to go."""
        more: dict[str, str | None] = {}
        narrow = evolve(self._head, repro=self.both.only(left.tests))
        for group in left.groups:
            alone = self.both.narrowed(group.tests)
            search = PackageSearch(
                self.both.observer, group, self.both.snapshots.question, narrow, self.base, alone, held
            )
            more |= evolve(search, order=list(search.units)).held_back() or {}
        return more

    @property
    def _own(self) -> tuple[str, ...]:
        """The requirements of the project that are not lines of the files."""
        snapshots = self.both.snapshots
        lines = {text for end in (self.base.end, self.head.end) for text in snapshots.pins_of(end).requirements}
        return tuple(text for text in self.both.repro.dependencies if text not in lines)

    def _part(self, run: Observation, diff: str) -> Part:
        """Return the part that a run has verified; what it holds back is what the run had."""
        lock = run.lock if run.lock is not None else self.head.lock
        held = tuple(self.changes[change.name] for change in self._missing_from(lock))
        kept = tuple(change for change in self.changes.values() if change not in held)
        end = self.head.end
        versions = {change.name: change.before for change in held}
        own = self._own
        unmet = tuple(
            text
            for text in own
            if (name := name_of(text)) in versions
            if (version := versions[name]) is None or not admits(text, version)
        )
        direct = set(map(name_of, own))
        typed = [change for change in held if change.before is not None or change.name in direct]
        command = command_of(end.path.name, typed) if end.path is not None else ""
        return Part(held, kept, run, diff, command, unmet)


def failures_of(both: BothEnds, answer: Answer | None) -> Groups:
    """Run both ends, which the store has where there is an answer, and return what newly fails.

    A head that can't be installed has not run. Raises `UserMistake` and `MachineFailedError`.
    """
    if answer is None:
        both.run_good()
        return Groups(())
    both.run_bad()
    both.run_good()
    groups = both.between()
    rates = [culprit.boundary.certainty for culprit in answer.culprits if culprit.boundary.certainty.is_flaky]
    side = rates[0].bad_side if rates and not both.observer.is_flaky else None
    if side is not None:
        both.note_flaky(side.bad, side.runs)
    return groups


def _files(end: End) -> dict[str, str]:
    """Return the text of an end's file and of those that it includes, by path in its repository, if it has one.

    Empty if one of them can't be read.
    """
    if end.path is None:
        return {}
    try:
        file = TrackedFile.at(end.path)
        contents = file.files_in(end.commit)
    except BadRepository:
        contents = {end.path.name: end.path.read_bytes()}
    try:
        return {path: content.decode() for path, content in contents.items()}
    except ValueError:
        return {}


def kind_of_file(end: End) -> str:
    """Return the suffix of an end's file, that of requirements files for all of these."""
    return end.path.suffix if end.path is not None and end.path.suffix != ".in" else ".txt"
