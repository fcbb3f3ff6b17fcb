"""These tests look into the cache and damage it."""

from support import own_cache as cache

__all__ = ["cache"]
