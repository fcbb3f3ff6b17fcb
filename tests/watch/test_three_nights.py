"""Whole nights on a local index with new releases: breaks are found and reported once, fixes are noted."""

from __future__ import annotations

import json
import shutil
import signal
import time

from simulation import BROKEN, MESSAGE, ODD

from harness.store import Store


def test_a_dependency_breaks_it_and_its_next_release_fixes_it(nights):
    """The reports name package, release, file and line; a quiet night runs nothing and prints one line."""
    first = nights.run("2024-02-01")
    assert first.code == 0
    assert "first night, so there is nothing to compare with" in first.stdout

    nights.helper("1.1", "2024-02-01")
    nights.helper("1.2", "2024-02-01", BROKEN)
    nights.other("1.1", "2024-02-01")
    broke = nights.run("2024-02-02", "--json").json
    (known,) = broke["breaks"]
    assert known["culprit"] == [{"name": "helper", "before": "1.1", "after": "1.2"}]
    assert known["sentence"].startswith("step fails since helper 1.2: ")
    assert "helper 1.2 changed help (helper.py, line 13)" in known["sentence"]
    (report,) = nights.reports().values()
    assert "proved both ways, down to the region" in report
    assert f"+    raise RuntimeError('{MESSAGE}')" in report
    assert "| package | helper 1.1 (good) | helper 1.2 (bad) | |" in report
    assert "`1.2` | bad | 3 of 3 runs" in report  # as sure as any release
    assert "`1.1` | good | 2 of 2 runs" in report

    quiet = nights.run("2024-02-03")
    assert quiet.code == 0
    assert quiet.stdout.splitlines() == ["nightly, night of 2024-02-03: nothing changed; 1 cell: 1 broken; 0 run now"]
    assert list(nights.reports().values()) == [report]

    nights.helper("1.3", "2024-02-03")
    nights.other("1.2", "2024-02-03")
    fixed = nights.run("2024-02-04")
    assert fixed.code == 0
    changed = "helper 1.2 -> 1.3 and other 1.1 -> 1.2"
    said = f"step-app-1.0-case=1 good again with {changed}, and no cell is broken by it any more"
    assert said in fixed.stdout
    assert nights.run("2024-02-05").stdout.count("\n") == 1

    page = (nights.harness.folder / "results" / "nights" / "index.html").read_text(encoding="utf-8")
    assert f'href="../reports/{known["id"]}.html">helper 1.2 breaks step</a>' in page
    assert "closed 2024-02-04" in page


def test_a_new_release_of_the_axis_package_breaks_and_the_next_one_fixes_it(nights):
    """Compared with the next older release; the culprit is the axis package, and the newer release is the fix."""
    nights.apps = ["latest 3"]
    nights.run("2024-02-01")
    nights.app("1.1", "2024-02-01", "raise RuntimeError('the helper is of no help')")
    broke = nights.run("2024-02-02", "--json").json
    assert broke["breaks"][0]["sentence"].startswith("step fails since app 1.1: ")
    assert "app 1.1 changed step (app.py, line 8)" in broke["breaks"][0]["sentence"]
    assert {cell["name"]: cell["standing"] for cell in broke["cells"]} == {
        "step-app-1.0-case=1": "good",
        "step-app-1.1-case=1": "broken",
    }
    nights.app("1.2", "2024-02-02")
    ended = nights.run("2024-02-03", "--json")
    assert ended.code == 0
    (known,) = ended.json["breaks"]
    assert known["fixes"] == [
        {"cell": "nightly: step-app-1.1-case=1", "changed": "app 1.1 -> 1.2", "night": "2024-02-03T00:00:00+00:00"}
    ]
    assert known["closed"]


def test_cells_failing_for_one_reason_share_a_report(nights):
    """Two releases of the app and two cases: one cause is searched, and the report lists all four cells."""
    nights.app("1.1", "2024-01-02")
    nights.apps, nights.cases = ["latest 2"], [1, 2]
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", BROKEN)
    broke = nights.run("2024-02-02")
    assert len(nights.reports()) == 1
    assert broke.stdout.count("fails since") == 1
    cells = [f"nightly: step-app-1.{minor}-case={case}" for minor in (0, 1) for case in (1, 2)]
    assert all(cell in broke.stdout for cell in cells)
    assert broke.stderr.count("package: only helper differs") == 1  # one cause was searched


def test_the_same_failure_with_another_culprit_is_another_report(nights):
    nights.apps = ["latest 3"]
    nights.run("2024-02-01")
    nights.app("1.1", "2024-02-01", BROKEN)
    nights.run("2024-02-02")
    nights.helper("1.1", "2024-02-02", BROKEN)
    broke = nights.run("2024-02-03")
    assert broke.code == 1
    assert "step fails since helper 1.1" in broke.stdout
    assert len(nights.reports()) == 2


def test_a_known_break_in_a_new_release_updates_its_report(nights):
    """The new release has the break of its older sibling; nothing is searched again."""
    nights.apps = ["latest 3"]
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", BROKEN)
    nights.run("2024-02-02")
    nights.app("1.1", "2024-02-02")
    spread = nights.run("2024-02-03")
    assert spread.code == 0
    assert "known breaks that reached more cells" in spread.stdout
    assert "1 run now" in spread.stdout
    assert len(nights.reports()) == 1
    assert "Seen in nightly: step-app-1.0-case=1; nightly: step-app-1.1-case=1" in spread.stdout


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


def test_a_failure_without_a_signature_is_its_own_signature(nights):
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", ODD)
    broke = nights.run("2024-02-02")
    assert broke.code == 1
    (report,) = nights.reports().values()
    assert "AttributeError" in report.split("Recognised by:")[1].splitlines()[0]
    assert "step fails since helper 1.1" in report
    assert nights.run("2024-02-03").stdout.count("\n") == 1


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


def test_an_unresolvable_cell_is_never_a_break(nights):
    nights.apps = ["latest"]
    nights.run("2024-02-01")
    nights.app("1.1", "2024-02-01", requires=("a-project-that-is-nowhere",))
    told = nights.run("2024-02-02")
    assert told.code == 3
    assert "could not be judged:\n  step-app-1.1-case=1: unresolvable" in told.stdout
    assert nights.reports() == {}


def test_an_unjudged_cell_is_reported_once(nights):
    """Even if the reason contains the path of an environment, which no record holds."""
    nights.helper("1.1", "2024-01-02", "raise ImportError('not from ' + __file__)")
    first = nights.run("2024-02-01")
    assert "could not be judged:\n  step-app-1.0-case=1: failed differently: ImportError: not from " in first.stdout
    assert str(nights.cache) not in first.stdout
    nights.other("1.1", "2024-02-01")
    assert nights.run("2024-02-02").stdout.count("\n") == 1


def test_a_cell_bad_in_the_first_night_has_no_report(nights):
    nights.helper("1.1", "2024-01-02", BROKEN)
    first = nights.run("2024-02-01")
    assert first.code == 0
    assert "cells that are already bad get no report" in first.stdout
    assert nights.reports() == {}
    nights.helper("1.2", "2024-02-01")
    assert "is good now; it was broken before the first night" in nights.run("2024-02-02").stdout


def test_work_left_by_a_spent_budget_comes_first_the_next_night(nights):
    nights.cases = [1, 2]
    left = nights.run("2024-02-01", "--budget", "0")
    assert left.code == 3
    assert "left for tomorrow:\n  step-app-1.0-case=1\n  step-app-1.0-case=2" in left.stdout
    nights.cases = [0, 1, 2]
    after = nights.run("2024-02-02")
    order = [line.split()[1] for line in after.stderr.splitlines() if line.startswith("good ")]
    assert order == ["step-app-1.0-case=1", "step-app-1.0-case=2", "step-app-1.0-case=0"]


def test_repeating_a_night_runs_nothing_and_reports_the_same(nights):
    nights.run("2024-02-01")
    nights.helper("1.1", "2024-02-01", BROKEN)
    once, again = nights.run("2024-02-02", "--json").json, nights.run("2024-02-02", "--json").json
    assert "ran" not in again
    assert {**once, "wall_s": 0} == {**again, "ran": once["ran"], "wall_s": 0}


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
