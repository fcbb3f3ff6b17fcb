"""Writes the commits that were run as a log for `git bisect replay`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.culprit import Commit

_WORD = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.SKIP: "skip"}
_FIX_WORD = {Verdict.GOOD: "fixed", Verdict.BAD: "unfixed", Verdict.SKIP: "skip"}


def bisect_log(runs: Iterable[tuple[Commit, Verdict]], *, find_fix: bool = False) -> str:
    """Return the log of a bisection.

    A search for a fix uses the terms `fixed` and `unfixed`, because git expects bad commits to be newer.
    """
    words = _FIX_WORD if find_fix else _WORD
    lines = ["git bisect start --term-new=fixed --term-old=unfixed" if find_fix else "git bisect start"]
    for commit, verdict in runs:
        word = words[verdict]
        lines += [f"# {word}: [{commit.sha}] {commit.subject}", f"git bisect {word} {commit.sha}"]
    return "\n".join(lines) + "\n"
