"""Makes planted projects available to the tests of the levels."""

from planted import plant

__all__ = ["plant"]
