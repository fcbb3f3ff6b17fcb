"""A matrix: a file of axes, includes and excludes, expanded into cells. Expanding runs nothing."""

from harness.matrix.cells import Cell, LeftOut, Matrix, Value
from harness.matrix.reading import read_matrix
from harness.matrix.tonight import tonight
from harness.matrix.versions import Target, expanded

__all__ = [
    "Cell",
    "LeftOut",
    "Matrix",
    "Target",
    "Value",
    "expanded",
    "read_matrix",
    "tonight",
]
