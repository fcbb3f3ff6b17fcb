"""A matrix: a file of axes, includes and excludes, expanded into cells. Expanding runs nothing.

`running` runs the cells; `table` and `page` show how they stand.
"""

from harness.matrix.cells import Cell, LeftOut, Matrix, Value, expanded
from harness.matrix.reading import read_matrix
