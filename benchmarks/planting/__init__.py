"""Plants regressions in real packages: refactorings that change no answer, and one wrong line."""

from planting.cases import MESSAGE, Case, plant
from planting.evaluate import Runner

__all__ = ["MESSAGE", "Case", "Runner", "plant"]
