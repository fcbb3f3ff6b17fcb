"""From a release to lines: package, release of that package, file, region; each shown both ways where it can be."""

from harness.investigation.levels.descent import find_culprit
from harness.investigation.levels.ground import Ground

__all__ = ["Ground", "find_culprit"]
