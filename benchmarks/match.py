"""Does `harness match` find each known regression in a traceback of another release, and nothing in unrelated ones?

Without `--folder` it reads the tracebacks that the tests keep, one of each entry. With the folder that
`nox -s truth -- --folder FOLDER` left, it reads the log of every failing release that was run there, except the one
that the entry was made with. Entries without an exception of a library (wrong numbers, changed defaults, slower, or an
exception that the repro itself raises) have nothing that could be pasted; they are counted apart.

    python benchmarks/match.py
    python benchmarks/match.py --folder truth
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.catalogue.entries import Entry

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "tests" / "catalogue"


def kept(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the release and the log that the tests keep of an entry."""
    path = KEPT / "tracebacks" / f"{entry.name.replace(':', '-')}.txt"
    if path.exists():
        text = path.read_text(encoding="utf-8")
        yield text.partition("\n")[0].partition("==")[2], text


def measured(entry: Entry, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the release and the log of each failing run of an entry that `nox -s truth` left in a folder, once each."""
    seen = entry.known.seen
    done: set[str] = set()
    for path in sorted(folder.glob(f"{entry.name.replace(':', '-')}*/observations/*/*.json")):
        observation = json.loads(path.read_text(encoding="utf-8"))
        raised, log = observation.get("exception"), path.parents[2] / str(observation.get("log"))
        versions = {pin["version"] for pin in observation["lock"]["pins"] if pin["name"] == entry.subject}
        if not raised or observation.get("mixture") or not versions or not log.is_file() or seen is None:
            continue
        release = versions.pop()
        if release in (*done, seen.release) or raised["type"].rpartition(".")[2] != seen.exception.rpartition(".")[2]:
            continue
        done.add(release)
        packed = log.read_bytes()
        text = (gzip.decompress(packed) if log.suffix == ".gz" else packed).decode("utf-8", "replace")
        yield release, f"{entry.subject}=={release}\n{text}"


def main() -> int:
    """Parse the command line, look each traceback up, and print what came first."""
    sys.path.insert(0, str(ROOT))
    from harness.catalogue.entries import all_entries
    from harness.catalogue.matching import exceptions_in, installed_in, matches

    parser = argparse.ArgumentParser(description="Known regressions found by a traceback of another release.")
    parser.add_argument("--folder", type=Path, help="what nox -s truth left there (default: what the tests keep)")
    folder = parser.parse_args().folder
    entries = all_entries(ROOT)

    def first_in(text: str) -> str:
        found = matches(exceptions_in(text), entries, installed_in(text).get)
        return found[0].entry.name if found else "nothing"

    first = logs = 0
    complete: list[str] = []
    wide: list[str] = []
    silent: list[str] = []
    unmeasured: list[str] = []
    for entry in entries:
        if entry.known.seen is None:
            silent.append(entry.name)
            continue
        found = [(release, first_in(text)) for release, text in (measured(entry, folder) if folder else kept(entry))]
        if not found:
            unmeasured.append(entry.name)
            continue
        hits = sum(name == entry.name for _, name in found)
        (complete if hits == len(found) else wide).append(entry.name)
        first, logs = first + hits, logs + len(found)
        shown = ", ".join(f"{release} -> {name}" for release, name in found if name != entry.name)
        same = all(release == entry.known.seen.release for release, _ in found)
        print(f"{hits}/{len(found)}  {entry.name}  {shown}{'(the release it was made with)' if same else ''}".rstrip())
    unrelated = (KEPT / "unrelated.txt").read_text(encoding="utf-8").split("\n=====\n")
    wrong = [text for text in unrelated if first_in(text) != "nothing"]
    asked = len(complete) + len(wide)
    print(f"{len(complete)} of {asked} entries with a traceback come first, by {first} of {logs} tracebacks")
    print(f"{len(unrelated) - len(wrong)} of {len(unrelated)} unrelated tracebacks find nothing")
    print(f"{len(silent)} entries raise nothing of a library: {', '.join(silent)}")
    if unmeasured:
        print(f"{len(unmeasured)} have no traceback here: {', '.join(unmeasured)}")
    return 0 if not wide and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
