"""The content of a report: sides, versions, certainty, recipient, links, commits, and what was not tried."""

from __future__ import annotations

import json

import pytest
from answers import (
    ADVANCED,
    ANSWER,
    BAD_LOCK,
    BAD_RUN,
    COMMIT,
    GOOD_RUN,
    HOSTILE_MARKS,
    KEPT,
    REVERTED,
    UNPROVED,
    altering,
    down_to_commit,
    found,
    kept,
)
from attrs import evolve

from harness.bisection.answer import Status
from harness.cli.results import recipient_package
from harness.model import Change, Signature, Verdict
from harness.model.verdict import Step
from harness.report.answer import report_page, repositories_in
from harness.report.page import Page
from harness.repository.git import pull_request_url


def test_the_versions_that_matter_come_subject_first():
    rows = report_page(KEPT).content["parts"][0]["versions"]
    assert [row[:3] for row in rows] == [
        ("shop", "1.1", "1.2"),
        ("coin", "0.9", "1.0"),
        ("till", "3.0", "3.0"),
    ]
    assert rows[0][3] == "bisected, culprit"
    assert rows[1][3] == "required, changed"


def test_a_fix_shows_its_bad_side_first_with_its_traceback():
    fixed = kept(
        status=Status.FIXED,
        before="1.2",
        after="1.3",
        is_fix=True,
        sides=(BAD_RUN, evolve(GOOD_RUN, lock=evolve(BAD_LOCK))),
    )
    page = report_page(fixed)
    assert [side["verdict"] for side in page.content["parts"][0]["sides"]] == ["bad", "good"]
    assert page.content["parts"][0]["traceback"].endswith("ValueError: no price\nnot even a small one")


def test_proof_one_way_makes_a_suspect_and_says_what_was_not_shown():
    page = report_page(kept(findings=found(REVERTED, UNPROVED)))
    assert page.content["parts"][0]["versions"][0][3] == "bisected, culprit"
    assert "### Suspect, not proved both ways" in page.markdown()
    assert f"Not shown: {UNPROVED.sentence} (does not import)." in page.content["not_tried"]


def test_an_unproven_package_is_only_a_suspect():
    unproved = found(UNPROVED, package=Change("coin", "0.9", "1.0"))
    page = report_page(kept(findings=unproved[-1:]))
    assert "the suspect is coin 0.9 -> 1.0" in page.content["parts"][0]["recipient"]
    assert page.content["parts"][0]["certainty"].endswith("the region is a suspect, not proved")


def test_a_culprit_in_another_package_names_that_package():
    page = report_page(kept(findings=found(REVERTED, ADVANCED, package=Change("coin", "0.9", "1.0"))))
    whose, _, where = page.content["parts"][0]["recipient"].partition("the culprit is coin 0.9 -> 1.0")
    assert "maintainers of coin, not of shop" in whose
    assert "shop 1.2" in where
    assert [row[0] for row in page.content["parts"][0]["versions"][:2]] == ["shop", "coin"]


def test_every_release_of_the_range_has_a_cell():
    page = report_page(KEPT)
    assert [(cell["release"], cell["letter"]) for cell in page.content["parts"][0]["cells"]] == [
        ("1.0", "G"),
        ("1.1", "G"),
        ("1.2", "B"),
        ("1.3", "S"),
        ("1.4", "B"),
    ]
    assert page.content["parts"][0]["cells"][3]["title"] == "1.3, 2025-04-01: skipped (failed differently: a|b `c`)"


def test_a_release_not_run_is_open_only_while_it_can_matter():
    steps = tuple(step for step in ANSWER.steps if step.release not in ("1.2", "1.3"))
    assert "[GG?-B]" in report_page(kept(steps=steps, suspects=("1.2", "1.4"))).markdown()


def test_an_answer_without_sides_shows_the_newest_failure():
    nothing = kept(status=Status.NOT_A_REGRESSION, sides=(), findings=(), after=None)
    page = report_page(nothing, failing=BAD_RUN)
    assert page.content["parts"][0]["sides"] == ()
    assert page.content["parts"][0]["traceback_title"] == "shop 1.2"
    assert page.content["parts"][0]["certainty"] == "certain for the releases that were run"


def test_the_device_and_its_limits_are_named():
    assert any("Nothing ran on a GPU" in line for line in report_page(KEPT).content["not_tried"])
    emulated = report_page(kept(device="emulated"))
    assert any("stand-in" in line for line in emulated.content["not_tried"])
    assert any(f"harness probe --again {GOOD_RUN.key}" in line for line in emulated.content["parts"][0]["how_to"])


def test_files_that_a_run_changed_in_its_environment_are_listed_by_release():
    files = tuple(f"lib/python3.11/site-packages/shop/{n}.py" for n in range(23))
    text = report_page(altering({"1.10": files, "1.9": ("bin/shop",)})).markdown()
    told = [line for line in text.splitlines() if "changed files of the environment" in line]
    assert [line.split("**")[1].split()[0] for line in told] == ["1.10", "1.9"]
    assert "shop/0.py" in told[0]
    assert "site-packages" not in told[0]
    assert "shop/22.py" in told[0]
    assert "bin/shop" in told[1]


def test_the_end_of_each_log_is_kept():
    log = "\n".join(f"line {n}" for n in range(500)) + "\n"
    side = report_page(KEPT, logs={GOOD_RUN.key: log}).content["parts"][0]["sides"][0]
    assert side["log"].splitlines()[0] == "... 300 lines before these"
    assert side["log"].splitlines()[-1] == "line 499"
    assert len(side["log"].splitlines()) == 201


def test_an_answer_about_a_metric_says_where_it_is_written():
    page = report_page(kept(signature=Signature(metric="loss", above=2.0)))
    assert all(
        side["command"].startswith("HARNESS_METRICS=metrics.json uv run") for side in page.content["parts"][0]["sides"]
    )
    assert "Compare loss in metrics.json." in page.content["parts"][0]["how_to"]


SHOP = {"shop": "https://github.com/mall/shop"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Project-URL: Repository, https://github.com/mall/shop", SHOP),
        ("Project-URL: Source Code, https://github.com/mall/shop.git", SHOP),
        ("Project-URL: Homepage, https://github.com/mall/shop/", SHOP),
        ("Home-page: https://github.com/mall/shop", SHOP),
        ("Home-page: https://shop.example", {}),
        ("Project-URL: Funding, https://github.com/mall/shop", {}),
        ("Project-URL: Source, https://github.com/mall/shop/issues", {}),
        ("Summary: see https://github.com/mall/shop", {}),
    ],
)
def test_only_a_repository_in_the_metadata_is_linked(tmp_path, header, found):
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "Shop-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Shop\n{header}\n\nthe text\n", encoding="utf-8")
    assert repositories_in(tmp_path, ["shop"]) == found


def test_a_missing_environment_gives_no_links(tmp_path):
    assert repositories_in(tmp_path / "gone", ["shop"]) == {}


@pytest.mark.parametrize("render", [Page.markdown, Page.html])
def test_a_report_names_the_commit_and_links_it(render) -> None:
    text = render(report_page(kept(findings=down_to_commit())))
    assert COMMIT.sha[:10] in text
    assert COMMIT.link in text
    assert COMMIT.pull_request_link in text
    assert COMMIT.author in text
    assert COMMIT.date in text
    if render is Page.html:
        assert "<b>price" not in text


def test_nothing_is_linked_without_known_pages() -> None:
    bare = evolve(COMMIT, link="", pull_request_link="")
    text = Page.markdown(report_page(kept(findings=down_to_commit(bare))))
    assert COMMIT.sha in text
    assert "https://github.com/a/shop" not in text


def test_a_pull_request_in_the_subject_is_not_repeated() -> None:
    assert COMMIT.described.count("#42") == 1
    assert "pull request #42" in evolve(COMMIT, subject="Rework the price").described


@pytest.mark.parametrize(
    ("repository", "page"),
    [
        ("https://github.com/a/shop", "https://github.com/a/shop/pull/7"),
        ("https://gitlab.com/a/shop", "https://gitlab.com/a/shop/-/merge_requests/7"),
        ("https://codeberg.org/a/shop", "https://codeberg.org/a/shop/pulls/7"),
        ("", ""),
    ],
)
def test_the_link_of_a_pull_request_follows_its_host(repository: str, page: str) -> None:
    assert pull_request_url(repository, 7) == page
    assert pull_request_url(repository, None) == ""


@pytest.mark.parametrize("render", [Page.html, Page.markdown, Page.json])
def test_no_escape_of_a_stranger_reaches_a_report(render):
    """From a commit's subject and author, a yanked reason, or a message; JSON keeps them, escaped."""
    hostile = evolve(COMMIT, subject=HOSTILE_MARKS, author=HOSTILE_MARKS)
    answer = kept(
        findings=down_to_commit(hostile),
        left_out={"1.3.1": f"yanked: {HOSTILE_MARKS}"},
        sentence=HOSTILE_MARKS,
        steps=(*ANSWER.steps, evolve(ANSWER.steps[-1], drift=(HOSTILE_MARKS,))),
    )
    page = report_page(answer)
    text = render(page)
    assert [mark for mark in "\x1b\x07\x9b\u202e\u2066\u200f" if mark in text] == []
    assert "evil" in text
    if render is Page.json:
        assert json.loads(text)["left_out"]["1.3.1"] == f"yanked: {HOSTILE_MARKS}"


def test_repetitions_of_a_release_are_one_row_and_it_is_bad_if_one_run_was() -> None:
    verdicts = [Verdict.GOOD, Verdict.BAD, Verdict.GOOD]
    steps = [Step("1.2", verdict, f"{verdict} {n}", f"o{n}", False, 0.5, n) for n, verdict in enumerate(verdicts)]
    steps.insert(0, Step("1.1", Verdict.GOOD, "ran", "p", True, 0.0))
    page = report_page(kept(steps=tuple(steps)))
    assert page.content["parts"][0]["runs"] == 4
    known, ran = page.content["parts"][0]["steps"]
    assert known == {
        "release": "1.1", "verdict": "good", "why": "ran", "runs": "1", "time": "known already", "observation": "p"
    }  # fmt: skip
    assert (ran["verdict"], ran["runs"], ran["time"], ran["observation"]) == ("bad", "1 of 3 runs", "1.5 s", "o1")
    assert [cell["letter"] for cell in page.content["parts"][0]["cells"] if cell["release"] == "1.2"] == ["B"]
    assert "| 2 | `1.2` | bad | 1 of 3 runs | `bad 1` | 1.5 s | `o1` |" in Page.markdown(page)


def test_many_suspects_are_told_as_a_range() -> None:
    unsure = kept(status=Status.INCONCLUSIVE, suspects=tuple(f"1.{n}" for n in range(1, 30)), findings=())
    assert (
        report_page(unsure).content["parts"][0]["certainty"]
        == "not certain; the suspects are 1.1 to 1.29 (29 releases)"
    )


def test_a_build_that_took_the_place_of_the_locks_is_told_and_not_in_the_commands() -> None:
    build = evolve(BAD_LOCK.pins[-1], name="till", version="3.0+cpu", sha256="cd" * 32)
    page = report_page(kept(sides=(GOOD_RUN, evolve(BAD_RUN, installed=(build,)))))
    assert (
        "The commands install the public versions of till 3.0+cpu, which not every index has."
        in page.content["parts"][0]["how_to"]
    )
    assert page.content["parts"][0]["sides"][1]["versions"]["till"] == "3.0+cpu"
    assert "+cpu" not in page.content["parts"][0]["sides"][1]["command"] + page.content["parts"][0]["sides"][1]["lock"]


def test_the_report_is_for_the_subject_if_it_is_a_culprit_else_for_the_culprit():
    assert recipient_package(KEPT.answer) == "shop"
    other = kept(findings=found(REVERTED, ADVANCED, package=Change("till", "3.0", "3.1")))
    assert recipient_package(other.answer) == "till"
