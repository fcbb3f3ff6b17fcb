"""The sentences of an answer: what was found, how sure it is, and the next command."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from attrs import evolve

from harness.bisection.answer import Answer, Failure, Status
from harness.bisection.failures import failing_of
from harness.model import Change, Outcome, Signature, Verdict, name_of
from harness.model.boundary import Boundary, Effect
from harness.model.culprit import Commit, Culprit, Finding, Region
from harness.model.observation import EXIT
from harness.model.text import counted, listed, listed_in_order, numbered_lines, one_line, ranged
from harness.model.verdict import FAILED_DIFFERENTLY, runs_of
from harness.question.ends import End, EndKind, end_words
from harness.question.lower_bounds import admits
from harness.search import CONFIDENCE, LineResult, LineStatus


def sentence_of(answer: Answer) -> str:
    """Return the sentences that answer a question, and how certain that is if it is less than usual."""
    lifted = (
        f"Without the project's own {listed(answer.comparison.lifted)}, with which nothing fails: "
        if answer.comparison.lifted
        else ""
    )
    return lifted + _answer(answer) + _how_sure(answer) + _how_far(answer)


def _answer(answer: Answer) -> str:
    boundary = answer.boundary
    subject, unit, repro = answer.subject, boundary.change.unit, answer.repro
    oldest, newest = _outermost(boundary)
    good_end = answer.question.ends.get("good")
    notes = "; ".join(dict.fromkeys(failure.note for failure in answer.failures if failure.note))
    match answer.status:
        case Status.FOUND | Status.FIXED:
            return change_in_words(answer)
        case Status.NO_FAILURE:
            runs = sum(step.release == newest and step.verdict is Verdict.GOOD for step in boundary.steps)
            where = f"with {subject} {newest}" if newest else _end(answer, "bad")
            return f"No failure: {repro} passes {where}" + (f" in {runs} runs of {runs}." if runs > 1 else ".")
        case Status.NOT_FIXED:
            return f"Not fixed: {subject} {newest}, the newest {unit} that could be tested here, still fails."
        case Status.NOT_A_REGRESSION if notes:
            return f"Not a regression: {notes}."
        case Status.NOT_A_REGRESSION if oldest:
            is_named = oldest == (good_end or {}).get("text")
            which = "your good end" if is_named else f"the oldest {unit} that could be tested here"
            return f"Not a regression in {subject}: {oldest}, {which}, fails in the same way."
        case Status.NOT_A_REGRESSION if answer.comparison.flaky:
            return f"Only flaky tests newly fail {_end(answer, 'bad')}: {listed(answer.comparison.flaky)}."
        case Status.NOT_A_REGRESSION if good_end is None:
            maybe = "it may never have worked, or it needs something that is not installed"
            if not answer.comparison.back_to:
                return f"{repro} fails {_end(answer, 'bad')}, and no older packages could be tried: {maybe}."
            tried = f"every older set of packages that was tried, too, back to {answer.comparison.back_to}"
            return f"{repro} fails with {tried}: {maybe}."
        case Status.NOT_A_REGRESSION:
            return (
                f"Nothing that fails {_end(answer, 'bad')} passes {_end(answer, 'good')}: "
                f"{listed(answer.comparison.failing_at_both) or repro} fails at both ends."
            )
        case Status.MACHINE:
            return f"{answer.comparison.machine[:1].upper()}{answer.comparison.machine[1:].rstrip('.')}."
        case Status.INCONCLUSIVE if answer.comparison.not_rebuilt:
            return f"Not sure: the good end could not be rebuilt: {answer.comparison.not_rebuilt}."
        case _:
            return f"Not sure: {notes or 'no culprit could be proved'}."


def _outermost(boundary: Boundary) -> tuple[str, str]:
    """Return the oldest and the newest candidate that were judged, or else the oldest of all; "" without candidates."""
    tried = {step.release for step in boundary.steps if step.verdict is not Verdict.SKIP}
    names = [candidate.version for candidate in boundary.candidates]
    judged = [name for name in names if name in tried] or names[:1]
    return (judged[0], judged[-1]) if judged else ("", "")


def moved_ends(result: LineResult, names: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each end that could not be tested, with the candidate that was taken instead."""
    return tuple(
        f"{names[end.given]} could not be tested, so {names[end.used]} was taken as the {end.end.value} end"
        for end in result.moved_ends
    )


def _how_sure(answer: Answer) -> str:
    """Say how probable the answer is and from how many runs; "" if it is not flaky and certain enough."""
    known = answer.boundary.certainty
    good, bad = known.good_side, known.bad_side
    is_single = answer.status.is_change and len(answer.culprits) == 1
    if not is_single or good is None or bad is None or known.confidence is None:
        return ""
    if not known.is_mixed and known.confidence >= CONFIDENCE:
        return ""
    sure = f"{math.floor(1000 * known.confidence) / 1000:g} sure"
    if not known.is_mixed:
        return f" That is {sure}, from {good.runs} runs that passed and {bad.runs} that failed; --confirm runs more."
    where = f"up to {answer.last_bad}" if answer.status is Status.FIXED else f"from {answer.first_bad} on"
    given = ", if the bug really never shows at the good end" if known.trusts_ends else ""
    other = "after" if answer.status is Status.FIXED else "before"
    return f" It is flaky: it fails in {bad} runs {where}, and in {good} {other}; that is {sure}{given}."


def _how_far(answer: Answer) -> str:
    """Say how a metric differs between the two sides, and in how many runs; "" without a metric."""
    effect = answer.boundary.certainty.effect
    if effect is None or answer.signature is None or not answer.status.is_change or len(answer.culprits) > 1:
        return ""
    newer, side = (answer.first_good, effect.good) if answer.first_good else (answer.first_bad, effect.bad)
    older = effect.bad if answer.first_good else effect.good
    runs = effect.good_runs + effect.bad_runs
    goes = f" {answer.signature.measure} goes from {older:g} to {side:g} with {newer}"
    if effect.spread == 0:
        return f"{goes}, the same in all {runs} runs."
    return f"{goes} (medians of {runs} runs): {_difference(effect, flip=answer.first_good is not None)}."


def _difference(effect: Effect, *, flip: bool = False) -> str:
    """Describe the difference and its interval, from the good side to the bad one; reversed with `flip`."""
    difference, low, high = effect.difference, effect.low, effect.high
    if flip:
        difference, low, high = -difference, -high, -low
    what = f"{effect.confidence:.0%} interval" if effect.confidence else "in all pairs of runs"
    return f"a difference of {difference:+.3g}, {what} {low:+.3g} to {high:+.3g}"


def between_in_words(subject: str, older: str, newer: str, suspects: Sequence[str]) -> str:
    """Say in a clause that the change hides among `suspects`, which end with `newer`."""
    return (
        f"the change came after {subject} {older} and not later than {newer}; "
        f"suspects are {ranged(suspects)}, because those between could not be tested"
    )


def why_unsure(boundary: Boundary, result: LineResult, signature: Signature | None) -> str:
    """Say in a clause why the search over a line is not sure which candidate it is."""
    known, unit, subject = boundary.certainty, boundary.change.unit, subject_of(boundary)
    effect, suspects = known.effect, boundary.suspects
    if result.moved_ends and result.boundary is None and not result.suspects:
        return _unjudged_end(boundary, result, signature)
    if effect is not None and signature is not None and not effect.is_clear:
        return (
            f"{signature.measure} varies by {effect.spread:.3g} between runs of one side, too much to "
            f"tell {listed(suspects)} from noise: the good side ({effect.good_runs} runs) and the bad one "
            f"({effect.bad_runs}) show {_difference(effect)}"
        )
    if result.flaky and known.bad_side is not None:
        runs = known.bad_side.runs + (known.good_side.runs if known.good_side else 0)
        at_best = f"; the likeliest has {100 * known.confidence:.0f} %" if known.confidence is not None else ""
        return f"it is flaky, and after {runs} runs it can be any of {ranged(suspects)}{at_best}"
    if result.status is LineStatus.FLAKY:
        which = ", ".join(boundary.candidates[position].version for position in result.flaky)
        return f"{subject} {which} gave different verdicts when it was run again"
    if not boundary.steps:
        return f"no {unit} of {subject} could be tested"
    first = boundary.steps[0]
    if suspects and all(step.verdict is Verdict.SKIP for step in boundary.steps):
        none = f"none of the {counted(len(suspects), unit)} of {subject} could be tested"
        other = _otherwise(boundary, first.release, first.reason, signature)
        return f"{other}; {none}" if other else none
    if suspects:
        old, new = boundary.ends
        if not old or not new:
            return f"the suspects are {ranged(suspects)}, which could not be tested"
        return between_in_words(subject, old, new, suspects)
    return (
        f"no two {unit}s of {subject} could be judged; "
        f"the first, {first.release}, was {first.verdict.word}: {first.reason}"
    )


def _unjudged_end(boundary: Boundary, result: LineResult, signature: Signature | None) -> str:
    """Say why the answer is open: the end that it is about could not be judged."""
    is_about_bad = result.status is LineStatus.NO_FAILURE
    end = next(end for end in result.moved_ends if (end.end is Verdict.BAD) == is_about_bad)
    name, used = (boundary.candidates[position].version for position in (end.given, end.used))
    reason = next((step.reason for step in boundary.steps if step.release == name), "")
    subject = subject_of(boundary)
    why = _otherwise(boundary, name, reason, signature) or f"{subject} {name} could not be tested: {reason}"
    return f"{why}; {subject} {used} is {'good' if is_about_bad else 'bad'}"


def _otherwise(boundary: Boundary, candidate: str, reason: str, signature: Signature | None) -> str:
    """Say that a candidate fails in another way than the given signature says; "" if it does not."""
    if signature is None or signature.captured or not reason.startswith(FAILED_DIFFERENTLY):
        return ""
    how = reason.removeprefix(FAILED_DIFFERENTLY)
    return f"{subject_of(boundary)} {candidate} fails, but not as the signature says ({signature}): {how}"


def runs_made(answer: Answer) -> str:
    """Say how many runs the answer took, such as "12 runs of 5 releases, 2 known already"."""
    if answer.comparison.runs:  # most of these runs are of more than one package
        return counted(answer.effort.probes, "run") if answer.effort.probes else "all runs known already"
    runs = runs_of(answer.effort.probes, answer.steps, answer.boundary.change.unit)
    if not answer.findings or not answer.effort.culprit_probes:
        return runs
    return f"{runs}; {counted(answer.effort.culprit_probes, 'run')} to find the culprit"


def packages_of(finding: Finding) -> str:
    """Name the packages of a finding with their releases."""
    if finding.is_tied:
        return f"{' or '.join(map(_named, finding.packages))}: no run could tell which"
    return listed(map(_named, finding.packages))


def _moved_along(culprit: Culprit) -> list[str]:
    """Name the packages other than the one that was searched, with their releases.

    If only their lines tell that they are to blame, the releases between theirs were not tried, so both are named.
    """
    is_wide = bool(culprit.findings) and culprit.findings[0].is_tied
    along = [change for change in culprit.packages if change.name != culprit.package]
    return [str(change) if is_wide else _named(change) for change in along]


def _named(change: Change) -> str:
    return f"{change.name} {change.after or '(removed)'}"


def state_of(finding: Finding) -> str:
    """A phrase for how well one level is proved."""
    if finding.is_proved:
        return "proved both ways"
    if finding.proofs and all(proof.holds for proof in finding.proofs):
        return "shown both ways"
    return "shown one way only" if finding.is_shown_one_way else "not proved"


def _located(regions: Iterable[Region], finding: Finding) -> list[str]:
    """Name the functions of regions, with their files and lines in brackets."""
    places = []
    older = finding.packages[0].before if len(finding.packages) == 1 else None
    for (file, function, is_there), lines in _by_place(regions).items():
        at = f"{file}, {numbered_lines(lines)}" + (f" of {older}" if older and not is_there else "")
        places.append(f"{function} ({at})" if function else at)
    return places


def _places(finding: Finding) -> str:
    """Name the regions of a finding; without regions its files."""
    return listed(_located(finding.regions, finding) or finding.files)


def _by_place(regions: Iterable[Region]) -> dict[tuple[str, str, bool], list[tuple[int, int]]]:
    """The first and last lines of regions by their file and function, and whether the newer release has them.

    Lines that it removed are numbered as in the older release.
    """
    places: dict[tuple[str, str, bool], list[tuple[int, int]]] = {}
    for region in regions:
        is_there = region.after[1] >= region.after[0]
        lines = region.after if is_there else region.before
        places.setdefault((region.file, region.function, is_there), []).append(lines)
    return places


def _end(answer: Answer, which: str) -> str:
    named = answer.question.ends[which]
    if named is None:
        return ""
    moment = datetime.fromisoformat(named["moment"]) if "moment" in named else None
    commit = Commit(named["commit"], "", "", "") if "commit" in named else None
    end = End(EndKind(named["kind"]), named["text"], moment, commit=commit)
    release = f"{answer.question.subject} {end.text}".strip()  # without a subject, the end names the package
    return f"with {release}" if end.kind is EndKind.RELEASE else end_words(end)


def change_in_words(answer: Answer) -> str:
    """Say since when it fails, or in what it is fixed.

    `14 tests fail: 9 since numpy 2.0.0 (np.asfarray was removed), 3 since pandas 2.2.0, 2 are flaky`.
    """
    alike: dict[object, list[Failure]] = {}
    for failure in answer.failures:
        releases = frozenset(culprit.release for culprit in failure.culprits)
        alike.setdefault(releases or failure.note, []).append(failure)
    reasons = [(_tests_of(failures), max(map(_since, failures), key=len)) for failures in alike.values()]
    tests = _tests_of(answer.failures)
    is_fix = answer.status is Status.FIXED
    if not tests:
        return f"{answer.repro} {'is fixed' if is_fix else 'fails'} {' and '.join(since for _, since in reasons)}."
    parts = [f"{_numbered(some)} {since}" if len(reasons) > 1 else since for some, since in reasons]
    if answer.comparison.flaky:
        parts.append(f"{len(answer.comparison.flaky)} are flaky")
    if tests == {EXIT}:
        subject = f"The exit code {'is 0 again' if is_fix else 'is not 0'}"
    else:
        verb = ("is fixed" if len(tests) == 1 else "are fixed") if is_fix else ("fails" if len(tests) == 1 else "fail")
        subject = f"{counted(len(tests - {EXIT}), 'test')}{' and the exit code' if EXIT in tests else ''} {verb}"
    return f"{subject}{': ' if len(parts) > 1 else ' '}{', '.join(parts)}."


def _tests_of(failures: Iterable[Failure]) -> set[str]:
    return {test for failure in failures for test in failure.tests}


def _numbered(tests: set[str]) -> str:
    """Return how many tests these are, with the exit code by its name."""
    number = len(tests - {EXIT})
    return " and ".join([str(number)] * bool(number) + ["the exit code"] * (EXIT in tests))


def _since(group: Failure) -> str:
    if not group.culprits:
        return f"for an unknown reason ({group.note})"
    joined = dict.fromkeys(_culprit(culprit, group.tests) for culprit in group.culprits)
    return f"{'in' if group.culprits[0].boundary.is_fix else 'since'} {' and '.join(joined)}"


def _culprit(culprit: Culprit, tests: tuple[str, ...]) -> str:
    boundary = culprit.boundary
    along = _moved_along(culprit)
    notes = [evidence.did for evidence in culprit.evidence[:1] if evidence.did]
    if len(along) == len(culprit.packages):
        notes.append(f"the {_label(culprit).lower()} is {listed(along)}")
        along = []
    if culprit.finest is not None and culprit.finest.is_tied:
        notes.append(f"or {listed(along)}, which changed with it: no run could tell which")
        along = []
    text = _newer(culprit) + (f" together with {' and '.join(along)}" if along else "")
    if culprit.companions:
        held = [companion.constraint or companion.subject for companion in culprit.companions]
        notes.append(f"{boundary.constraint or culprit.package} needs {listed(held)} alongside")
    reasons = {release: re.split(r": | \(--", why)[0] for release, why in boundary.left_between.items()}
    for why in dict.fromkeys(reasons.values()):
        which = [release for release, reason in reasons.items() if reason == why]
        notes.append(f"{ranged(which)} before it not run: {why}")
    if boundary.message:
        failing = failing_of(boundary.sides[-1], tests) if boundary.sides else tests
        some = f", {len(failing)} of them" if len(failing) < len(tests) else ""
        message = one_line(boundary.message.removeprefix(FAILED_DIFFERENTLY), 120)
        notes.append(f"there with another message{some}: {message}")
    return f"{text} ({'; '.join(notes)})".replace(" releases) (", " releases; ") if notes else text


def _newer(culprit: Culprit) -> str:
    """Name the candidate with which users meet the change."""
    boundary, (older, newer) = culprit.boundary, culprit.boundary.ends
    who = subject_of(boundary)
    if newer is None:
        return f"{who} {older} is no longer installed"
    if len(boundary.suspects) > 1:
        return f"one of {who} {ranged(boundary.suspects)}"
    commits = culprit.findings[-1].commits if culprit.findings and boundary.change.unit == "commit" else ()
    return f"{who} commit {commits[0].described}" if commits else f"{who} {newer}"


def head_of(answer: Answer) -> list[tuple[str, str]]:
    """Return label and text of each row; last good and first bad only if there are not several culprits."""
    if answer.status not in (Status.FOUND, Status.FIXED, Status.INCONCLUSIVE):
        return []
    culprits, boundary = answer.culprits, answer.boundary
    rows: list[tuple[str, str]] = []
    if len(culprits) < 2:
        labels = ("Last bad", "Fixed in") if boundary.is_fix else ("Last good", "First bad")
        absent = f"{boundary.subject} (absent)" if culprits else ""
        rows = [
            (label, f"{subject_of(boundary)} {candidate}" if candidate else absent)
            for label, candidate in zip(labels, boundary.ends, strict=True)
        ]
    if len(culprits) == 1 and boundary.untried:
        rows[1] = (labels[1], _newer(culprits[0]))
        rows += _rows_of(culprits[0]) if culprits[0].findings else ()
    elif len(culprits) < 2 and len(boundary.suspects) > 1:
        rows.append(("Suspects", listed_in_order((candidate, True) for candidate in boundary.suspects)))
    else:
        rows += [row for culprit in culprits for row in _rows_of(culprit)]
    rows += [
        (f"{step.replace('_', ' ').capitalize()}", by) for step, by in answer.question.files.items() if step != "run"
    ]
    rows += [("Came with", text) for text in dict.fromkeys(map(_introduced, culprits)) if text]
    if workaround := _workaround(answer):
        is_written = "read_by" in answer.question.files and answer.constraints
        rows.append(("Workaround", f"write with {workaround}" if is_written else workaround))
    advice = _advice_of(answer)
    return [
        *rows,
        *(("Advice", advised if len(culprits) < 2 else f"{who}: {advised}") for advised, who in advice.items()),
    ]


def subject_of(boundary: Boundary) -> str:
    """Return what the candidates of a search are candidates of, in words."""
    return boundary.change.unit if boundary.change.unit == "Python" else boundary.subject


def _rows_of(culprit: Culprit) -> list[tuple[str, str]]:
    """Return the rows of a culprit: what is proved, lines that are only suspected apart from it, and what changed."""
    findings = culprit.findings
    proved = tuple(finding for finding in findings if finding.is_proved)
    is_explained = any(evidence.did for evidence in culprit.evidence)
    changes = [("Change", cause) for cause in (findings[-1].causes if findings and not is_explained else ())]
    if culprit.is_proved or not proved:
        return [(_label(culprit), cause_of(culprit)), *changes]
    known = evolve(culprit, findings=proved)
    return [
        (_label(known), cause_of(known)),
        ("Suspect", f"its change of {_places(findings[-1])}, {state_of(findings[-1])}"),
        *changes,
    ]


def _label(culprit: Culprit) -> str:
    if not culprit.is_proved:
        return "Suspect"
    return "Fix" if culprit.boundary.is_fix else "Culprit"


def _workaround(answer: Answer) -> str:
    """The constraints; between two sets of packages also whether the newest packages that they allow were run."""
    if not answer.constraints or not answer.comparison.runs:
        return answer.constraint
    them = "it" if len(answer.constraints) == 1 else "them"
    run = answer.verified_by
    if run is None:
        return f"{answer.constraint} (not confirmed by a run)"
    sides = {side.key for culprit in answer.culprits for side in culprit.boundary.sides}
    shown = f"nothing else newly fails with {them}"
    if run.outcome is Outcome.COMPLETED:
        shown = f"a run with {them} passed"
    elif run.key in sides:
        shown = f"the tests that it broke pass with {them}"
    unmet = contradicted(answer)
    return f"{answer.constraint} ({shown}{f', without {listed(unmet)}' if unmet else ''})"


def contradicted(answer: Answer) -> tuple[str, ...]:
    """Return the project's own requirements that the run with the constraints does not meet."""
    lock = answer.verified_by.lock if answer.verified_by is not None else None
    versions = {text: lock.version_of(name_of(text)) for text in answer.comparison.not_kept} if lock is not None else {}
    return tuple(text for text, version in versions.items() if version is not None and not admits(text, version))


def cause_of(culprit: Culprit) -> str:
    """Say in one sentence what the culprit did: "shop 1.2 changed sell (shop/money.py, lines 10-11)"."""
    boundary = culprit.boundary
    did = next((evidence.did for evidence in culprit.evidence if evidence.did), "")
    if not culprit.findings:
        if len(boundary.suspects) > 1:
            return f"{boundary.subject}, one of {listed(boundary.suspects)}"
        return f"{subject_of(boundary)} {boundary.ends[1] or '(removed)'} {did}".rstrip()
    finest = culprit.findings[-1]
    is_range = bool(boundary.untried) and [change.name for change in finest.packages] == [boundary.subject]
    who = _newer(culprit) if is_range else packages_of(finest)
    if len(along := _moved_along(culprit)) == len(finest.packages):
        who = listed(along)
    if finest.commits:
        commits = f"commit {listed(commit.described for commit in finest.commits)}"
        return f"{boundary.subject} {commits}" if boundary.change.unit == "commit" else f"{who}, {commits}"
    where = _places(finest)
    if did:
        return f"{who} {did}: {where}" if finest.regions else f"{who} {did}"
    return f"{who} changed {where}" if where else who


def _introduced(culprit: Culprit) -> str:
    """Say which commit of the user's repository brought a culprit in; "" if its history does not tell."""
    introduction = culprit.introduction
    if introduction is None:
        return ""
    if introduction.commit is None:
        return f"no commit yet: {introduction.file} has {culprit.package} {introduction.version}"
    return f"{culprit.package}: commit {introduction.commit.described}, in {introduction.file}"


def _advice_of(answer: Answer) -> dict[str, str]:
    """What the releases themselves say to use instead, and the release that says it."""
    advice: dict[str, str] = {}
    for culprit in answer.culprits:
        advised = next((evidence.advice for evidence in culprit.evidence if evidence.advice), "")
        if advised and not culprit.boundary.is_fix:
            names = listed(change.name for change in culprit.packages)
            advice.setdefault(advised, f"{names} {culprit.boundary.ends[1] or ''}".rstrip())
    return advice
