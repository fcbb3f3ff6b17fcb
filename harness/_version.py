"""The version of the harness, below everything that tells it."""

__version__ = "0.1.0"
