"""The question between releases of a subject: its line, how it is announced, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen
from packaging.version import Version

from harness.bisection.advice import advice_for
from harness.bisection.answer import Answer
from harness.bisection.boundaries import LineQuestion, candidates_of
from harness.probing import Judge
from harness.probing.line import Line, left_out_words
from harness.question.releases import ReleaseLine, find_anchor, line_of, why_left_out

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.model import Lock
    from harness.question.question import Question
    from harness.session import Session


@frozen(kw_only=True)
class ReleaseQuestion(LineQuestion):
    """Which release of a subject? `newest` is the newest one that can be run."""

    newest: str

    def left_out(self, names: Collection[str]) -> dict[str, str]:
        """Return the releases left out between the outermost judged ones, with their reasons."""
        tried = list(map(Version, names))
        if not tried:
            return {}
        return {name: why for name, why in self.reasons.items() if min(tried) <= Version(name) <= max(tried)}

    def advice(self, answer: Answer) -> str:
        """Return the next command, or what is missing."""
        return advice_for(answer, self.question, self.newest)


def release_question(session: Session, question: Question) -> ReleaseQuestion:
    """Return the question about the releases of a subject.

    Raises `UnknownProject`, `UnknownRelease`, `UserMistake` and `NoNetwork`.
    """
    line = line_of(question, index=session.index, interpreter=session.interpreter)
    question = line.question
    lock, anchor = find_anchor(line, session.prober)
    probes = line.probes(session.prober, lock, anchor)
    return ReleaseQuestion(
        line=Line(question.subject, line.names, probes, line.good, line.bad, question.policy.find_fix),
        question=question,
        prober=session.prober,
        judge=Judge(question.repro.signature, session.store),
        depth=question.depth,
        announced=_announced(line, session, lock),
        candidates=candidates_of(line.releases),
        reasons=line.left_out,
        newest=_newest(line, session),
    )


def _newest(line: ReleaseLine, session: Session) -> str:
    """Return the newest release of the subject that can be run, also beyond the line."""
    releases = reversed(session.index.releases(line.question.subject))
    usable = (release for release in releases if not why_left_out(release, line.question, session.interpreter))
    return next((str(release.version) for release in usable), "")


def _announced(line: ReleaseLine, session: Session, lock: Lock | None) -> tuple[str, tuple[str, ...]]:
    """Return the headline of a search, and the choices made for the user; `lock` is that of its first environment."""
    question, repro, shared = line.question, line.question.repro, line.question.combination
    verb = "fixed" if question.policy.find_fix else "broke"
    headline = (
        f"looking for the release that {verb} {repro.name}: {question.subject} {line.names[0]} to {line.names[-1]}, "
        f"{len(line.names)} releases, Python {shared.python}, {shared.device.value}"
    )
    details = list(question.notes)
    estimate = session.prober.builder.estimate(lock) if lock is not None else None
    if estimate is not None and not estimate.is_nothing:
        details.append(f"disk space for the first environment: {estimate} (--max-disk limits the harness's own cache)")
    if repro.signature is not None and repro.signature.is_unbounded:
        details.append(f"both ends are measured: {repro.signature.measure}")
    elif repro.signature is not None:
        details.append(f"the bug is recognised by: {repro.signature}")
    details += left_out_words(line.left_out)
    return headline, tuple(details)
