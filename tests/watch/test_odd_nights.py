"""Nights whose surroundings change: packages that are withdrawn, failures that do not recur, Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import time

from simulation import BROKEN, MESSAGE

from harness.store import Store


def test_a_recurring_break_is_reopened(nights):
    """The release with the fix is withdrawn: the report is reopened, without its fix."""
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", BROKEN)
    nights.run("2024-02-02")
    nights.helper("1.2", "2024-02-02")
    assert nights.run("2024-02-03", "--json").json["breaks"][0]["closed"]
    nights.house.withdraw("helper", "1.2")
    back = nights.run("2024-02-04")
    assert back.code == 1
    assert "broken again:\n" in back.stdout
    assert len(nights.reports()) == 1
    told = nights.run("2024-02-04", "--json").json
    (known,) = told["breaks"]
    assert not known.keys() & {"closed", "fixes"}
    assert [cell["standing"] for cell in told["cells"]] == ["broken"]


def test_a_failure_that_does_not_recur_is_flaky(nights, tmp_path):
    """It has no report, and is mentioned once."""
    nights.run("2024-02-01")
    marker = tmp_path / "was here"
    nights.helper(
        "1.1",
        "2024-02-01",
        f"import pathlib\n    was = pathlib.Path({str(marker)!r})\n"
        f"    if was.exists(): return 1\n    was.touch()\n    {BROKEN}",
    )
    flaky = nights.run("2024-02-02", HARNESS_SANDBOX="off")  # its marker lies outside
    assert flaky.code == 0
    assert "flaky:\n  step-app-1.0-case=1" in flaky.stdout
    assert nights.reports() == {}
    assert nights.run("2024-02-03").stdout.count("\n") == 1


def test_a_changed_surrounding_is_not_blamed_on_a_package(nights, tmp_path):
    """A change outside the packages is not blamed on the releases of that day."""
    text = (nights.harness.folder / "repros" / "step.py").read_text(encoding="utf-8")
    gone = tmp_path / "gone"
    text += f"import pathlib\nif pathlib.Path({str(gone)!r}).exists(): raise RuntimeError({MESSAGE!r})\n"
    (nights.harness.folder / "repros" / "step.py").write_text(text, encoding="utf-8")
    nights.run("2024-02-01", HARNESS_SANDBOX="off")  # it looks outside its folder
    gone.touch()
    nights.other("1.1", "2024-02-01")
    told = nights.run("2024-02-02", HARNESS_SANDBOX="off")
    assert "so no package is the cause" in told.stdout
    assert told.code == 3  # the one cell could not be judged
    assert nights.reports() == {}


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
    """Ctrl-C exits with 130; the same command resumes the night, and finished runs are not repeated."""
    nights.helper("1.0", "2024-01-01", "import time; time.sleep(1); return 1")
    nights.cases = [1, 2, 3]
    folder, matrix = nights.harness.folder, nights.write()
    with nights.harness.start("nightly", matrix) as running:
        while not list((folder / "results").glob("observations/*/*.json")):
            assert running.poll() is None, running.stderr.read()
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "run the same command again" in said
    (record,) = (folder / "results" / "nights").glob("*.json")
    assert not json.loads(record.read_text(encoding="utf-8")).get("ended")
    done = len(list(Store(folder / "results").observations()))
    assert 0 < done < 3
    ended = nights.harness("nightly", matrix)
    assert ended.code == 0
    assert f"{3 - done} run now" in ended.stdout
    assert list((folder / "results" / "nights").glob("*.json")) == [record]
