"""Plants one regression in a real package: one wrong line among refactorings that don't change behaviour.

The older side is the package as published. In the newer side, functions are renamed, moved, and get new parameters
(their callers, too), files are renamed, results are returned as tuples, base classes are added, and one line of a
function that ran is wrong. After each batch of refactorings the expression that shows the bug is evaluated; a batch
that changes its value is discarded.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from attrs import field, frozen

from planting.evaluate import Runner
from planting.moves import comment, move_in_file, move_to_new_file, new_base
from planting.mutations import mutations
from planting.renames import rename_attribute, rename_file, rename_function, rename_local
from planting.signatures import add_parameter, name_the_result, new_helper, return_tuple
from planting.text import Tree, parsed

MESSAGE = "the answer is wrong"
_ADDRESS = re.compile(r"(?:@| at) (?:0x)?[0-9a-f]{6,}")
_REFACTORINGS = (
    rename_local, rename_local, rename_function, rename_function, rename_attribute, add_parameter, add_parameter,
    return_tuple, return_tuple, move_in_file, move_to_new_file, rename_file, comment, name_the_result,
    name_the_result, new_helper, new_base,
)  # fmt: skip


@frozen
class Case:
    """Two trees, the expression whose values differ, and the place of the bug in the newer tree (file and line)."""

    name: str
    package: str
    setup: str
    expression: str
    expected: str
    before: Tree = field(repr=False)
    after: Tree = field(repr=False)
    path: str
    line: int
    change: str
    raised: str = ""
    message: str = ""
    steps: tuple[str, ...] = ()


def plant(
    name: str, package: str, tree: Tree, setup: str, expressions: list[str], run: Runner, rng: random.Random
) -> Case | None:
    """Return one case, or None if no bug could be planted or the value has the address of an object."""
    expression = rng.choice(expressions)
    good = run(tree, setup, expression)
    if good.raised or _ADDRESS.search(good.value):
        return None
    newer, steps = _refactored(tree, lambda found: run(found, setup, expression) == good, rng)
    ran = run(newer, setup, expression, trace=True)
    spots = list(mutations(newer, ran.lines))
    rng.shuffle(spots)
    for path, line, mutated, change in spots[:40]:
        bad = run({**newer, path: mutated}, setup, expression)
        if bad == good or bad.raised == "died" or bad.raised == "SyntaxError":
            continue
        return Case(
            name, package, setup, expression, good.value, tree, {**newer, path: mutated}, path, line, change,
            bad.raised, bad.value if bad.raised else "", tuple(steps),
        )  # fmt: skip
    return None


def _refactored(tree: Tree, is_same: Callable[[Tree], bool], rng: random.Random) -> tuple[Tree, list[str]]:
    steps: list[str] = []
    current = dict(tree)
    for _ in range(rng.randint(2, 6)):
        batch, done = dict(current), []
        for _ in range(rng.randint(2, 6)):
            kind = rng.choice(_REFACTORINGS)
            found = kind(batch, rng)
            if found is not None and all(_is_sound(text) for path, text in found.items() if text != batch.get(path)):
                batch = found
                done.append(kind.__name__.strip("_"))
        if done and is_same(batch):
            current = batch
            steps += done
    return current, steps


def _is_sound(text: str) -> bool:
    try:
        parsed(text)
    except SyntaxError:
        return False
    return True
