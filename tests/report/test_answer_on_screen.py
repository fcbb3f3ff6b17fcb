"""What the terminal shows of an answer."""

from __future__ import annotations

import io

from answers import ANSWER
from attrs import evolve

from harness.model.culprit import Evidence
from harness.terminal.answer import print_answer
from harness.terminal.console import Console


def test_evidence_names_the_removed_name_and_its_file():
    out = io.StringIO()
    evidence = Evidence("removed-name", "shop.sell", "shop.sell was in 1.1 (shop/till.py:7) and was removed in 1.2")
    print_answer(Console(file=out, width=200), evolve(ANSWER, evidence=(evidence,)), "results")
    (line,) = [line for line in out.getvalue().splitlines() if "evidence" in line]
    assert "shop.sell" in line
    assert "shop/till.py:7" in line
