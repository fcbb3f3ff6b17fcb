"""What to do next: the command that goes on, the packages that are missing, how both ends fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.arguments import OptionGroup
from harness.bisection.answer import Answer, Status
from harness.bisection.failures import raised_in, titled
from harness.model import Observation, Outcome, Repro, Verdict
from harness.model.text import listed, one_line, ranged
from harness.question.project_requirements import declaring
from harness.settings import Settings

if TYPE_CHECKING:
    from harness.model.culprit import Culprit
    from harness.question.question import Question


NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_FILE = re.compile(r"No such file or directory: '([^']+)'")
_WITH_PYTHON = re.compile(r"--python [\d.]+")
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Warning)\b")
_SETUPTOOLS = "setuptools<81"  # later releases have no pkg_resources


def advice_on_machine(run: Observation | None) -> str:
    """Return how to bisect a failure that is taken for one of the machine, "" for a run that was killed."""
    if run is None or run.outcome is not Outcome.MACHINE_FAILED or run.exit_code is None:
        return ""
    return "If that is the bug itself, name it in the signature of a repro, with its message."


def advice_for(answer: Answer, question: Question, newest: str) -> str:
    """Return one line that says what to run next, or ""; `newest` is the newest release that can be run."""
    base = question.command
    older, newer = answer.boundary.ends
    ends = f"--find-fix --bad {older} --good {newer}" if answer.boundary.is_fix else f"--good {older} --bad {newer}"
    if answer.status.is_change and (advice := advice_on_untried(answer.culprits, f"{base} {ends}")):
        return advice
    match answer.status:
        case Status.NO_FAILURE:
            older = "If an older release failed, --find-fix --bad VERSION finds what fixed it"
            return f"{older}{_on_own_files(question.repro)}"
        case Status.FOUND if not any(step.release == newest and step.verdict is Verdict.BAD for step in answer.steps):
            return f"If a later release fixed it: {base} --find-fix --bad {answer.first_bad}"
        case Status.NOT_FIXED if not question.policy.prereleases:
            return f"To look at pre-releases too: {base} --find-fix --bad {answer.steps[-1].release} --pre"
        case Status.NOT_A_REGRESSION | Status.INCONCLUSIVE:
            failed = Verdict.BAD if answer.status is Status.NOT_A_REGRESSION else Verdict.SKIP
            matches = (NO_MODULE.search(step.reason) for step in answer.steps if step.verdict is failed)
            missing = advice_on_missing(match[1] for match in matches if match is not None)
            missing = missing or _advice_on_files(answer, question.repro)
            if not missing and answer.status is Status.NOT_A_REGRESSION and question.good is not None:
                return f"--good VERSION looks further back than {question.good.text}{_on_own_files(question.repro)}"
            return missing
    return ""


def _on_own_files(repro: Repro) -> str:
    """Say in a clause that runs of a command without a project have no files of this folder."""
    if not repro.argv or repro.project:
        return ""
    return "; each run starts in an empty folder, and --project . gives it a copy of this one"


def _advice_on_files(answer: Answer, repro: Repro) -> str:
    """Advise how runs of a command without a project can have the files of this folder, "" if they do not lack any."""
    if not repro.argv or repro.project:
        return ""
    names = (match[1] for step in answer.steps if (match := _NO_FILE.search(step.reason)))
    lacking = [name for name in dict.fromkeys(names) if not Path(name).is_absolute() and Path(name).exists()]
    return f"Runs do not have {listed(lacking)}; --project . gives them a copy of this folder." if lacking else ""


def advice_on_untried(culprits: Iterable[Culprit], command: str) -> str:
    """Return how to run most of the releases beside a change that were not run, "" if no option does.

    `command` is the question without that option.
    """
    by_option: dict[str, list[str]] = {}
    for boundary in (culprit.boundary for culprit in culprits):
        for release, why in boundary.untried.items():
            python = _WITH_PYTHON.search(why)
            if option := f"--build {boundary.subject}" if "--build" in why else python[0] if python is not None else "":
                by_option.setdefault(option, []).append(release)
    if not by_option:
        return ""
    option, releases = max(by_option.items(), key=lambda item: len(item[1]))
    return f"To run {ranged(releases)}, too: {command} {option}"


def again(run: Observation, typed: Iterable[str] = ()) -> str:
    """Return the command that repeats a run of a question with these options (`Settings.typed`).

    What a person judged can only be looked at again. "" for a run with files of two releases, which are not kept.
    """
    if run.mixture:
        return ""
    if run.by_hand:
        return " ".join(["harness shell", run.by_hand, *Settings.words_of(typed)])
    return " ".join(["harness probe --again", run.key, *Settings.words_of(typed, OptionGroup.RUNS)])


def advice_on_ends(good_run: Observation, good: str, bad: str) -> str:
    """Say how the runs of two ends failed, with the last words of each; "" if the good one passes: tests are flaky."""
    if good_run.outcome is Outcome.COMPLETED:
        return ""
    both = f"The good end fails with {one_line(good, 200)}; the bad end with {one_line(bad, 200)}"
    return advice_on(good_run) or both


def advice_on(run: Observation) -> str:
    """Say how a run failed, or most tests of it; "" if none did."""
    titles = Counter(map(titled, raised_in(run)))
    what = "Most tests fail" if titles.total() > 1 else "It fails"
    return f"{what} with {titles.most_common(1)[0][0]}" if titles else ""


def advice_on_missing(modules: Iterable[str], declared: Mapping[str, tuple[str, str]] | None = None) -> str:
    """Advise which missing packages to install, "" if there are none.

    `declared` has the requirement and the file of the project that declares it, by module.
    """
    missing = dict.fromkeys(modules)
    if not missing:
        return ""
    known = dict(declared or {})
    wanted = [known[name][0] if name in known else _SETUPTOOLS if name == "pkg_resources" else name for name in missing]
    options = " ".join(f"--with {text}" if re.fullmatch(r"[\w.-]+", text) else f"--with '{text}'" for text in wanted)
    places = [f"{known[name][0]} is declared in {known[name][1]}" for name in missing if known.get(name, ("", ""))[1]]
    note = "; ".join(places) if len(places) == len(missing) else "a package may be called otherwise"
    return f"Not installed: {listed(missing)}. {options} adds what is missing; {note}."


def install_missing(repro: Repro, runs: Iterable[Observation], tests: Collection[str] | None = None) -> str:
    """Advise which missing packages to install that runs of a repro, or only these tests, could not import."""
    modules = [name for run in runs for name in missing_in(run, tests)]
    return advice_on_missing(modules, declaring(Path(repro.project), modules) if repro.project else {})


def missing_in(run: Observation, tests: Collection[str] | None = None) -> Iterator[str]:
    """Yield the top-level modules that a run, or only these tests of it, could not import."""
    of_tests = [test.exception for test in run.tests if test.id in (tests or ())]
    for raised in raised_in(run) if tests is None else [exception for exception in of_tests if exception is not None]:
        for exception in raised.chain():
            is_import = exception.name == "ModuleNotFoundError" or "ModuleNotFoundError" in exception.message
            named = NO_MODULE.search(exception.message) if is_import else None
            if named is not None and "." not in named[1]:
                yield named[1]


def cut_short(end: str, runs: Sequence[Observation]) -> tuple[str, ...]:
    """Say that a run of an end was stopped at its time limit, so that the tests after that have no result."""
    stopped = next((run for run in runs if run.outcome is Outcome.TIMED_OUT and len(run.tests) > 1), None)
    if stopped is None:
        return ()
    return (f"{end} {stopped.detail}: later tests did not run (name fewer tests with --run to have them, too)",)


def last_words(log: str) -> str:
    """Return the last line of a log that starts with an exception, else its last line; "" for an empty log."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1] if lines else "")


def advice_on_limits(limits: Sequence[str]) -> str:
    """Advise how to lift the requirements that hold back newer releases, "" if there are none."""
    if not limits:
        return ""
    sentence = f"The project's own requirements hold back newer releases: {listed(limits)}"
    pinned = [text for text in limits if "==" in text]
    others = [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in limits if "==" not in text]
    ways = ["--unpin ignores exact pins"] if pinned else []
    ways += [f"{' '.join(f'--with {name}' for name in others)} takes the newest"] if others else []
    return f"{sentence} ({', '.join(ways)})."
