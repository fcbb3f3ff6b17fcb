"""Prints for people: the running search, the answer, tables. Only answers go to stdout."""
