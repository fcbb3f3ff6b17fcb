"""The commands in the report of a project's question work."""

from __future__ import annotations

from planted_upgrades import freeze, suite_of, write_project
from report_readers import reader  # noqa: F401 - a fixture


def test_every_command_of_a_projects_report_works(planted, parts_house, reader):  # noqa: F811
    """The reader has the files of the project besides."""
    folder = write_project(planted.folder, suite_of("part07"))
    old, new = freeze(folder / "old.txt", release="1.2"), freeze(folder / "new.txt", release="2.0")
    ended = planted("bisect", "--run", "python -m unittest -q test_mine", "--good", old, "--bad", new)
    assert ended.code == 0, ended.stderr
    files = {name: (folder / name).read_text(encoding="utf-8") for name in ("mine.py", "test_mine.py")}
    runs = reader(planted("report").stdout, parts_house, **files)
    assert "--harness-only" not in str(runs)
    assert [code for _, code, _ in runs] == [0, 1, 0, 1], runs
    assert all("part07 is broken" in said for _, code, said in runs if code)
