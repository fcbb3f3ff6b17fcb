"""Applies a date limit to files without an upload time, which uv's own date limit would drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.environment.attempt import Attempt, project_of
from harness.environment.undated import caps, of_a_torch_backend

if TYPE_CHECKING:
    import threading

    from harness.environment.compiling import Compiler
    from harness.environment.index import Index
    from harness.model import Lock

# A chain of requirements: a project, its build of torch, and what that build requires.
_TURNS = 4


@frozen
class Capping:
    """Caps attempts by the dates that `index` knows."""

    index: Index
    compiler: Compiler

    def capped(self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None) -> Attempt:
        """The attempt with caps for the projects that uv's date limit can't be applied to.

        If several indexes are configured, uv also resolves without a date: its answer says which files have an upload
        time. Capping one project may add others, so this repeats.
        """
        combination = attempt.combination
        as_of = combination.as_of
        if as_of is None:
            return attempt
        kept = {pin.name for pin in near.pins} if near is not None else set()
        undated = self.index.projects_without_dates(kept)
        pinned = {project_of(text) for text in combination.requirements if "==" in text}
        is_backed = self.compiler.uv.has_torch_backend
        if not is_backed and not self.index.is_of_several:
            return evolve(attempt, undated=undated, caps=caps(undated - pinned, self.index, as_of))
        named = frozenset(project_of(text) for text in (*combination.requirements, *combination.holds))
        found = frozenset(name for name in named if self.index.lacks_dates(name))
        found |= of_a_torch_backend(named) if is_backed else frozenset()
        for _ in range(_TURNS):
            undated |= found
            attempt = evolve(attempt, undated=undated, caps=caps(undated - pinned, self.index, as_of))
            chosen, found = self._chosen_today(attempt, near, cancel)
            found |= of_a_torch_backend(chosen) if is_backed else frozenset()
            if found <= undated:
                break
        return attempt

    def _chosen_today(
        self, attempt: Attempt, near: Lock | None, cancel: threading.Event | None
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The projects that uv would choose without a date, and those of them whose file has no upload time."""
        combination = attempt.combination
        for holds in dict.fromkeys((combination.holds, ())):
            today = evolve(attempt, combination=evolve(combination, holds=holds), ignores_dates=True)
            if (chosen := self.compiler.projects(today, near, cancel)) is not None:
                return chosen
        return frozenset(), frozenset()
