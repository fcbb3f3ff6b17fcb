"""Runs one repro in one interpreter under limits, ends its whole process tree, and says what happened."""
