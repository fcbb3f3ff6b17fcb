"""A package's source repository: commits, tags, and where a wheel's files lie in it. It is only read."""
