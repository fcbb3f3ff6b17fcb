"""Nights for all tests here."""

from simulation import nights

__all__ = ["nights"]
