"""A matrix: a file with axes, what to add and what to leave out, expanded into cells. It runs nothing."""

from harness.matrix.cells import Cell, Matrix, Value
from harness.matrix.reading import read_matrix
from harness.matrix.table import verdict_table

__all__ = ["Cell", "Matrix", "Value", "read_matrix", "verdict_table"]
