"""The sentences of an answer: what was found, how sure it is, and what to type next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from packaging.version import Version

from harness.bisect.answer import Answer, Status
from harness.model import Verdict
from harness.model.step import Step
from harness.search import BisectionStatus
from harness.search.noisy import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.model.culprit import Culprit, Finding, Region
    from harness.planning.plan import Plan
    from harness.search import BisectionResult, Effect


_FEW = 3


def sentence_for(answer: Answer, result: BisectionResult, name: Mapping[int, str]) -> str:
    """One sentence that answers the question, with what is uncertain in it."""
    subject = answer.subject
    tried = [step for step in answer.steps if step.verdict is not Verdict.SKIP]
    oldest = name[min(_positions(tried, name), default=0)]
    newest = name[max(_positions(tried, name), default=0)]
    match answer.status:
        case Status.FOUND:
            text = f"{subject} {answer.first_bad} broke it: {answer.last_good} is good, {answer.first_bad} is bad."
        case Status.FIXED:
            text = f"{subject} {answer.first_good} fixed it: {answer.last_bad} is bad, {answer.first_good} is good."
        case Status.NOT_A_REGRESSION:
            text = (
                f"Not a regression in {subject}: {oldest}, the oldest release that could be tested here, fails in the "
                "same way; nothing that worked before was found."
            )
        case Status.NO_FAILURE:
            runs = sum(step.release == newest and step.verdict is Verdict.GOOD for step in answer.steps)
            text = f"No failure: {subject} {newest} is good" + (f" in {runs} runs of {runs}." if runs > 1 else ".")
        case Status.NOT_FIXED:
            text = f"Not fixed: {subject} {newest}, the newest release that could be tested here, still fails."
        case Status.INCONCLUSIVE:
            text = _inconclusive(answer, result, name)
    moved = [
        f"{name[end.asked]} could not be tested, so {name[end.used]} stands for the {end.end.value} end"
        for end in result.moved_ends
    ]
    text += _untried_between(answer) + _how_sure(answer, result) + _how_far(answer)
    return " ".join([text, *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in moved)])


def advice_for(answer: Answer, plan: Plan) -> str:
    """The one line to type next, or nothing."""
    base = " ".join(["harness bisect", answer.subject, *plan.question.typed])
    last = answer.steps[-1].release if answer.steps else ""
    match answer.status:
        case Status.NO_FAILURE:
            return f"If an older release failed: {base} --bad VERSION; to see which one mended it, add --find-fix"
        case Status.NOT_A_REGRESSION if plan.good is not None:
            return f"To look further back than {plan.releases[plan.good].version}: {base} --good VERSION"
        case Status.NOT_A_REGRESSION if plan.bad is None or plan.bad == len(plan.releases) - 1:
            return ""
        case Status.NOT_A_REGRESSION:
            return f"If a later release fixed it: {base} --find-fix --bad {answer.steps[0].release}"
        case Status.FOUND:
            return f"If a later release fixed it: {base} --find-fix --bad {answer.first_bad}"
        case Status.NOT_FIXED if not plan.question.prereleases:
            return f"To look at pre-releases too: {base} --find-fix --bad {last} --pre"
        case Status.INCONCLUSIVE if answer.good_side is not None:
            return "More runs of the suspects would tell: the same command with --good and --bad around them"
        case Status.INCONCLUSIVE:
            return "Releases that were skipped hide the change; --with, --hold or --python may make them run"
        case _:
            return ""


def _how_sure(answer: Answer, result: BisectionResult) -> str:
    """The chance that it is right and the runs behind it, where that is not plain."""
    good, bad = result.good_side, result.bad_side
    if answer.status not in (Status.FOUND, Status.FIXED) or good is None or bad is None or result.confidence is None:
        return ""
    if not result.flaky and result.confidence >= CONFIDENCE:
        return ""
    sure = f"{math.floor(1000 * result.confidence) / 1000:g} sure"
    if not result.flaky:
        return f" That is {sure}, from {good.runs} runs that passed and {bad.runs} that failed; --confirm runs more."
    where = f"up to {answer.last_bad}" if answer.status is Status.FIXED else f"from {answer.first_bad} on"
    other = "after" if answer.status is Status.FIXED else "before"
    return f" It is flaky: it fails in {bad} runs {where}, and in {good} {other}; that is {sure}."


def _how_far(answer: Answer) -> str:
    """How far a metric differs between the two sides, and from how many runs that is known."""
    effect = answer.effect
    if effect is None or answer.signature is None or answer.status not in (Status.FOUND, Status.FIXED):
        return ""
    newer, side = (answer.first_good, effect.good) if answer.first_good else (answer.first_bad, effect.bad)
    older = effect.bad if answer.first_good else effect.good
    runs = effect.good_runs + effect.bad_runs
    medians = f" {answer.signature.metric} goes from {older:g} to {side:g} with {newer} (medians of {runs} runs)"
    if effect.spread == 0:
        return f" {answer.signature.metric} goes from {older:g} to {side:g} with {newer}, the same in all {runs} runs."
    return f"{medians}: {_difference(effect, flip=answer.first_good is not None)}."


def _difference(effect: Effect, *, flip: bool = False) -> str:
    """The difference and its interval; from the good side to the bad one, or with `flip` the other way."""
    difference, low, high = effect.difference, effect.low, effect.high
    if flip:
        difference, low, high = -difference, -high, -low
    what = f"{effect.confidence:.0%} interval" if effect.confidence else "in all pairs of runs"
    return f"a difference of {difference:+.3g}, {what} {low:+.3g} to {high:+.3g}"


def _untried_between(answer: Answer) -> str:
    """Releases between the two sides that were left out: one of them may have brought the change first."""
    older, newer = (answer.last_good, answer.first_bad) if answer.first_bad else (answer.last_bad, answer.first_good)
    if answer.status not in (Status.FOUND, Status.FIXED) or older is None or newer is None:
        return ""
    between = {
        release: reason.partition(":")[0]
        for release, reason in answer.left_out.items()
        if Version(older) < Version(release) < Version(newer) and not reason.startswith("pre-release")
    }
    if not between:
        return ""
    return f" Between them, and not tried: {_few(f'{release} ({why})' for release, why in between.items())}."


def _inconclusive(answer: Answer, result: BisectionResult, name: Mapping[int, str]) -> str:
    effect = result.effect
    if effect is not None and answer.signature is not None and not (effect.is_clear and result.boundary is None):
        return (
            f"Not sure: {answer.signature.metric} varies by {effect.spread:.3g} between runs of one side, too much to "
            f"tell {_few(answer.suspects)} from noise: the good side ({effect.good_runs} runs) and the bad one "
            f"({effect.bad_runs}) show {_difference(effect)}."
        )
    if result.flaky and result.bad_side is not None:
        runs = result.bad_side.runs + (result.good_side.runs if result.good_side else 0)
        at_best = f", the likeliest of them {result.confidence:.2f}" if result.confidence is not None else ""
        return f"Not sure: it is flaky, and after {runs} runs it can be any of {_few(answer.suspects)}{at_best}."
    if result.status is BisectionStatus.FLAKY:
        which = ", ".join(name[position] for position in result.flaky)
        return f"Not sure: {answer.subject} {which} gave different verdicts when it was run again."
    if result.suspects:
        old, new = (answer.last_good, answer.first_bad) if answer.first_bad else (answer.last_bad, answer.first_good)
        if not old or not new:
            return f"Not sure which: the suspects are {', '.join(answer.suspects)}, which could not be tested."
        return (
            f"Not sure which: the change came after {answer.subject} {old} and not later than {new}; "
            f"suspects are {', '.join(answer.suspects)}, since those between could not be tested."
        )
    if not answer.steps:
        return f"Not sure: no release of {answer.subject} could be tested."
    first = answer.steps[0]
    return (
        f"Not sure: no two releases of {answer.subject} could be judged; "
        f"the first, {first.release}, was {first.verdict.value}: {first.reason}."
    )


def _positions(steps: list[Step], name: Mapping[int, str]) -> list[int]:
    released = {step.release for step in steps}
    return [position for position, release in name.items() if release in released]


def culprit_sentence(answer: Answer, culprit: Culprit) -> str:
    """What of the change made the difference, and how sure that is."""
    finest = culprit.finest
    packages = _few(f"{c.name} {c.after or '(removed)'}" for c in culprit.packages)
    verb = "fix" if answer.status is Status.FIXED else "cause"
    where = ""
    if finest.regions:
        at = _few(_place(region, finest.files) for region in finest.regions)
        where = f", in {finest.files[0]}, at {at}" if len(finest.files) == 1 else f", at {at}"
    elif finest.files:
        where = f", in {_few(finest.files)}"
    if finest.commits:
        return f"{_commit_sentence(finest, verb, packages, where)}{_met(answer, culprit)}"
    if finest.is_proved:
        sure = "reverting that alone undoes it, adding that alone brings it"
        if finest.needs or finest.needed_files:
            needed = _few([*(_place(region, finest.files) for region in finest.needs), *finest.needed_files])
            sure = f"reverting that alone undoes it, adding it brings it together with {needed}"
        lead = f"The {verb} is {packages}"
    elif finest.is_shown_one_way:
        shown = next(proof for proof in finest.proofs if proof.holds)
        lead = f"The suspect is {packages}"
        sure = f"shown one way only ({shown.sentence}: {shown.verdict.value})"
    else:
        lead, sure = f"The suspect is {packages}", "not proved"
    return f"{lead}{where}: {sure}.{_met(answer, culprit)}"


def _met(answer: Answer, culprit: Culprit) -> str:
    """Where users meet a culprit that is not what they named."""
    if any(change.name == answer.subject for change in culprit.packages):
        return ""
    return f" Users meet it with {answer.subject} {answer.first_bad or answer.first_good}."


def _commit_sentence(finding: Finding, verb: str, packages: str, where: str) -> str:
    """Which commit it is, and what its parent and it came to."""
    named = _few(commit.described for commit in finding.commits)
    if finding.is_proved:
        parent, itself = (proof.verdict.value for proof in finding.proofs)
        return f"The {verb} is commit {named} of {packages}{where}: its parent is {parent}, it is {itself}."
    return f"The suspect is commit {named} of {packages}{where}: not proved."


def _place(region: Region, files: tuple[str, ...]) -> str:
    """The lines of a region and what they stand in; its file too, where that is not the only one spoken of."""
    lines = region.after if region.after[1] >= region.after[0] else region.before
    at = f"lines {lines[0]}-{lines[1]}" if lines[1] > lines[0] else f"line {lines[0]}"
    at = f"{at} of {region.function}" if region.function else at
    return at if files == (region.file,) else f"{at} in {region.file}"


def _few(items: Iterable[str]) -> str:
    """Up to three items by name; of more the first two, and how many more."""
    names = list(items)
    if len(names) > _FEW:
        names = [*names[: _FEW - 1], f"{len(names) - _FEW + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
