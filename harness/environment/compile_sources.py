"""Compiles modules for the harness, in a plain interpreter of the probed kind: standard library only, Python 3.9+.

Started as `python compile_sources.py ORDER.json DONE.json`. The order lists sources, the SHA-256 that each must have
("": any) and where its bytecode goes; the answer lists the targets that were written.
"""

# ruff: noqa: PTH103, PTH105, PTH116, PTH120, PTH123 - pathlib would cost more than all else here

from __future__ import annotations

import contextlib
import hashlib
import importlib._bootstrap_external as bootstrap
import json
import os
import sys


def compile_one(source: str, digest: str, target: str, part: str) -> bool:
    """Compile one source to `part`, then rename it; returns whether its bytecode was written."""
    try:
        stat = os.stat(source)
        with open(source, "rb") as file:
            text = file.read()
        if digest and hashlib.sha256(text).hexdigest() != digest:
            return False
        code = compile(text, source, "exec", dont_inherit=True)
        data = bootstrap._code_to_timestamp_pyc(code, int(stat.st_mtime), stat.st_size)  # type: ignore[attr-defined]  # noqa: SLF001
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, target)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    return True


def main(order: str, done: str) -> None:
    """Compile everything in the order file."""
    sys.setrecursionlimit(10_000)
    with open(order, encoding="utf-8") as file:
        wanted = json.load(file)
    part = f"{done}.part"
    made = [target for source, digest, target in wanted if compile_one(source, digest, target, part)]
    with open(part, "w", encoding="utf-8") as file:
        json.dump(made, file)
    os.replace(part, done)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(*sys.argv[1:])
