"""Fixtures of the tests that ask between two worlds."""

from planted import parts_house, planted

__all__ = ["parts_house", "planted"]
