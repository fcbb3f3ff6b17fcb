"""The locks of combinations: from the store as long as the index says the same, else from the resolver."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from harness.environment.dates import this_second
from harness.environment.uv import unknown_project
from harness.errors import NoNetwork, UnknownProject
from harness.model import name_of

if TYPE_CHECKING:
    from harness.environment import Resolution, Resolver
    from harness.model import Combination, Lock
    from harness.store import Store

_TODAY_LASTS = timedelta(minutes=2)


@frozen
class Resolutions:
    """What a resolver answers, remembered in a store. `now` is the moment that "today" means."""

    store: Store
    resolver: Resolver
    now: datetime = field(factory=this_second)
    _known: dict[str, Resolution] = field(factory=dict, init=False, eq=False, repr=False)

    def resolve(self, combination: Combination, near: Lock | None = None) -> Resolution:
        """Return the lock of a combination, from the store if what the index said then is still so.

        `near` is the lock whose versions are preferred. Raises `UnknownProject` if no index has a project that is
        required itself, `NoNetwork` and `NoSpace`.
        """
        if (known := self.known(combination)) is not None:
            return known
        key, is_today = self._key(combination), self._is_today(combination)
        is_first = not self.resolver.index.has_state(_named(combination))
        resolution = self.resolver.resolve(combination, near, refresh=is_today and is_first)
        if resolution.lock is None and (unknown := unknown_project(resolution.words)):
            raise UnknownProject(unknown)
        if is_today:
            resolution = evolve(resolution, pages=self._pages(combination, resolution.lock))
        self._known[key] = resolution
        # What the index says much later may be about releases that "today" did not have.
        is_timely = not is_today or bool(resolution.pages)
        if resolution.lasts and is_timely:
            self.store.put_resolution(key, resolution)
        return resolution

    def known(self, combination: Combination) -> Resolution | None:
        """Return a resolution of this session or from the store; None if there is none, or if the index has changed."""
        key = self._key(combination)
        if (resolved := self._known.get(key)) is not None:
            return resolved
        stored = self.store.get_resolution(key)
        if stored is None or (stored.lock is not None and self.resolver.index.has_replaced(stored.lock)):
            return None
        if stored.pages and self._pages(combination, stored.lock) not in ("", stored.pages):
            return None
        self._known[key] = stored
        return stored

    def pin(self, combination: Combination, resolution: Resolution) -> None:
        """Store a resolution for good, whatever the index says later. Raises `NoSpace`."""
        self.store.put_resolution(self._key(combination), evolve(resolution, pages=""))

    def forget(self, combination: Combination) -> None:
        """Remove the resolution of a combination, because it can't be installed. Raises `NoSpace`."""
        key = self._key(combination)
        self.resolver.read.clear()
        self._known.pop(key, None)
        self.store.forget_resolution(key)

    def _is_today(self, combination: Combination) -> bool:
        """Whether a combination may get packages that are still to be uploaded."""
        return combination.as_of is None or combination.as_of >= self.now

    def _key(self, combination: Combination) -> str:
        """The key in the store: today's resolution is found again as long as the index says the same."""
        if combination.as_of != self.now:
            return self.resolver.uv.resolution_key(combination)
        return f"{self.resolver.uv.resolution_key(evolve(combination, as_of=None))}-today"

    def _pages(self, combination: Combination, lock: Lock | None) -> str:
        """The state of the index for what a resolution depends on, "" if it can't be told for the moment `now`."""
        names = _named(combination) | {pin.name for pin in (lock.pins if lock is not None else ())}
        index = self.resolver.index
        if not index.has_state(names) and datetime.now(UTC) - self.now > _TODAY_LASTS:
            return ""
        try:
            return index.state(names)
        except NoNetwork:
            return ""


def _named(combination: Combination) -> set[str]:
    return set(map(name_of, (*combination.requirements, *combination.holds)))
