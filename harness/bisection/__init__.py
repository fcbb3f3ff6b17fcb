"""Answers questions: the levels in order, from two ends to an answer."""
