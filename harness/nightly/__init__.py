"""A night: a matrix against what is newest, what turned since the last one, and one report for each new break."""
