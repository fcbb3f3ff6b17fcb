"""Runs one repro in one interpreter under limits, kills its whole process tree, and classifies what happened."""
