"""Drafts a repro from somebody's report: reads versions, code and tracebacks, and runs nothing of what it reads."""
