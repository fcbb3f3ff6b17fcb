"""The gate of an update: a project's tests with both of its locks, what broke them, and the part of it that passes.

An update is the difference between two versions of a lock file, the base and the head. Its largest part that passes has
the packages of the head, except those that break the tests, and those that can't be without them: they stay as they
are in the base. It is written as a file of that kind, and verified by a run in the environment that the file gives.
"""

from __future__ import annotations

import enum
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.bisection.answer import Answer, Status
from harness.bisection.ask import answer_question
from harness.bisection.both_ends import BothEnds
from harness.bisection.failures import Groups
from harness.bisection.flow import passes_whole, snapshots_of
from harness.bisection.observing import Observer
from harness.bisection.packages import PackageSearch
from harness.bisection.sections import sections_of
from harness.bisection.showing import json_of
from harness.errors import BadRepository, UserMistake
from harness.events import Note, SearchBegan
from harness.model import Change, Lock, Observation, Outcome, name_of, parsed_version
from harness.model.requirements import exact_version
from harness.model.text import counted, listed, one_line, picked
from harness.question.lock_edits import command_of, diff_of, with_versions
from harness.question.lower_bounds import admits
from harness.question.request import End, EndKind, QuestionKind
from harness.question.revisions import TrackedFile
from harness.redact import Private, redacted
from harness.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.probing import Probe
    from harness.question.question import Question
    from harness.question.snapshots import Snapshot, Snapshots
    from harness.session import Session


SCHEMA = 1  # of its JSON
_ROUNDS = 5
_IN_A_SENTENCE = 4


class GateStatus(enum.StrEnum):
    """What a gate says of an update."""

    PASSES = "passes"  # the tests pass with the head
    BROKEN = "broken"  # tests fail with the head that pass with the base
    NOT_INSTALLABLE = "not-installable"  # the head can't be installed as its file says
    BASE_FAILS = "base-fails"  # whatever fails with the head fails with the base, too
    FLAKY = "flaky"  # only tests that pass and fail with the same packages
    UNKNOWN = "unknown"  # the answer says why

    @property
    def exit_code(self) -> int:
        """0: the update passes, 1: it is at fault, 3: it was not judged."""
        return {GateStatus.PASSES: 0, GateStatus.BROKEN: 1, GateStatus.NOT_INSTALLABLE: 1}.get(self, 3)


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
        shown = "a run with them passed" if self.run.outcome is Outcome.COMPLETED else "nothing newly fails with them"
        return f"The largest part of the update that passes has {which}: {shown}."


def _held_in_words(change: Change) -> str:
    if change.before is None:
        return f"{change.name} is left out"
    return f"{change.name} stays at {change.before}" if change.after is not None else f"{change.name} is not removed"


@frozen
class GateResult:
    """What came of a gate: `changes` are those of the update, `answer` what broke it if that was asked."""

    status: GateStatus
    sentence: str
    question: Question
    changes: tuple[Change, ...] = ()
    answer: Answer | None = None
    part: Part | None = None
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that compares both locks again."""
        ends = (("--good", self.question.good), ("--bad", self.question.bad))
        return " ".join([self.question.command, *(f"{name} {end.option}" for name, end in ends if end is not None)])

    def as_json(self) -> dict[str, Any]:
        """Return it as `harness gate --json` prints it (schema 1)."""
        part = self.part

        def listed_changes(changes: tuple[Change, ...]) -> list[dict[str, Any]]:
            return [picked(change, "name before after") for change in changes]

        return {
            "schema": SCHEMA,
            "status": self.status.value,
            "exit_code": self.status.exit_code,
            "sentence": self.sentence,
            "base": self.question.good.as_json() if self.question.good is not None else None,
            "head": self.question.bad.as_json() if self.question.bad is not None else None,
            "changes": listed_changes(self.changes),
            "part": {
                "sentence": part.sentence,
                "held": listed_changes(part.held),
                "kept": listed_changes(part.kept),
                **picked(part, "diff command unmet"),
                "verified_by": part.run.key,
            }
            if part is not None
            else None,
            "notes": list(self.notes),
            "answer": json_of(self.answer) if self.answer is not None else None,
        }

    def page(self, private: Private) -> Page:
        """Return the comment on a pull request, without private data of this machine.

        The diff is only freed of secrets: what else it names, such as an index, is in the repository already.
        """
        diff, parts = self.part.diff if self.part is not None else "", self.part
        answer = redacted(self.answer, private)
        content = {
            "result": redacted(evolve(self, answer=None), private),
            "held": [_held_in_words(change) for change in parts.held] if parts is not None else [],
            "diff": diff,
            "file": self.question.bad.text if self.question.bad is not None else "",
            "sections": [
                evolve(section, is_folded=section.is_folded or section.title == "The search")
                for section in (sections_of(answer) if answer is not None else ())
            ],
            "command": redacted(self.command, private) if self.answer is not None else "",
        }
        return Page("gate", content)


@frozen
class Gate:
    """A gate in a session: the question's good end is the base, its bad end the head, both lock files."""

    session: Session
    question: Question
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, session: Session, question: Question) -> Gate:
        """Return the gate of a question; what a file names is not required by anything else, such as its project.

        Raises `UserMistake` if a file can't be read.
        """
        snapshots = snapshots_of(session, question)
        listed_by = set[str]()
        for end in (question.good, question.bad):
            if end is None or end.kind is not EndKind.LOCK or end.path is None:
                raise UserMistake("the base and the head are lock or requirements files", hint="such as uv.lock@main")
            listed_by |= set(snapshots.pins_of(end, end.path).requirements)
        named = set(map(name_of, listed_by))
        required = question.combination.requirements
        others = tuple(text for text in required if name_of(text) not in named)
        shared = evolve(question.combination, requirements=others)
        own = tuple(text for text in required if text not in others and text not in listed_by)
        return cls(session, evolve(question, combination=shared), own)

    def run(self) -> GateResult:
        """Run the tests with the head, and if they fail find what broke them and the part of the update that passes.

        Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
        """
        session, question = self.session, self.question
        headline = f"`{question.repro.name}` with {_text(question.bad)} instead of {_text(question.good)}"
        session.reporter.report(SearchBegan(headline, question.notes))
        snapshots = snapshots_of(session, question)
        head, why = self._snapshot(snapshots, question.bad)
        if head is None:
            return self._result(GateStatus.NOT_INSTALLABLE, f"{why.rstrip('.')}.")
        base, why_not = self._snapshot(snapshots, question.good)
        missing = self._missing(snapshots, head)
        changes = tuple(
            evolve(change, after=missing.get(change.name, change.after))
            for change in (base.lock.diff(head.lock) if base is not None else ())
        )
        result = evolve(self._result(GateStatus.UNKNOWN, ""), changes=changes, notes=self._notes(head, changes))
        run, why = self._installed(head, base, missing)
        if run is None:
            sentence = f"{_text(question.bad)} can't be installed: {why.rstrip('.')}."
            result = evolve(result, status=GateStatus.NOT_INSTALLABLE, sentence=sentence)
            named = {change.name for change in changes if re.search(rf"\b{re.escape(change.name)}\b", why)}
            return self._with_part(result, snapshots, base, head, named)
        is_sure = not (question.policy.flaky or question.policy.confirm)
        if run.outcome is Outcome.COMPLETED and is_sure:
            return evolve(result, status=GateStatus.PASSES, sentence=self._passes(changes))
        if base is None:
            return evolve(result, sentence=f"Not judged: {why_not.rstrip('.')}.")
        if not changes:
            sentence = f"`{question.repro.name}` fails, and the update changes no package: it is not the cause."
            return evolve(result, status=GateStatus.BASE_FAILS, sentence=sentence)
        answer = answer_question(session, question, QuestionKind.PACKAGES)
        status = _status_of(answer)
        if status is GateStatus.PASSES:
            return evolve(result, status=status, sentence=self._passes(changes))
        result = evolve(result, answer=answer, status=status, sentence=answer.sentence)
        if status is not GateStatus.BROKEN:
            return result
        guilty = {culprit.package for culprit in answer.culprits} | set(map(name_of, answer.constraints))
        return self._with_part(result, snapshots, base, head, guilty)

    def _result(self, status: GateStatus, sentence: str) -> GateResult:
        return GateResult(status, sentence, self.question)

    def _passes(self, changes: tuple[Change, ...]) -> str:
        which = f"all {counted(len(changes), 'change')} of" if len(changes) > 1 else "the one change of"
        what = f"with {which} the update" if changes else "the update changes no package here"
        return f"`{self.question.repro.name}` passes{':' if not changes else ''} {what}."

    def _snapshot(self, snapshots: Snapshots, end: End | None) -> tuple[Snapshot | None, str]:
        """Return the packages of an end, None with the reason if they can't be installed."""
        if end is None:
            raise ValueError("both ends of a gate are known")
        try:
            return snapshots.of(end), ""
        except UserMistake as error:
            return None, f"{error.message}{f' ({error.hint})' if error.hint else ''}"

    def _notes(self, head: Snapshot, changes: tuple[Change, ...]) -> tuple[str, ...]:
        """Return what to know of the head, such as that an author has withdrawn a release."""
        releases = [
            release
            for change in changes
            if change.after and (release := self.session.index.known_release(change.name, change.after)) is not None
        ]
        withdrawn = [
            f"{release.project} {release.version} is yanked{f': {release.yanked}' if release.yanked else ''}"
            for release in releases
            if release.yanked is not None
        ]
        return (*withdrawn, *head.notes)

    def _missing(self, snapshots: Snapshots, head: Snapshot) -> dict[str, str]:
        """Return the exact versions that the head's file names and its snapshot lacks, by package."""
        end = head.end
        pins = snapshots.pins_of(end, end.path).requirements if end.path is not None else ()
        exact = dict(filter(None, map(exact_version, pins)))
        return {name: text for name, text in exact.items() if not _is(head.lock.version_of(name), text)}

    def _installed(
        self, head: Snapshot, base: Snapshot | None, missing: Mapping[str, str]
    ) -> tuple[Observation | None, str]:
        """Run the tests with the head; None with the reason if it can't be installed as its file says.

        Packages that contradict each other in the base, too, are installed as they are.
        """
        if missing:
            notes = [text.removesuffix(": left out") for text in head.notes if text.partition(" ")[0] in missing]
            return None, listed(notes or [f"{name} {version}" for name, version in missing.items()], _IN_A_SENTENCE)
        # What a tool has locked it also installs, as with overrides of what packages require.
        why = self._contradiction(head) if _kind(head.end) == ".txt" else ""
        if why and (base is None or not self._contradiction(base)):
            return None, why
        prober = self.session.prober
        run = prober.execute(prober.prepare(evolve(head.itself(), fresh=True)))
        return (None, run.detail) if run.outcome in (Outcome.UNINSTALLABLE, Outcome.UNRESOLVABLE) else (run, "")

    def _contradiction(self, snapshot: Snapshot) -> str:
        """Return what the resolver says if the packages of an end contradict each other, "" if they don't."""
        versions = {pin.name: pin.version for pin in snapshot.lock.pins}
        resolution = self.session.prober.resolve(snapshot.at(self.session.prober, versions))
        return one_line(resolution.words, 400).rstrip(".") if resolution.lock is None else ""

    # -- the part that passes

    def _with_part(
        self, result: GateResult, snapshots: Snapshots, base: Snapshot | None, head: Snapshot, guilty: Collection[str]
    ) -> GateResult:
        """Return the result with the part of the update that passes, or a note that there is none."""
        if base is None:
            return result
        with self.session.lanes(self.question.combination.device, self.question.repro) as lanes:
            observer = Observer(self.session.prober, lanes, self.session.index, self.session.reporter)
            observer = evolve(observer, policy=self.question.policy, typed=self.question.typed)
            both = BothEnds(observer, snapshots, head, base)
            # The store has these runs, and what was repeated.
            groups = Groups(())
            if result.answer is not None:
                both.run_bad()
                both.run_good()
                groups = both.between()
                certain = [culprit.boundary.certainty for culprit in result.answer.culprits]
                if not both.observer.is_flaky and (rate := next((c.bad_side for c in certain if c.is_flaky), None)):
                    both.note_flaky(rate.bad, rate.runs)
            else:
                both.run_good()
            self.session.reporter.report(Note("which part of the update passes?"))
            changes = {change.name: change for change in result.changes}
            part = _Parts(self.session, both, base, head, groups, self.own, changes).largest(guilty)
        if part is None:
            return evolve(result, notes=("no part of the update is known to pass", *result.notes))
        return evolve(result, part=part)


def _text(end: End | None) -> str:
    return end.described if end is not None else ""


def _is(version: str | None, text: str) -> bool:
    installed, wanted = parsed_version(version), parsed_version(text)
    return installed is not None and wanted is not None and installed.public == wanted.public


def _status_of(answer: Answer) -> GateStatus:
    if answer.status is Status.NO_FAILURE or answer.comparison.lifted:
        return GateStatus.PASSES
    if answer.status is Status.FOUND:
        return GateStatus.BROKEN
    if answer.status is Status.NOT_A_REGRESSION:
        return GateStatus.FLAKY if answer.comparison.flaky else GateStatus.BASE_FAILS
    return GateStatus.UNKNOWN


@frozen
class _Parts:
    """The search for the part of an update that passes. `groups` are the failures, `changes` those of the update.

    `own` are the requirements of the project that its files decide.
    """

    session: Session
    both: BothEnds
    base: Snapshot
    head: Snapshot
    groups: Groups
    own: tuple[str, ...]
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
        before, older = _content(end), _content(other) if _kind(end) == _kind(other) else ""
        name = Path(end.path.name) if end.path is not None else Path()
        after = with_versions(before, older, held, name.name) if "\r" not in before else None
        if after is None:
            return resolved, ""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(after, encoding="utf-8")
            edited = End(EndKind.LOCK, end.text, end.moment, path)
            try:
                snapshot = self.both.snapshots.of(edited)
            except UserMistake:
                return resolved, ""
        wanted = {pin.name: pin.version for pin in self.head.lock.pins} | dict(held)
        if any(snapshot.lock.version_of(name) != version for name, version in wanted.items()):
            return resolved, ""
        return snapshot.itself(), diff_of(before, after, _place(end))

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

    def _part(self, run: Observation, diff: str) -> Part:
        """Return the part that a run has verified; what it holds back is what the run had."""
        lock = run.lock if run.lock is not None else self.head.lock
        held = tuple(self.changes[change.name] for change in self._missing_from(lock))
        kept = tuple(change for change in self.changes.values() if change not in held)
        end = self.head.end
        versions = {change.name: change.before for change in held}
        unmet = tuple(
            text
            for text in self.own
            if (name := name_of(text)) in versions
            if (version := versions[name]) is None or not admits(text, version)
        )
        command = command_of(end.path.name, held) if end.path is not None else ""
        return Part(held, kept, run, diff, command, unmet)


def _content(end: End) -> str:
    """Return the text of an end's file, as it is now or in its commit; "" if it can't be read."""
    if end.path is None:
        return ""
    try:
        if end.commit is None:
            return end.path.read_bytes().decode()
        file = TrackedFile.at(end.path)
        return (file.repository.file(end.commit.sha, file.path) or b"").decode()
    except (OSError, ValueError, BadRepository):
        return ""


def _kind(end: End) -> str:
    return end.path.suffix if end.path is not None and end.path.suffix != ".in" else ".txt"


def _place(end: End) -> str:
    """Return the path of an end's file in its repository, else its name."""
    if end.path is None:
        return ""
    try:
        return TrackedFile.at(end.path).path
    except BadRepository:
        return end.path.name
