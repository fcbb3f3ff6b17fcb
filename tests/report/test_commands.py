"""The command of a side pins the requested packages and the differences, and takes the rest from that day."""

from __future__ import annotations

import shlex

from answers import BAD_LOCK, BAD_RUN, REPRO, lock_of
from attrs import evolve

from harness.model import Signature
from harness.report.commands import asked_for, exact_command, newest_day, side_command


def test_only_named_packages_are_pinned():
    command = side_command(BAD_RUN, BAD_LOCK, {"shop", "coin"}, set(), REPRO, None)
    assert command == (
        "uv run --no-project --python 3.11 --with coin==1.0 --with shop==1.2 "
        "--exclude-newer 2026-01-02T03:04:05Z python sale.py"
    )


def test_the_requested_date_applies_and_held_packages_can_be_newer():
    run = evolve(BAD_RUN, as_of="2025-06-01T00:00:00+00:00")
    command = side_command(run, BAD_LOCK, {"shop", "coin"}, {"coin", "absent"}, REPRO, None)
    assert newest_day(run) == "2025-06-01T00:00:00Z"
    assert "--exclude-newer 2025-06-01T00:00:00Z --exclude-newer-package coin=2026-01-02T03:04:05Z python" in command


def test_the_local_part_of_a_version_is_left_out():
    assert "--with torch==2.1 " in side_command(BAD_RUN, lock_of(torch="2.1+cpu"), {"torch"}, set(), REPRO, None)


def test_parameters_and_metrics_use_environment_variables():
    repro = evolve(REPRO, params={"lora": False, "name": "it's"})
    words = shlex.split(side_command(BAD_RUN, BAD_LOCK, {"shop"}, set(), repro, Signature(metric="loss", above=1.0)))
    assert words[0] == "HARNESS_METRICS=metrics.json"
    assert words[-4:] == ["env", 'HARNESS_PARAMS={"lora": false, "name": "it\'s"}', "python", "sale.py"]


def test_a_command_is_shown_as_typed():
    repro = evolve(REPRO, source="", argv=("pytest", "-x", "tests/test a.py"))
    assert side_command(BAD_RUN, BAD_LOCK, {"shop"}, set(), repro, None).endswith("pytest -x 'tests/test a.py'")


def test_the_exact_command_installs_a_file_with_hashes():
    assert exact_command(BAD_LOCK, "requirements-bad.txt", REPRO) == (
        "uv run --no-project --python 3.11 --with-requirements requirements-bad.txt python sale.py"
    )


def test_names_of_requirements_are_normalised():
    assert asked_for(["Py_Torch[x]>=1; python_version>'3'", "not a requirement !"]) == {"py-torch"}
