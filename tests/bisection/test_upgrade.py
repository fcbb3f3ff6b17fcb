"""From two environments to every culprit: exact packages and releases, few runs, and constraints checked by a run."""

from __future__ import annotations

import subprocess

from planted_upgrades import NAMES, TO_THE_RELEASE, freeze, suite_of, write_project
from uv import find_uv_bin

RUN = ("--run", "python -m unittest -q test_mine")
QUICK = (*RUN, *TO_THE_RELEASE, "--json")
REPETITIONS = 7  # for each culprit, so that none is named on a lucky run


def culprits(answer):
    return {
        culprit["package"]: (culprit["last_good"], culprit["first_bad"])
        for group in answer["failures"]
        for culprit in group["culprits"]
    }


def ends_of(folder, **bad):
    """Two frozen lists that differ in all thirty packages."""
    old = freeze(folder / "old.txt", release="1.0")
    new = freeze(folder / "new.txt", release="2.1", **bad)
    return "--good", old, "--bad", new


def test_one_culprit_among_thirty(planted):
    write_project(planted.folder, suite_of("part01", "part07", "part12"))
    ended = planted("bisect", *ends_of(planted.folder, part19="1.1", part11="1.0"), *RUN, "--json")
    answer = ended.json
    assert (ended.code, answer["status"], answer["schema"]) == (0, "found", 4)
    assert culprits(answer) == {"part07": ("1.2", "2.0")}
    assert answer["failures"][0]["tests"] == ["test_mine.T.test_part07"]
    assert (answer["constraints"], answer["constraints_verified"]) == (["part07<2"], True)
    assert answer["probes"] <= 10 + REPETITIONS
    assert answer["ends"]["good"] == {"kind": "lock", "text": str(planted.folder / "old.txt")}


def test_two_culprits_break_different_tests(planted):
    write_project(planted.folder, suite_of("part07", "part19"))
    answer = planted("bisect", *ends_of(planted.folder), *RUN, "--depth", "release", "--json").json
    assert culprits(answer) == {"part07": ("1.2", "2.0"), "part19": ("1.1", "1.2")}
    assert len(answer["failures"]) == 2
    assert set(answer["constraints"]) == {"part07<2", "part19<1.2"}
    assert answer["constraints_verified"]
    assert answer["probes"] <= 22 + 2 * REPETITIONS


def test_two_culprits_that_mask_each_other(planted):
    tests = """
    import unittest, part07, part19
    part07.work()
    part19.work()

    class T(unittest.TestCase):
        def test(self):
            pass
    """
    write_project(planted.folder, tests)
    answer = planted("bisect", *ends_of(planted.folder), *RUN, "--depth", "release", "--json").json
    assert culprits(answer) == {"part07": ("1.2", "2.0"), "part19": ("1.1", "1.2")}
    assert answer["constraints_verified"]
    assert answer["probes"] <= 34 + 2 * REPETITIONS


def test_two_environments(planted, parts_house, tmp_path):
    write_project(planted.folder, suite_of("part07"))
    ends, uv = [], find_uv_bin()
    for end, release in (("--good", "1.0"), ("--bad", "2.1")):
        folder = tmp_path / f"venv-{end[2:]}"
        subprocess.run([uv, "venv", "-q", folder], check=True)
        names = [f"{name}=={release}" for name in NAMES[:10]]
        python = folder / "bin" / "python"
        subprocess.run(
            [uv, "pip", "install", "-q", "--python", python, "--default-index", parts_house.url, *names], check=True
        )
        ends += [end, folder]
    answer = planted("bisect", *ends, *QUICK).json
    assert culprits(answer) == {"part07": ("1.2", "2.0")}
    assert answer["ends"]["bad"]["kind"] == "python"


def test_the_constraints_are_written_as_a_usable_file(planted):
    write_project(planted.folder, suite_of("part07"), requires=["part07"])
    path = planted.folder / "until-then.txt"
    ends = ("--good", "2024-01-15", "--bad", "2024-06-01")
    ended = planted("bisect", *ends, *RUN, *TO_THE_RELEASE, "--constraints", path)
    assert ended.code == 0
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert lines[1:] == ["part07<2"]
    assert any(line.startswith("Workaround") and "part07<2" in line for line in ended.stdout.splitlines())


def test_files_written_by_a_run_stay_in_its_copy(planted):
    tests = (
        suite_of("part07")
        + "\nimport pathlib\nassert not pathlib.Path('left').exists()\npathlib.Path('left').touch()\n"
    )
    folder = write_project(planted.folder, tests, requires=["part07"])
    ended = planted("bisect", "--good", "2024-01-15", "--bad", "2024-06-01", *QUICK)
    assert ended.json["status"] == "found"
    assert not (folder / "left").exists()
