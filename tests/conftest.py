import os
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings
from support import cache, harness, house, interpreter, parts, uv_cache, write_repro

__all__ = ["cache", "harness", "house", "interpreter", "parts", "uv_cache", "write_repro"]

# A busy machine is slow, which says nothing about the code.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")
os.environ.setdefault("TESTS_BEGAN", datetime.now(UTC).isoformat())  # workers have that of the process that starts them


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the transcripts of tests/scenarios")
