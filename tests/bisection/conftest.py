"""Fixtures of the tests that ask between two sets of packages."""

from planted_upgrades import parts_house, planted

__all__ = ["parts_house", "planted"]
