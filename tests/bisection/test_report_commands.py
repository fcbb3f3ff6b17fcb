"""The commands in the report of a project's question work."""

from __future__ import annotations

import subprocess

from planted_upgrades import NAMES, TO_THE_RELEASE, freeze, suite_of, write_project
from report_readers import reader  # noqa: F401 - a fixture


def ends_in(folder):
    return [freeze(folder / f"{end}.txt", release=end, names=NAMES[5:10]) for end in ("1.2", "2.0")]


def test_every_command_of_a_projects_report_works(planted, parts_house, reader):  # noqa: F811
    """The reader has the files of the project besides."""
    folder = write_project(planted.folder, suite_of("part07"))
    old, new = ends_in(folder)
    ended = planted("bisect", "--run", "python -m unittest -q test_mine", "--good", old, "--bad", new, *TO_THE_RELEASE)
    assert ended.code == 0, ended.stderr
    files = {name: (folder / name).read_text(encoding="utf-8") for name in ("mine.py", "test_mine.py")}
    runs = reader(planted("report").stdout, parts_house, **files)
    assert "--harness-only" not in str(runs)
    assert [code for _, code, _ in runs] == [0, 1, 0, 1], runs
    assert all("part07 is broken" in said for _, code, said in runs if code)


def test_the_commands_find_the_modules_of_a_project_with_a_flat_layout(planted, parts_house, reader):  # noqa: F811
    """A script in `tests/` that imports the project's own package fails alike on both sides without its folder."""
    folder = write_project(planted.folder, suite_of("part07"))
    (folder / "tests").mkdir()
    (folder / "test_mine.py").rename(folder / "tests" / "check.py")
    with (folder / "tests" / "check.py").open("a", encoding="utf-8") as script:
        script.write("unittest.main()\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    old, new = ends_in(folder)
    ended = planted("bisect", "--run", "python tests/check.py", "--good", old, "--bad", new, *TO_THE_RELEASE)
    assert ended.code == 0, ended.stderr
    files = {name: (folder / name).read_text(encoding="utf-8") for name in ("mine.py", "tests/check.py")}
    runs = reader(planted("report").stdout, parts_house, **files)
    assert [code for _, code, _ in runs] == [0, 1, 0, 1], runs
    assert all("part07 is broken" in said for _, code, said in runs if code)
