"""Foresight over a search that is a table of successors."""

from harness.model.verdict import Verdict
from harness.search.protocol import foresee

CHANCES = {Verdict.BAD: 0.6, Verdict.GOOD: 0.3, Verdict.SKIP: 0.1}


def plan(supposed):
    """Each verdict appends its first letter to the name of the next candidate, up to three letters."""
    name = "".join(verdict.value[0] for verdict in supposed.values())
    return name if len(name) <= 2 else None


def test_the_most_likely_path_comes_first():
    found = foresee(4, plan=plan, chances=lambda _: CHANCES, asked=[""])
    assert found == ("b", "bb", "g", "bg")


def test_it_ends_with_the_search_and_excludes_current_requests():
    found = foresee(99, plan=plan, chances=lambda _: CHANCES, asked=["", "b"])
    assert len(found) == 3 + 9 - 1
    assert not {"", "b"}.intersection(found)
