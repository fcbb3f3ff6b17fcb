"""Plants regressions in real packages: refactorings that don't change behaviour, and one wrong line."""

from planting.cases import MESSAGE, Case, plant
from planting.evaluate import Runner

__all__ = ["MESSAGE", "Case", "Runner", "plant"]
