"""Reproduce a regression, bisect it over releases, and say what broke it."""

__version__ = "0.1.0"
