"""An upstream issue goes to the repository of the culprit, with its release in the title."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.model import Change
from harness.nightly.tracker import upstream_issue

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))
from answers import ADVANCED, KEPT, REVERTED, found, kept


def test_the_issue_goes_to_the_repository_of_the_culprit():
    issue = upstream_issue(
        KEPT, {"shop": "https://github.com/shops/shop", "till": "https://github.com/tills/till"}, "body"
    )
    assert (issue.package, issue.repository, issue.title) == ("shop", "shops/shop", "shop 1.2 breaks sale")
    assert issue.command("body.md") == (
        "gh issue create --repo shops/shop --title 'shop 1.2 breaks sale' --body-file body.md"
    )


def test_a_culprit_other_than_the_subject_gets_the_issue():
    """The package in which users hit the bug does not get the issue."""
    other = kept(culprit=found(REVERTED, ADVANCED, package=Change("till", "3.0", "3.1")))
    issue = upstream_issue(
        other, {"shop": "https://github.com/shops/shop", "till": "https://github.com/tills/till"}, "body"
    )
    assert (issue.package, issue.repository, issue.title) == ("till", "tills/till", "till 3.1 breaks sale")


def test_an_unknown_repository_is_not_guessed():
    issue = upstream_issue(KEPT, {"till": "https://github.com/tills/till"}, "body")
    assert (issue.repository, issue.command("body.md")) == ("", "")
