from support import cache, harness, house, interpreter, parts, uv_cache, write_repro

__all__ = ["cache", "harness", "house", "interpreter", "parts", "uv_cache", "write_repro"]
