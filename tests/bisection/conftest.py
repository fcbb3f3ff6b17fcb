"""Fixtures of the tests that ask between two worlds."""

from planted_upgrades import parts_house, planted

__all__ = ["parts_house", "planted"]
