"""Every option of `harness bisect` with every kind of question: it means something there, or it is refused."""

from __future__ import annotations

import itertools

import pytest

from harness.cli.bisect import bisect
from harness.cli.search_options import CONSTRAINTS
from harness.errors import UserMistake
from harness.model.culprit import Level
from harness.question.commands import ChosenProject
from harness.question.request import Policy, QuestionKind, Request, kind_of, refuse_meaningless
from harness.settings import Settings

RUN = "python -m unittest -q"
ENDS = {
    QuestionKind.RELEASES: {"subject": "brittle", "repro": "step", "good": "1.0", "bad": "1.9"},
    QuestionKind.PACKAGES: {"run": RUN, "good": "2024-01-01", "bad": "2024-06-01"},
    QuestionKind.COMMITS: {"subject": "brittle", "repro": "step", "good": "v1.0", "bad": "main"},
    QuestionKind.PYTHONS: {"subject": "python", "repro": "step", "good": "3.11", "bad": "3.13"},
}
POLICY = {
    "--find-fix": {"find_fix": True},
    "--pre": {"prereleases": True},
    "--confirm": {"confirm": 3},
    "--flaky": {"flaky": True},
    "--confidence": {"confidence": 0.9},
    "--trust-ends": {"flaky": True, "trust_ends": True},
    "--no-fork": {"fork": False},
    "--git": {"git": "clone"},
    "--time": {"time_s": 60.0},
    "--ask": {"ask": True},
    "--made": {"made": True},
    "--metric": {"metric": "loss"},
}
PROJECT = {
    "--project": {"folder": "."},
    "--extra": {"extras": ("x",)},
    "--group": {"groups": ("x",)},
    "--unpin": {"unpin": True},
    "--from-junit": {"from_junit": "report.xml"},
}
SETTINGS = {
    "--as-of": {"as_of": "2024-05-01"},
    "--python": {"python": "3.12"},
    "--on": {"on": "ssh gpu1 {script}"},
    "--scheduler": {"scheduler": "tcp://127.0.0.1:1"},
    "--build": {"from_source": ("brittle",)},
    "--no-build": {"no_build": True},
    "--with": {"with_": ("other==1",)},
    "--made-with": {"made_with": ("other==1",)},
    "--hold": {"hold": ("other==1",)},
    "--index": {"index": ("other=https://index.example/simple",)},
    "--nightly": {"nightly": True},
}
# Options that name the question itself, say where results go, or limit what a run may use, mean the same everywhere.
EVERYWHERE = {
    "--good", "--bad", "--repro", "--run", "--depth", "--json", "--json-lines", "--junit", "--results",
    "--help", "--constraints", "--device",
    "--param", "--timeout",
    "--pass-env", "--capability", "--torch-backend", "--sandbox", "--network", "--max-disk", "--lanes",
}  # fmt: skip
SCRIPTS = {QuestionKind.RELEASES, QuestionKind.COMMITS, QuestionKind.PYTHONS}
REFUSED = {
    *(("--pre", kind) for kind in (QuestionKind.PYTHONS,)),
    *(("--git", kind) for kind in (QuestionKind.PYTHONS,)),
    *(("--no-fork", kind) for kind in (QuestionKind.COMMITS,)),
    *(("--time", kind) for kind in (QuestionKind.COMMITS,)),
    *(("--as-of", kind) for kind in (QuestionKind.PACKAGES,)),
    *(("--no-build", kind) for kind in SCRIPTS),  # only an end's own packages are built unasked
    ("--metric", QuestionKind.PYTHONS),
    *(("--made", kind) for kind in (QuestionKind.PACKAGES, QuestionKind.COMMITS, QuestionKind.PYTHONS)),
    ("--made-with", QuestionKind.PACKAGES),  # that question runs a command, which has no first step
    *(
        (option, QuestionKind.PYTHONS)
        for option in ("--python", "--on", "--scheduler", "--build", "--index", "--nightly")
    ),
    *((option, kind) for option in PROJECT for kind in SCRIPTS),  # their question runs a repro
}


def asked(kind, **policy):
    ends = ENDS[kind]
    if kind is QuestionKind.COMMITS:
        policy = {"git": "clone", **policy}
    if policy.get("find_fix"):
        ends = {**ends, "good": ends["bad"], "bad": ends["good"]}
    return Request(**ends, policy=Policy(**policy))


def refused(request, settings, typed=()):
    kind, ends = kind_of(request, settings)
    try:
        refuse_meaningless(request, settings, kind, ends, typed)
    except UserMistake as mistake:
        return mistake
    return None


@pytest.mark.parametrize(("option", "kind"), list(itertools.product([*POLICY, *PROJECT, *SETTINGS], QuestionKind)))
def test_an_option_means_something_or_is_refused(option, kind):
    request = asked(kind, **POLICY.get(option, {}))
    if option in PROJECT:
        request = Request(**ENDS[kind], policy=request.policy, project=ChosenProject(**PROJECT[option]))
    settings = Settings(**SETTINGS.get(option, {}))
    mistake = refused(request, settings)
    if (option, kind) in REFUSED:
        assert mistake is not None
        assert option in mistake.message
        assert mistake.hint
    elif option == "--git" and kind is QuestionKind.PACKAGES:
        assert mistake is None  # the commit level of each culprit
    else:
        assert mistake is None, mistake


def test_every_option_of_the_command_is_in_the_table():
    flags = {flag for param in bisect.params for flag in (*param.opts, *param.secondary_opts) if flag.startswith("--")}
    known = {*POLICY, *PROJECT, *SETTINGS, *EVERYWHERE, "--fork"}
    assert flags <= known, f"say for which questions it means something: {sorted(flags - known)}"


@pytest.mark.parametrize("option", ["--ask", "--git", "--on", "--scheduler", "--no-fork"])
def test_what_means_nothing_for_releases_that_write_is_refused(option):
    more = {"git": "auto"} if option == "--git" else POLICY.get(option, {})
    request = Request(**ENDS[QuestionKind.RELEASES], policy=Policy(made=True, **more))
    assert option in refused(request, Settings(**SETTINGS.get(option, {}))).message


def test_made_searches_what_writes_so_with_may_name_the_subject():
    request = Request(**ENDS[QuestionKind.RELEASES], policy=Policy(made=True))
    assert refused(request, Settings(with_=("brittle==1.2",))) is None
    assert "--made-with" in refused(request, Settings(made_with=("brittle==1.2",))).message


@pytest.mark.parametrize("kind", list(QuestionKind))
def test_the_kind_follows_from_the_ends(kind):
    assert kind_of(asked(kind), Settings())[0] is kind


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"depth": "region"}, "--depth"),
        ({"policy": Policy(git="clone", trust_ends=True)}, "--trust-ends"),
    ],
)
def test_commits_refuse_other_levels_and_a_trust_without_noise(changed, option):
    request = Request(**{**ENDS[QuestionKind.COMMITS], "policy": Policy(git="clone"), **changed})
    assert option in refused(request, Settings()).message


@pytest.mark.parametrize("kind", list(QuestionKind))
def test_constraints_are_written_only_for_packages(kind):
    mistake = refused(asked(kind), Settings(), (CONSTRAINTS,))
    assert (mistake is None) == (kind in (QuestionKind.RELEASES, QuestionKind.PACKAGES))


@pytest.mark.parametrize("depth", list(Level))
@pytest.mark.parametrize(
    ("policy", "levels"),
    [
        ({"ask": True}, {Level.RELEASE}),
        ({"fork": False}, set(Level)),
        ({}, set(Level)),
    ],
)
def test_a_level_is_refused_where_the_search_does_not_reach_it(depth, policy, levels):
    request = Request(**ENDS[QuestionKind.RELEASES], depth=depth, policy=Policy(**policy))
    assert (refused(request, Settings()) is None) == (depth in levels)


@pytest.mark.parametrize("good", ["2024-06-01", "2024-09-01"])
def test_days_the_wrong_way_round_are_told_as_releases_are(good):
    request = Request(run=RUN, good=good, bad="2024-06-01")
    told = refused(request, Settings()).message
    assert "--good" in told
    assert "--bad" in told


@pytest.mark.parametrize(("good", "bad"), [("1.4", "1.2"), ("1.2", "1.2")])
def test_releases_the_wrong_way_round_are_told_for_tests_of_a_project_too(good, bad):
    told = refused(Request("brittle", run="pytest", good=good, bad=bad), Settings()).message
    assert f"--good {good} is newer than --bad {bad}" in told or "both 1.2" in told


def test_a_requirement_for_the_subject_is_refused():
    mistake = refused(asked(QuestionKind.RELEASES), Settings(with_=("Brittle==1.2",)))
    assert "--with" in mistake.message
