"""Runs the levels in order, as deep as requested and as the runs can prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from harness.culprit.commit import find_commit
from harness.culprit.lines import find_lines
from harness.culprit.packages import find_package
from harness.culprit.proofs import Trials
from harness.culprit.release import narrow_release
from harness.culprit.sides import Sides
from harness.errors import HarnessError, HarnessFault, Interrupted
from harness.model.culprit import Finding, Level
from harness.model.text import listed
from harness.redact import hide_secrets, write_traceback
from harness.run.process import Cancelled

if TYPE_CHECKING:
    from harness.store import Store


def find_culprit(trials: Trials, sides: Sides, until: Level, *, are_neighbours: bool = False) -> tuple[Finding, ...]:
    """Find the culprit between two sides, down to the level `until`; returns nothing if that is the release.

    With `are_neighbours` the sides are known to be neighbouring releases of one package. Raises `Interrupted`,
    `NoNetwork`, `NoSpace`. Of packages that can't be exchanged one by one, the lines tell which made the difference.
    """
    if until is Level.RELEASE:
        return ()
    package, narrowed = find_package(trials, sides, until)
    if narrowed == sides and not all(proof.holds for proof in package.proofs):
        return (package,)  # a side had another verdict when it was repeated
    findings = [package]
    try:
        if package.is_shown_one_way and not are_neighbours:
            package, narrowed = narrow_release(trials, narrowed, package, until)
        findings, trials.tally.sides = [package], narrowed
        to_tell_apart = package.is_tied and until.depth < Level.REGION.depth
        _add_lower_levels(trials, narrowed, findings, Level.REGION if to_tell_apart else until)
        if to_tell_apart and findings[-1].is_tied:
            findings = [package]
    except (Interrupted, KeyboardInterrupt) as stopped:
        if not package.is_proved:
            raise
        raise _stopped_below(package) from stopped
    except Exception as error:  # noqa: BLE001 - what is proved stands, whatever went wrong below it
        findings[-1] = evolve(findings[-1], fault=fault_in_words(trials.prober.store, error))
    return tuple(findings)


def fault_in_words(store: Store, error: Exception, what: str = "the search below this") -> str:
    """Return a sentence on an internal error, whose traceback it writes to a file; raises all other errors again."""
    if isinstance(error, Cancelled) or (isinstance(error, HarnessError) and not isinstance(error, HarnessFault)):
        raise error
    words = hide_secrets(f"{type(error).__name__}: {error}", store.secrets)
    return f"{what} ended: {words}; details are in {write_traceback(error, store.secrets)}"


def _add_lower_levels(trials: Trials, narrowed: Sides, findings: list[Finding], until: Level) -> None:
    """Add the findings of the levels below the package, each as soon as it is known."""
    (package,) = findings
    if until.depth >= Level.FILE.depth and package.is_shown_one_way:
        below = find_lines(trials, narrowed, package, until)
        findings[:] = [*below] if below and below[0].level is Level.PACKAGE else [*findings, *below]
    if until is Level.COMMIT and findings[-1].is_shown_one_way:
        cache = trials.prober.builder.workspace.clones
        commit = find_commit(trials, narrowed, findings[-1], trials.question.policy.git, cache)
        if isinstance(commit, str):
            findings[-1] = evolve(findings[-1], notes=(*findings[-1].notes, f"no commit is named: {commit}"))
        else:
            findings.append(commit)


def _stopped_below(package: Finding) -> Interrupted:
    """The error for Ctrl-C after the culprit package was proved: it tells that much of the answer."""
    return Interrupted(
        f"stopped; the culprit package is proved: {listed(map(str, package.packages))}; finished runs are kept",
        hint="run the same command again to continue, or with --depth package to have this answer and its report",
    )
