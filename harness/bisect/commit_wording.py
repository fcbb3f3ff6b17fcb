"""The sentences of an answer between two commits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from harness.bisect.answer import Answer, Status

if TYPE_CHECKING:
    from harness.planning.plan import Plan
    from harness.repository.git import Repository


def sentence_of(answer: Answer, repository: Repository, why_not: str) -> str:
    """Return one sentence that answers the question; `why_not` says why no commit can be named."""
    name = answer.subject
    if answer.culprit is not None:
        commit = answer.culprit.finest.commits[0].described
        if answer.status is Status.FIXED:
            return f"{name} commit {commit} fixed it: {answer.last_bad} is bad, it is good."
        return f"{name} commit {commit} broke it: {answer.last_good} is good, it is bad."
    seen = {step.release: step for step in answer.steps}
    newest, oldest = answer.steps[0].release, answer.steps[-1].release
    match answer.status:
        case Status.NO_FAILURE:
            good = next(step.release for step in answer.steps if step.verdict.value == "good")
            return f"No failure: {name} commit {repository.commit(good)} is good."
        case Status.NOT_A_REGRESSION:
            return f"Not a regression between these commits: {name} commit {repository.commit(oldest)} fails too."
        case Status.NOT_FIXED:
            return f"Not fixed: {name} commit {repository.commit(newest)} still fails."
    if why_not:
        return f"Not sure which: {why_not}."
    skipped = next(step for step in seen.values() if step.verdict.value == "skip")
    return f"Not sure: {name} commit {repository.commit(skipped.release)} could not be judged: {skipped.reason}."


def what_next(plan: Plan, repository: Repository, commit: str) -> str:
    """Return a sentence with the command that runs the found commit again."""
    typed = [word for word in plan.question.typed if word != "--repro"] or [plan.repro.name]
    folder = shlex.quote(f"{plan.subject} @ {repository.folder}@{commit}")
    return f"To run that commit again: harness probe {' '.join(typed)} --with {folder}"
