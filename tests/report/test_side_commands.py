"""The command of a side pins the requested packages and the differences, and takes the rest from that day."""

from __future__ import annotations

import shlex

from answers import BAD_LOCK, BAD_RUN, REPRO, lock_of
from attrs import evolve
from report_readers import reader  # noqa: F401 - a fixture
from support import MESSAGE, step_source
from wheelhouse import Wheelhouse

from harness.model import Signature
from harness.report.commands import exact_command, local_versions, lock_text, required_names, side_command


def test_only_named_packages_are_pinned():
    command = side_command(BAD_RUN, BAD_LOCK, {"shop", "coin"}, set(), REPRO, None)
    assert command == (
        "uv run --no-project --python 3.11 --with coin==1.0 --with shop==1.2 "
        "--exclude-newer 2026-01-02T03:04:05Z python sale.py"
    )


def test_the_requested_date_applies_and_held_packages_can_be_newer():
    run = evolve(BAD_RUN, as_of="2025-06-01T00:00:00+00:00")
    command = side_command(run, BAD_LOCK, {"shop", "coin"}, {"coin", "absent"}, REPRO, None)
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


def test_the_tests_to_run_are_named_as_a_user_types_them():
    repro = evolve(
        REPRO, source="", argv=("python", "-m", "pytest", "-x", "tests", "--harness-only=tests/test_a.py::t")
    )
    for command in (
        side_command(BAD_RUN, BAD_LOCK, {"shop"}, set(), repro, None),
        exact_command(BAD_LOCK, "requirements-bad.txt", repro),
    ):
        assert command.endswith(" python -m pytest -x tests/test_a.py::t")


def test_a_lock_has_no_local_versions():
    """The wheel of the public version is another file, so the hash would not fit."""
    lines = lock_text(lock_of(torch="2.1+cpu", shop="1.0")).splitlines()
    assert [line.partition(" --hash")[0] for line in lines] == ["shop==1.0", "torch==2.1"]
    assert "--hash" not in lines[1]
    assert local_versions(lock_of(torch="2.1+cpu", shop="1.0").pins) == ("torch 2.1+cpu",)


def test_the_exact_command_installs_a_file_with_hashes():
    assert exact_command(BAD_LOCK, "requirements-bad.txt", REPRO) == (
        "uv run --no-project --python 3.11 --with-requirements requirements-bad.txt python sale.py"
    )


def test_names_of_requirements_are_normalised():
    assert required_names(["Py_Torch[x]>=1; python_version>'3'", "not a requirement !"]) == {"py-torch"}


def test_every_command_of_a_report_works_with_nothing_but_uv(harness, write_repro, reader, tmp_path):  # noqa: F811
    """The runs had local versions; the reader's index has only public ones, built otherwise."""
    ours, public = Wheelhouse(tmp_path / "ours"), Wheelhouse(tmp_path / "public")
    for house, local in ((ours, "+cpu"), (public, "")):
        for number, state in enumerate("GGB"):
            house.add(
                "lamp",
                f"1.{number}{local}",
                files={"lamp.py": f"{step_source(number, broken=state == 'B')}\nLOCAL = {local!r}\n"},
                uploaded=f"2023-0{number + 1}-01T12:00:00Z",
            )
        house.add("helper", "1.0", files={"helper.py": ""})
    write_repro("lamp", dependencies='["lamp", "helper"]')
    harness = harness.with_environ(**ours.environ)
    words = ("--good", "1.0", "--bad", "1.2", "--depth", "release", "--confirm", "1")
    assert harness("bisect", "lamp", *words).code == 0
    report = harness("report").stdout
    assert "lamp 1.2+cpu" in report
    runs = reader(report, public)
    assert len(runs) == 4
    assert [code for _, code, _ in runs] == [0, 1, 0, 1], runs
    assert all(MESSAGE in said for _, code, said in runs if code)
