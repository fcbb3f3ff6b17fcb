"""The report of an answer."""
