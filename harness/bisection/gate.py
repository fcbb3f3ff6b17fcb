"""The gate of an update: a project's tests with both of its locks, what broke them, and the part of it that passes.

An update is the difference between two versions of a lock file, the base and the head. Its largest part that passes has
the packages of the head, except those that break the tests, and those that can't be without them: they stay as they
are in the base. It is written as a file of that kind, and verified by a run in the environment that the file gives.
"""

from __future__ import annotations

import contextlib
import enum
import re
import shlex
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from harness.bisection.answer import Answer, Status
from harness.bisection.ask import answer_question
from harness.bisection.both_ends import BothEnds, MachineFailedError
from harness.bisection.flow import snapshots_of
from harness.bisection.observing import Observer
from harness.bisection.parts import Part, Parts, changes_as_json, failures_of, kind_of_file
from harness.bisection.showing import json_of
from harness.errors import NoNetwork, UserMistake
from harness.events import Note, SearchBegan
from harness.model import Change, Observation, Outcome, name_of, parsed_version
from harness.model.requirements import exact_version
from harness.model.text import counted, listed, one_line, picked
from harness.question.ends import End, EndKind
from harness.question.request import QuestionKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from harness.question.package_set import Snapshot
    from harness.question.question import Question
    from harness.question.snapshots import Snapshots
    from harness.session import Session


SCHEMA = 1  # of its JSON
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


def _again(end: End) -> str:
    """Return the text of an end for a shell, with the commit that its revision was."""
    file = end.text.partition("@")[0]
    return end.option if end.commit is None else shlex.quote(f"{file}@{end.commit.short}")


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
    def exit_code(self) -> int:
        """That of the status."""
        return self.status.exit_code

    @property
    def command(self) -> str:
        """The command that judges the same update again."""
        ends = (("--base", self.question.good), ("--head", self.question.bad))
        words = [f"{name} {_again(end)}" for name, end in ends if end is not None]
        return " ".join(["harness gate", self.question.command.removeprefix("harness bisect "), *words])

    def as_json(self) -> dict[str, Any]:
        """Return it as `harness gate --json` prints it (schema 1)."""
        ends = (("base", self.question.good), ("head", self.question.bad))
        return {
            "schema": SCHEMA,
            **picked(self, "status exit_code sentence"),
            **{name: end.as_json() if end is not None else None for name, end in ends},
            "changes": changes_as_json(self.changes),
            "part": self.part.as_json() if self.part is not None else None,
            "notes": list(self.notes),
            "answer": json_of(self.answer) if self.answer is not None else None,
        }


@frozen
class Gate:
    """A gate in a session: the question's good end is the base, its bad end the head, both lock files."""

    session: Session
    question: Question

    @classmethod
    def of(cls, session: Session, question: Question) -> Gate:
        """Return the gate of a question. Raises `UserMistake` if its ends are no files.

        What the files leave open is as of one moment, so that it differs only through the update.
        """
        good, bad = question.good, question.bad
        if good is None or bad is None or not (good.kind is bad.kind is EndKind.LOCK):
            raise UserMistake("the base and the head are lock or requirements files", hint="such as uv.lock@main")
        if good.commit is not None or bad.commit is not None:
            moment = bad.moment or session.now
            good, bad = evolve(good, moment=moment), evolve(bad, moment=moment)
        return cls(session, evolve(question, good=good, bad=bad))

    def run(self) -> GateResult:
        """Run the tests with the head, and if they fail find what broke them and the part of the update that passes.

        Raises `UserMistake`, `NoWorkers`, `Interrupted`, `NoNetwork` and `NoSpace`.
        """
        session, question = self.session, self.question
        snapshots = snapshots_of(session, question)
        headline = f"`{question.repro.name}` with {_text(question.bad)} instead of {_text(question.good)}"
        session.reporter.report(SearchBegan(headline, ()))  # the search itself says the rest
        head, why = self._snapshot(snapshots, question.bad)
        base, why_not = self._snapshot(snapshots, question.good)
        if head is None and base is None:
            return self._result(GateStatus.UNKNOWN, f"Not judged: neither can be installed: {why.rstrip('.')}.")
        if head is None:
            return self._result(GateStatus.NOT_INSTALLABLE, f"{why.rstrip('.')}.")
        lacking = self._missing(snapshots, base) if base is not None else {}
        missing = dict(self._missing(snapshots, head).items() - lacking.items())  # the update changes nothing of both
        changes = tuple(
            evolve(
                change,
                before=lacking.get(change.name, change.before),
                after=missing.get(change.name, change.after),
            )
            for change in (base.lock.diff(head.lock) if base is not None else ())
        )
        result = evolve(self._result(GateStatus.UNKNOWN, ""), changes=changes, notes=self._notes(head, changes))
        run, why = self._installed(head, base, missing)
        if run is None:
            sentence = f"{_text(question.bad)} can't be installed: {why.rstrip('.')}."
            result = evolve(result, status=GateStatus.NOT_INSTALLABLE, sentence=sentence)
            named = {change.name for change in changes if re.search(rf"\b{re.escape(change.name)}\b", why)}
            return self._with_part(result, snapshots, base, head, named)
        is_enough = not changes or not (question.policy.flaky or question.policy.confirm)
        if run.outcome is Outcome.COMPLETED and is_enough:
            return evolve(result, status=GateStatus.PASSES, sentence=self._passes(changes))
        if base is not None and changes:
            older = self._run(base)
            why_not = f"{_text(question.good)} can't be installed: {older.detail}" if _lacks(older) else ""
        if base is None or why_not:
            return evolve(result, sentence=f"Not judged: {why_not.rstrip('.')}.")
        if not changes:
            sentence = f"{question.repro.name} fails, and the update changes no package: it is not the cause."
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
        name = self.question.repro.name
        if not changes:
            return f"{name} passes: the update changes no package here."
        which = f"all {counted(len(changes), 'change')}" if len(changes) > 1 else "the one change"
        return f"{name} passes with {which} of the update."

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
        withdrawn: list[str] = []
        with contextlib.suppress(NoNetwork):  # the packages themselves may be known
            for change in changes:
                release = self.session.index.known_release(change.name, change.after) if change.after else None
                if release is not None and release.yanked is not None:
                    why = f": {release.yanked}" if release.yanked else ""
                    withdrawn.append(f"{release.project} {release.version} is yanked{why}")
        return (*withdrawn, *head.notes)

    def _missing(self, snapshots: Snapshots, snapshot: Snapshot) -> dict[str, str]:
        """Return the exact versions that the file of a snapshot names and the snapshot lacks, by package."""
        pins = snapshots.pins_of(snapshot.end).requirements
        exact = dict(filter(None, map(exact_version, pins)))
        return {name: text for name, text in exact.items() if not _is(snapshot.lock.version_of(name), text)}

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
        why = self._contradiction(head) if kind_of_file(head.end) == ".txt" else ""
        if why and (base is None or not self._contradiction(base)):
            return None, why
        run = self._run(head)
        return (None, run.detail) if _lacks(run) else (run, "")

    def _run(self, snapshot: Snapshot) -> Observation:
        """Run the tests in a fresh process, unless the store has that run."""
        prober = self.session.prober
        return prober.execute(prober.prepare(evolve(snapshot.itself(), fresh=True)))

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
        self.session.reporter.report(Note("which part of the update passes?"))
        why = ""
        part = None
        with self.session.lanes(self.question.combination.device, self.question.repro) as lanes:
            observer = Observer(self.session.prober, lanes, self.session.index, self.session.reporter)
            observer = evolve(observer, policy=self.question.policy, typed=self.question.typed)
            both = BothEnds(observer, snapshots, head, base)
            changes = {change.name: change for change in result.changes}
            try:
                groups = failures_of(both, result.answer)
                part = Parts(self.session, both, base, head, groups, changes).largest(guilty)
            except (MachineFailedError, UserMistake) as error:
                why = f": {error}"
        if part is None and len(result.changes) == 1 and not why:
            return result
        if part is None:
            return evolve(result, notes=(f"no part of the update is known to pass{why}", *result.notes))
        return evolve(result, part=part)


def _lacks(run: Observation) -> bool:
    """Whether a run has no environment because a package can't be installed."""
    return run.outcome in (Outcome.UNINSTALLABLE, Outcome.UNRESOLVABLE)


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
