"""What each Python process of a traced command does when it starts.

This folder goes on PYTHONPATH and is never installed.
Standard library only, Python 3.9 and later.
"""
