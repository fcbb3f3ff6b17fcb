"""The parts of `benchmarks/bisect_speed.py`."""
