"""Fuzzes every target with atheris, guided by what the texts reach: `nox -s fuzz -- --minutes 3 repro bundle`.

Each target runs in a process of its own, for an equal share of the time. What makes one fail is kept as a file, and
its path and traceback are printed. Exit code 1 where one failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
HUNG_S = 20


def main() -> int:
    """Fuzz the targets that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "harness-fuzz")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    told, rest = parser.parse_known_args()
    if told.one:
        _fuzz(told.one, rest)
    from seeds import SEEDS

    names = told.targets or list(SEEDS)
    failed = [name for name in names if not _run(name, told.minutes * 60 / len(names), told.keep)]
    print(f"{len(names)} targets, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _run(name: str, seconds: float, keep: Path) -> bool:
    """One target in a process of its own; whether it held."""
    from seeds import SEEDS

    corpus = keep / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{i}").write_bytes(seed)
    with tempfile.TemporaryDirectory(prefix="harness-fuzz-") as scratch:
        words = [sys.executable, __file__, "--one", name, str(corpus), f"-artifact_prefix={keep / name}/"]
        words += [f"-max_total_time={max(1, int(seconds))}", f"-timeout={HUNG_S}", "-max_len=20000", "-verbosity=1"]
        ended = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False,
            env={**os.environ, "HARNESS_FUZZ_FOLDER": scratch},
        )  # fmt: skip
    said = ended.stdout + ended.stderr
    runs = re.findall(r"^#(\d+)\s", said, re.MULTILINE)
    print(f"{name}: {runs[-1] if runs else 0} texts in {int(seconds)} s{'' if ended.returncode == 0 else ', FAILED'}")
    if ended.returncode != 0:
        print("\n".join(said.splitlines()[-40:]))
    sys.stdout.flush()
    return ended.returncode == 0


def _fuzz(name: str, arguments: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["harness", "packaging"]):
        from targets import check
    atheris.Setup([sys.argv[0], *arguments], lambda data: check(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
