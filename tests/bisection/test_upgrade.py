"""From two environments to every culprit: exact packages and releases, few runs, and constraints checked by a run."""

from __future__ import annotations

from planted_upgrades import freeze, suite_of, write_project

RUN = ("--run", "python -m unittest -q test_mine")


def culprits(answer):
    return {
        culprit["package"]: (culprit["last_good"], culprit["first_bad"])
        for group in answer["failures"]
        for culprit in group["culprits"]
    }


def ends_of(folder, **bad):
    """Two frozen lists that differ in all packages."""
    old = freeze(folder / "old.txt", release="1.0")
    new = freeze(folder / "new.txt", release="2.1", **bad)
    return "--good", old, "--bad", new


def test_one_culprit_among_a_dozen(planted):
    write_project(planted.folder, suite_of("part01", "part07", "part10"))
    ended = planted("bisect", *ends_of(planted.folder, part09="1.1", part11="1.0"), *RUN, "--confirm", "1", "--json")
    answer = ended.json
    assert (ended.code, answer["status"], answer["schema"]) == (0, "found", 4)
    assert culprits(answer) == {"part07": ("1.2", "2.0")}
    assert answer["failures"][0]["tests"] == ["test_mine.T.test_part07"]
    assert (answer["constraints"], answer["constraints_verified"]) == (["part07<2"], True)
    assert answer["probes"] <= 12
    assert answer["ends"]["good"] == {"kind": "lock", "text": str(planted.folder / "old.txt")}
