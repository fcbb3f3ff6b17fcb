"""Nights whose surroundings change: a wheel that is gone, and Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import time

from simulation import BROKEN
from support import own_cache as cache  # noqa: F401 - a fixture

from harness.store import Store


def test_a_missing_last_good_environment_is_reported(nights):
    """Its wheel is gone from the index, from uv's cache and from the cache of the harness."""
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", BROKEN)
    nights.house.withdraw("helper", "1.0")
    for folder in ("environments", "wheels"):
        shutil.rmtree(nights.cache / folder)
    told = nights.run("2024-02-02", "--json", UV_CACHE_DIR=str(nights.cache / "uv")).json
    (known,) = told["breaks"]
    assert "environment can't be built any more" in known["sentence"]
    assert known["sentence"].startswith("step fails since helper 1.1. ")


def test_an_interrupted_night_resumes(nights):
    """Ctrl-C exits with 130 and keeps what is judged; the same command resumes the night, and repeats no run."""
    nights.helper("1.0", "2024-01-01", "import time; time.sleep(1); return 1")
    nights.cases = list(range(1, 8))
    folder, matrix = nights.harness.folder, nights.write()
    with nights.harness.start("nightly", matrix) as running:
        while len(list((folder / "results").glob("observations/*/*.json"))) < 2:
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "run the same command again" in said
    (record,) = (folder / "results" / "nights").glob("*.json")
    stopped = json.loads(record.read_text(encoding="utf-8"))
    assert (stopped.get("ended", False), stopped["cells"][0]["standing"]) == (False, "good")
    done = len(list(Store(folder / "results").observations()))
    assert 2 <= done < 7
    ended = nights.harness("nightly", matrix)
    assert ended.code == 0
    assert f"{7 - done} run now" in ended.stdout
    assert list((folder / "results" / "nights").glob("*.json")) == [record]
