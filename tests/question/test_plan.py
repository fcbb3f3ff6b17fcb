"""A plan decides everything that was left open, and reports its choices."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support import repro_text

from harness.environment import Index, PipSettings
from harness.errors import UnknownRelease
from harness.model import Combination
from harness.model.repro import parse_repro
from harness.model.requirements import merged_requirements, required_name
from harness.question.ends import newest_end, parse_end
from harness.question.question import Question
from harness.question.releases import holds_of, line_of, releases_on_line
from harness.question.request import Policy

FIX = Policy(find_fix=True)


@pytest.fixture
def plan(tmp_path, house, interpreter):
    def make(subject="brittle", *, tool="", dependencies=None, with_=(), hold=(), **asked):
        repro = parse_repro(repro_text(subject, tool=tool, dependencies=dependencies), name="step")
        requirements = merged_requirements(repro.dependencies, with_, {subject})
        holds = holds_of(repro, subject, set(map(required_name, with_)), hold)
        combination = Combination(interpreter.version, requirements, holds)
        index = Index(PipSettings(index_url=house.url), tmp_path, environ={})
        return line_of(Question(subject, repro, combination, **asked), index=index, interpreter=interpreter)

    return make


def shown(plan):
    return [str(release.version) for release in plan.releases]


def combination(plan, position):
    return plan.beside(None).at(None, {plan.question.subject: plan.names[position]}).combination


def test_only_releases_between_the_ends_are_tried(plan):
    made = plan(good="1.2", bad="1.10")
    assert shown(made) == ["1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10"]
    assert (made.good, made.bad) == (0, 8)
    made = plan(policy=FIX, bad="1.9")
    assert (shown(made)[0], shown(made)[-1], made.bad, made.good) == ("1.9", "1.12", 0, None)


BOUNDS = '[tool.harness.subjects.brittle]\ngood = "1.2"\nbad = "1.7"\nhold = ["helper==1.0", "other==2"]\n'


def test_the_bounds_of_the_repro_are_used_where_they_fit(plan):
    assert shown(plan(tool=BOUNDS))[0::5] == ["1.2", "1.7"]
    made = plan(tool=BOUNDS, bad="1.1")
    assert (made.good, shown(made)[-1]) == (None, "1.1")
    made = plan(tool=BOUNDS, good="1.8")
    assert (made.bad, shown(made)[-1]) == (None, "1.12")
    assert plan(tool=BOUNDS, policy=FIX).releases[0] == plan(good="1.7", bad="1.8").releases[0]


def test_a_requirement_of_the_user_replaces_the_one_in_the_repro(plan):
    dependencies = '["brittle>=1", "helper==2.0", "other"]'
    made = plan(dependencies=dependencies, tool=BOUNDS, with_=("Helper==3.0",), hold=("other==1",))
    assert combination(made, 0).requirements == ("Helper==3.0", "other", "brittle==1.2")
    assert made.question.combination.holds == ("other==1",)
    assert plan(tool=BOUNDS).question.combination.holds == ("helper==1.0", "other==2")


def test_era_uses_the_date_of_each_release_and_a_date_is_for_all(plan):
    era = plan(good="1.0", bad="1.3", as_of="era")
    assert combination(era, 1).as_of == datetime(2023, 2, 1, 13, tzinfo=UTC)
    fixed = plan(good="1.0", bad="1.3", as_of="2024-05-01")
    assert combination(fixed, 1).as_of == parse_end("2024-05-01", "--good", now=datetime.now(UTC)).moment
    newest = newest_end("2024-05-01", datetime.now(UTC))
    assert combination(fixed, 1).as_of == newest.moment == datetime(2024, 5, 2, tzinfo=UTC)
    assert combination(plan(good="1.0", bad="1.3"), 1).as_of is None


def test_pre_releases_are_allowed_for_the_subject_alone(plan):
    made = plan("early", policy=Policy(prereleases=True))
    assert shown(made) == ["1.0", "1.1", "1.2rc1", "1.2"]
    assert combination(made, 2).prereleases == ("early",)
    assert combination(made, 3).prereleases == ()
    assert list(plan("early").left_out.items()) == [("1.2rc1", "pre-release (--pre includes it)")]


@pytest.mark.parametrize(
    ("ends", "names"),
    [
        (("1.2", "1.4"), ["1.2", "1.3", "1.4"]),
        (("1.10+cpu", "1.8+cu121"), ["1.10", "1.9", "1.8"]),  # a local label names a build
        ((None, "1.1"), ["1.0", "1.1"]),
        (("1.11", None), ["1.11", "1.12"]),
        (("1.2", "unknown"), []),
    ],
)
def test_a_line_goes_from_one_end_to_the_other(plan, tmp_path, house, interpreter, ends, names):
    index = Index(PipSettings(index_url=house.url), tmp_path, environ={})
    asked = plan(good="1.2", bad="1.3").question
    releases, _ = releases_on_line(index.releases("brittle"), asked, interpreter, ends)
    assert [str(release.version) for release in releases] == names


def test_a_yanked_release_is_tried_if_named(plan):
    assert shown(plan("mixed", good="1.1")) == ["1.1", "1.6"]


def test_the_reasons_are_given_if_nothing_can_be_tried(plan, house):
    house.add("nothing", "1.0", requires_python=">=3.99")
    house.add("nothing", "1.1", yanked="gone")
    with pytest.raises(UnknownRelease, match=r"no release can be tried: requires Python >=3\.99.*; yanked: gone"):
        plan("nothing")


FIXED = '[tool.harness.subjects.brittle]\ngood = "1.9"\nbad = "1.6"\n'


def test_a_repro_whose_bad_release_is_older_asks_for_the_fix(plan):
    made = plan(tool=FIXED)
    assert made.question.policy.find_fix
    assert (shown(made)[0], shown(made)[-1], made.bad, made.good) == ("1.6", "1.9", 0, 3)
    assert any("looking for the fix" in choice for choice in made.question.notes)


@pytest.mark.parametrize(
    ("tool", "asked", "ends"),
    [
        (FIXED, {}, ("1.9", "1.6")),
        (FIXED, {"good": "1.8"}, ("1.8", "1.6")),
        (FIXED, {"bad": "1.7"}, ("1.9", "1.7")),
        (FIXED, {"bad": "1.10"}, (None, "1.10")),
        (BOUNDS, {"good": "1.10"}, ("1.10", "1.7")),
        (BOUNDS, {"good": "1.5"}, ("1.5", None)),
        (BOUNDS, {"bad": "1.1"}, ("1.2", "1.1")),
        (BOUNDS, {"bad": "1.8"}, (None, "1.8")),
    ],
)
def test_a_bound_of_the_repro_is_an_end_of_the_fix_if_it_is_on_its_side(plan, tool, asked, ends):
    """Where it is not, the range is open there: to the oldest release, or to the newest."""
    made = plan(tool=tool, policy=FIX, **asked)
    assert tuple(None if at is None else shown(made)[at] for at in (made.good, made.bad)) == ends
    assert (shown(made)[0], shown(made)[-1]) == (ends[1] or "1.0", ends[0] or "1.12")
    taken = {name for name, end in zip(("good", "bad"), ends, strict=True) if end and name not in asked}
    assert {choice.split()[0] for choice in made.question.notes if " end: " in choice} == taken


@pytest.mark.parametrize("asked", [{"good": "1.2"}, {"bad": "1.8"}])
def test_an_end_of_the_user_asks_for_the_regression(plan, asked):
    assert not plan(tool=FIXED, **asked).question.policy.find_fix
