"""Reindented code is one change, and a half-reverted function is reverted as a whole after a skip."""

from __future__ import annotations

from edited import edits_of, unit
from test_likelihood import sides_of

from harness.culprit.regions import moved_together
from harness.culprit.ties import Consistency, ties_of

BEFORE = """def train(batches, step):
    total = 0
    for batch in batches:
        loss = step(batch)

        if loss is None:
            continue
        else:
            total += loss
            log(total)

    return total


def log(value):
    print(value)
    note(value)
"""
AFTER = """def train(batches, step):
    total = 0
    for chunk in chunks(batches):
        for batch in chunk:
            loss = step(batch)

            if loss is None:
                continue
            else:
                total += loss
                log(total)

    return total


def log(value):
    print(value, flush=True)
    note(value)
"""


def test_regions_of_a_reindented_block_move_together(tmp_path):
    edits = edits_of(tmp_path, {"a.py": BEFORE}, {"a.py": AFTER})
    block = {one for one in edits.all if edits.function(one) == "train"}
    assert len(block) > 1
    for one in block:
        assert ties_of(edits).closed({one}) == block
    assert ties_of(edits).closed({unit(edits, "flush=True")}) == {unit(edits, "flush=True")}


def test_a_wrapped_statement_is_not_reindented(tmp_path):
    calls = "def f(x):\n    first(x, 1)\n    y = x\n    second(x, 2)\n    return y\n"
    wrapped = (
        "def f(x):\n    first(\n        x,\n        3,\n    )\n    y = x\n    second(\n        x,\n        4,\n    )\n"
    )
    edits = edits_of(tmp_path, {"a.py": calls}, {"a.py": f"{wrapped}    return y\n"})
    assert not list(moved_together(edits.differences["a.py"]))


def test_blocks_far_apart_are_two_changes(tmp_path):
    def text(depth):
        inner = "".join(f"{' ' * depth}call({n})\n" for n in range(2))
        between = "".join(f"    keep({n})\n" for n in range(9))
        head = "    if True:\n" if depth > 4 else ""
        return f"def f():\n{head}{inner}{between}{head}{inner.replace('call', 'send')}    return 1\n"

    edits = edits_of(tmp_path, {"a.py": text(4)}, {"a.py": text(8)})
    assert len(edits.all) > 1
    assert not list(moved_together(edits.differences["a.py"]))


HALF = {"a.py": "def f(x):\n    x += 1\n    keep(x)\n    x *= 2\n    return x\n\n\ndef g(x):\n    return x\n"}
OTHER = {
    "a.py": HALF["a.py"]
    .replace("+= 1", "+= 3")
    .replace("*= 2", "*= 4")
    .replace("    return x\n\n\n", "    return x + 0\n\n\n")
}


def test_a_whole_function_adds_no_requirement(tmp_path):
    edits = edits_of(tmp_path, HALF, OTHER)
    consistency = Consistency(edits, ties_of(edits))
    whole = frozenset(one for one in edits.all if edits.function(one) == "f")
    assert consistency.taught(whole, sides_of(("the_repro.py", "main", "")).after.observation, reverting=True) == []
