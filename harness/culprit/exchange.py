"""The files of a culprit that differ between two sides and can be exchanged."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from harness.culprit.sides import METADATA, PackageFiles, Sides, differing
from harness.culprit.trials import Trials
from harness.model import Change
from harness.model.culprit import Finding


@frozen
class Exchange:
    """The units of difference (`differing`) between two sides of the packages in a finding."""

    trials: Trials
    sides: Sides
    package: Finding
    before: PackageFiles
    after: PackageFiles
    units: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, trials: Trials, sides: Sides, package: Finding) -> Exchange | None:
        """The exchange between two sides; None if an environment can't be built."""
        content = both_contents(trials, sides, package)
        return cls(trials, sides, package, *content, differing(*content)) if content is not None else None

    def paths(self, units: Iterable[str]) -> tuple[str, ...]:
        """The files of some units, sorted."""
        return tuple(sorted(path for unit in units for path in self.units[unit]))

    def named(self, units: Iterable[str]) -> tuple[str, ...]:
        """The files of some units, for display: all metadata of a distribution has one name."""
        named = ((unit,) if unit.startswith(METADATA) else self.units[unit] for unit in units)
        return tuple(sorted(name for names in named for name in names))

    def owning(self, paths: Iterable[str]) -> tuple[Change, ...]:
        """The changed packages that these files belong to; all changed ones if that is unknown."""
        owners = {self.after.owners.get(path) or self.before.owners.get(path) for path in paths}
        return tuple(change for change in self.package.packages if change.name in owners) or self.package.packages


def both_contents(trials: Trials, sides: Sides, package: Finding) -> tuple[PackageFiles, PackageFiles] | None:
    """The files of the culprit's packages before and after; None if an environment can't be built."""
    names = [change.name for change in package.packages]
    before, after = trials.environment(sides.before), trials.environment(sides.after)
    if before is None or after is None:
        return None
    return PackageFiles.of(before, names), PackageFiles.of(after, names)
