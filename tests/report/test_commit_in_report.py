"""A report down to the commit names it, its pull request and how to replay the bisection."""

from __future__ import annotations

import pytest
from answers import ADVANCED, ANSWER, REVERTED, kept
from attrs import evolve

from harness.bisect.wording import culprit_sentence
from harness.model.commit import Commit
from harness.model.culprit import Culprit, Finding, Level
from harness.report.answer.building import make_content
from harness.report.render import render_html, render_markdown
from harness.repository.commits import pull_request_url

COMMIT = Commit(
    "0123456789abcdef0123456789abcdef01234567",
    "A. Author",
    "2025-06-20T12:00:00+02:00",
    "Rework | the <b>price</b> (#42)",
    pull_request=42,
    link="https://github.com/a/shop/commit/0123456789abcdef0123456789abcdef01234567",
    pull_request_link="https://github.com/a/shop/pull/42",
)


def answered(commit: Commit = COMMIT) -> Culprit:
    """The culprit of the example answer, with a commit."""
    assert ANSWER.culprit is not None
    region = ANSWER.culprit.finest
    proofs = (evolve(REVERTED, sentence="commit aaaa"), evolve(ADVANCED, sentence="commit 0123"))
    finding = evolve(region, level=Level.COMMIT, proofs=proofs, commits=(commit,), replay="git bisect start\n")
    return Culprit((*ANSWER.culprit.findings, finding))


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_a_report_names_the_commit_and_links_it(render) -> None:
    text = render(make_content(kept(culprit=answered())))
    assert COMMIT.sha[:10] in text
    assert COMMIT.link in text
    assert COMMIT.pull_request_link in text
    assert COMMIT.author in text
    assert COMMIT.date in text
    assert "git bisect start" in text
    if render is render_html:
        assert "<b>price" not in text


def test_nothing_is_linked_without_known_pages() -> None:
    bare = evolve(COMMIT, link="", pull_request_link="")
    text = render_markdown(make_content(kept(culprit=answered(bare))))
    assert COMMIT.sha in text
    assert "https://github.com/a/shop" not in text


def test_the_sentence_names_the_commit_its_day_and_the_verdict_of_its_parent() -> None:
    culprit = answered()
    sentence = culprit_sentence(ANSWER, culprit)
    assert COMMIT.short in sentence
    assert "2025-06-20" in sentence
    assert "its parent is good, it is bad" in sentence
    unproved: Finding = evolve(culprit.finest, proofs=())
    assert "not proved" in culprit_sentence(ANSWER, Culprit((*culprit.findings[:-1], unproved)))


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
