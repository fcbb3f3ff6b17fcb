"""A night: run a matrix with the newest releases, compare it with the last night, and report each new break once."""
