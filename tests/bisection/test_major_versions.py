"""Between two sets of packages, both sides of each step to another major version are tried first."""

from __future__ import annotations

import json

import pytest
from planted_upgrades import TO_THE_RELEASE, freeze, source, suite_of, write_project
from wheelhouse import Wheelhouse

MAJORS = [f"{major}.{minor}" for major in (1, 2, 3) for minor in range(6)]
YEARS = [f"{year}.{month}" for year in range(2019, 2025) for month in (1, 7)]
CANT = "raise ImportError('for another Python')\n"
# Each package with its releases, those that are broken, and those that can't be imported.
PLANTED = {
    "at_a_step": (MAJORS, MAJORS[6:], ()),
    "broken_twice": (MAJORS, [*MAJORS[3:8], *MAJORS[12:]], ()),
    "not_at_a_step": (MAJORS, MAJORS[8:], ("3.0",)),
    "by_year": (YEARS, YEARS[3:], ()),
}
BOUNDARIES = {
    "at_a_step": ("1.5", "2.0"),
    "broken_twice": ("2.5", "3.0"),
    "not_at_a_step": ("2.1", "2.2"),
    "by_year": ("2020.1", "2020.7"),
}


@pytest.fixture(scope="module")
def majors_house(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    house = Wheelhouse(tmp_path_factory.mktemp("majors"))
    for name, (releases, broken, cant) in PLANTED.items():
        for number, version in enumerate(releases):
            body = source(version, broken=f"{name} is broken" if version in broken else "")
            uploaded = f"{2019 + number // 4}-{1 + number % 4 * 3:02}-01T12:00:00Z"
            files = {f"{name}.py": CANT if version in cant else body}
            house.add(name, version, files=files, uploaded=uploaded)
    return house


@pytest.fixture
def answered(harness, majors_house):
    """Bisect the tests of these packages between their oldest and newest releases; returns culprits and releases."""
    there = harness.with_environ(**majors_house.environ)

    def ask(*names):
        write_project(there.folder, suite_of(*names), requires=list(names))
        ends = [
            freeze(there.folder / f"{end}.txt", release="", names=list(names), **{n: PLANTED[n][0][at] for n in names})
            for end, at in (("good", 0), ("bad", -1))
        ]
        words = ("--good", ends[0], "--bad", ends[1], *TO_THE_RELEASE, "--json")
        answer = there("bisect", "--run", "python -m unittest -q test_mine", *words).json
        guilty = [culprit for failure in answer["failures"] for culprit in failure["culprits"]]
        found = {one["package"].replace("-", "_"): (one["last_good"], one["first_bad"]) for one in guilty}
        tried = {}
        for path in (there.folder / "results" / "observations").glob("*/*.json"):
            for pin in json.loads(path.read_text())["lock"]["pins"]:
                tried.setdefault(pin["name"].replace("-", "_"), set()).add(pin["version"])
        return found, tried

    return ask


def test_each_package_has_its_own_boundary(answered):
    found, tried = answered(*PLANTED)
    assert found == BOUNDARIES
    # A change at a step needs no other release than those at steps; the newest of two breaks is the one that is met.
    assert tried["at_a_step"] <= {"1.0", "1.5", "2.0", "2.5", "3.0", "3.5"}
    assert tried["broken_twice"] <= {"1.0", "2.5", "3.0", "3.5"}
    # A release at a step that can't be imported says nothing: the middle comes next.
    assert not {"1.5", "1.4"} & tried["not_at_a_step"]
    # Where each year is a major version, only the newest step is tried before the middle.
    assert len(tried["by_year"]) <= 7
