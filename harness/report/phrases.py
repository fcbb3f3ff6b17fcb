"""The sentences of a report: how sure it is, for whom, on which device, and its limits."""

from __future__ import annotations

import json
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from harness.bisection.advice import again
from harness.bisection.answer import Answer, QuestionRecord, Status
from harness.bisection.wording import state_of
from harness.model import Device, Observation, Repro, Signature, normalized_name
from harness.model.text import listed, ranged
from harness.report.commands import local_versions
from harness.run.devices import choose_device
from harness.search import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report.archive import StoredAnswer


def certainty(answer: Answer) -> str:
    """A phrase for how sure the answer is."""
    if answer.status is Status.INCONCLUSIVE:
        return f"not certain; the suspects are {ranged(answer.suspects)}" if answer.suspects else "not certain"
    if answer.status is Status.MACHINE:
        return "no package was judged"
    if answer.status not in (Status.FOUND, Status.FIXED):
        return "certain for the releases that were run"
    if any(culprit.boundary.untried for culprit in answer.culprits):
        return f"not certain which release: one of {ranged(answer.suspects)}, of which only the last could be run"
    known = answer.boundary.certainty
    is_sure = not known.is_mixed and (known.confidence is None or known.confidence >= CONFIDENCE)
    release = f"the release is {'certain' if is_sure else 'likely'}: both sides of the change were run"
    if not answer.findings:
        return f"{release}; not bisected below the release"
    finest = answer.findings[-1]
    if finest.is_proved:
        return f"proved both ways, down to the {finest.level.value}"
    proved = [finding for finding in answer.findings if finding.is_proved]
    lead = f"proved both ways down to the {proved[-1].level.value}" if proved else release
    return f"{lead}; the {finest.level.value} is a suspect, {state_of(finest)}"


def package_kind(answer: Answer) -> str:
    """ "culprit" if some level is proved, or without levels the release, else "suspect"."""
    is_proved = any(finding.is_proved for finding in answer.findings)
    is_proved = is_proved or any(culprit.is_proved for culprit in answer.culprits[:1])
    return "culprit" if is_proved else "suspect"


def title_of(answer: Answer) -> str:
    """A title for an issue."""
    match answer.status:
        case Status.FOUND:
            return f"{_changed(answer)} {'breaks' if len(answer.culprits) < 2 else 'break'} {answer.repro}"
        case Status.FIXED:
            return f"{_changed(answer)} {'fixes' if len(answer.culprits) < 2 else 'fix'} {answer.repro}"
        case _:
            return f"{answer.subject} with {answer.repro}: {answer.status.value.replace('-', ' ')}"


def _changed(answer: Answer) -> str:
    """The releases with which it changed; several of a package if those before it were not run."""
    if len(answer.culprits) > 1:
        return listed(culprit.named for culprit in answer.culprits)
    if answer.boundary.untried:
        return f"One of {answer.subject} {ranged(answer.suspects)}"
    return f"{answer.subject} {answer.boundary.ends[1]}"


def recipient_of(answer: Answer) -> str:
    """Whom the report is for, if the culprit is not the subject; "" otherwise."""
    if not answer.findings or any(change.name == answer.subject for change in answer.findings[-1].packages):
        return ""
    names = " and ".join(dict.fromkeys(change.name for change in answer.findings[-1].packages))
    moved = ", ".join(str(change) for change in answer.findings[-1].packages)
    kind = package_kind(answer)
    return (
        f"This is for the maintainers of {names}, not of {answer.subject}: the {kind} is {moved}. "
        f"Users hit it from {answer.subject} {answer.first_bad or answer.first_good} on."
    )


def failure_facts(stored: StoredAnswer) -> list[tuple[str, str]]:
    """How a failure is recognised and where it was raised, as label and text."""
    rows = [recognised_by(stored.answer.signature), ("Fails in", _failing_frame(stored))]
    return [(label, text) for label, text in rows if text]


def recognised_by(signature: Signature | None) -> tuple[str, str]:
    """A signature, as label and text; the text is "" without one."""
    return "Recognised by", str(signature) if signature else ""


def facts_of(stored: StoredAnswer) -> list[tuple[str, str]]:
    """What was run and where, as label and text."""
    answer = stored.answer
    lock = next((side.lock for side in answer.sides if side.lock is not None), None)
    return question_facts(
        answer.question,
        ("Reported in", stored.repro.reported),
        machine=next((side.machine for side in answer.sides if side.machine), {}),
        platform=lock.platform if lock else "",
        near="the newer end",
    )


def question_facts(
    question: QuestionRecord,
    *facts: tuple[str, str],
    machine: Mapping[str, Any],
    platform: str,
    near: str,
) -> list[tuple[str, str]]:
    """What was run and where, as label and text; `near` is what other packages are kept close to."""
    repro = question.repro
    around = {"none": f"kept close to those of {near}", "era": "as they were on the day of each release"}
    rows = [
        *facts,
        ("Repro", f"{repro.name}: {repro.summary}" if repro.summary else repro.name),
        ("Parameters", ", ".join(f"{name} = {json.dumps(value)}" for name, value in repro.params.items())),
        ("Device", device_kind(question.device, machine)),
        ("Python", question.python),
        ("Platform", platform),
        ("Held", ", ".join(question.holds)),
        ("Other packages", around.get(question.as_of, f"as they were on {_moment(question.as_of)}")),
    ]
    return [(label, text) for label, text in rows if text]


def _moment(text: str) -> str:
    """A day as it was given, also where that is the time at which it ended; else the time too, without seconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if len(text) > len("2025-06-20") and moment.time() == time():
        moment -= timedelta(days=1)
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment.hour or moment.minute else f"{moment:%Y-%m-%d}"


def _failing_frame(stored: StoredAnswer) -> str:
    """The innermost frame of the packages that the answer is about."""
    raised = next((side.exception for side in stored.answer.sides if side.exception is not None), None)
    frames = [frame for frame in raised.frames if normalized_name(frame.package) in stored.about] if raised else []
    return f"{frames[-1].file}, line {frames[-1].line}, in {frames[-1].function}" if frames else ""


def device_kind(device: str, machine: Mapping[str, Any]) -> str:
    """A device in words, with the name and driver that the run reported."""
    name = machine.get("name")
    driver = f", driver {machine['driver']}" if machine.get("driver") else ""
    kind = {"emulated": "CPU with a stand-in for CUDA", "cpu": "CPU", "cuda": "CUDA"}.get(device, device)
    ranks = ranks_in_words(device, machine)
    return kind + (f" ({name}{driver})" if name else "") + (f", {ranks}" if ranks else "")


def ranks_in_words(device: str, machine: Mapping[str, Any]) -> str:
    """The processes that a launcher started, "" without a launcher: "2 processes with gloo"."""
    if not machine.get("ranks"):
        return ""
    return f"{machine['ranks']} processes{' with gloo' if device == 'cpu' else ''}"


def device_worth(observation: Observation, repro: Repro) -> str:
    """The device of a run, and how far a result on it can be trusted."""
    _, worth = choose_device(observation.device.value, repro.device, ())
    return f"{device_kind(observation.device.value, observation.machine)}. {worth}"


def how_to_reproduce(stored: StoredAnswer) -> list[str]:
    """What a reader needs to know before running the two commands."""
    notes = []
    if stored.repro.source:
        notes.append(f"Save the repro below as {stored.repro.name}.py; uv is all it needs.")
    else:
        notes.append("The command runs files of the project it was typed in; they are not part of this report.")
    pins = [pin for side in stored.answer.sides if side.lock for pin in (*side.lock.pins, *side.installed)]
    if local := dict.fromkeys(local_versions(pins)):
        notes.append(f"The commands install the public versions of {', '.join(local)}, which not every index has.")
    if stored.answer.question.device != Device.CPU.value:
        notes.append("Both commands need a GPU with CUDA.")
    if stored.answer.question.device == Device.EMULATED.value:
        commands = " and ".join(
            filter(None, (again(side, stored.answer.question.typed) for side in stored.answer.sides))
        )
        how = f"; without a GPU, run: {commands}" if commands else ""
        notes.append(f"The runs of this report used a stand-in for CUDA instead{how}.")
    signature = stored.answer.signature
    if signature is not None and signature.metric:
        where = "" if stored.repro.source else ", or in the file that the command writes"
        where = f" in metrics.json{where}" if signature.is_written else ""
        notes.append(f"Compare {signature.measure}{where}.")
    return notes


def not_tried(answer: Answer, observation: Observation | None) -> list[str]:
    """The limits of the answer, one sentence each."""
    limits = [
        {
            "cpu": "Nothing ran on a GPU: bugs in kernels and drivers can't show here.",
            "emulated": "Nothing ran on a GPU: a stand-in on the CPU answered for CUDA.",
        }.get(answer.question.device, "Only this one kind of GPU was used.")
    ]
    platform = observation.lock.platform if observation and observation.lock else ""
    limits.append(f"Only {platform} and only Python {answer.question.python} were tried." if platform else "")
    if answer.steps and not any(step.attempt for step in answer.steps):
        limits.append("Each release ran once, so a flaky failure would not be noticed.")
    if answer.findings:
        limits += [
            f"Not shown: {proof.sentence} ({proof.reason})." for proof in answer.findings[-1].proofs if not proof.holds
        ]
    elif answer.status in (Status.FOUND, Status.FIXED):
        limits.append(
            "Not bisected below the release: which package, file or lines of it are the culprit is not known."
        )
    return [line for line in limits if line]
