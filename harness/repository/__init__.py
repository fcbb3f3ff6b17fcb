"""A package's source repository: commits, tags, and where a wheel's files are in it. Read-only."""
