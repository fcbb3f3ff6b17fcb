"""Which wheel's file is installed where two wheels have one: the later in pip's order, whatever was installed before.

pip installs what others require first, and otherwise from Z to A; the last one that writes a file wins. uv writes all
at once, so the winner would be a matter of luck.
"""

from __future__ import annotations

from email.parser import HeaderParser
from typing import TYPE_CHECKING

from attrs import field, frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.model import normalized_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.environment.ledger import FileState

_CODE = (".py", ".so", ".pth", ".pyd")
_TOLD = 2


@frozen(eq=False)
class Tree:
    """The installed files of one wheel below `folder`, by path; `key` is its name in the wheel store, "" if loose."""

    name: str
    version: str
    folder: Path
    files: Mapping[str, FileState]
    key: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def required(self) -> set[str]:
        """The projects that it requires on this machine, without extras."""
        found = set()
        for path in self.files:
            if path.endswith(".dist-info/METADATA"):
                text = (self.folder / path).read_text(encoding="utf-8", errors="replace")
                for line in HeaderParser().parsestr(text).get_all("Requires-Dist", ()):
                    try:
                        requirement = Requirement(str(line))
                        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
                    except (InvalidRequirement, ValueError):
                        continue
                    found |= {normalized_name(requirement.name)} if is_needed else set()
        return found


@frozen
class Layout:
    """Trees in the order of their installation, and the index of the tree that each path comes from.

    `overwritten` are the paths of which there are several; `clashes` tells those with different code, in sentences.
    """

    trees: Sequence[Tree]
    _owners: Mapping[str, int] = field(alias="owners")
    overwritten: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()

    @classmethod
    def of(cls, trees: Sequence[Tree], own: Container[str]) -> Layout:
        """The layout of these trees in an environment that already has the files `own`."""
        having: dict[str, list[int]] = {}
        for number, tree in enumerate(trees):
            for path in tree.files:
                having.setdefault(path, []).append(number)
        several = [path for path, numbers in having.items() if len(numbers) > 1]
        rank = {name: number for number, name in enumerate(in_pips_order(trees))} if several else {}
        owners = {
            path: max(numbers, key=lambda number: rank[trees[number].name]) if len(numbers) > 1 else numbers[0]
            for path, numbers in having.items()
            if path not in own
        }
        clashes: dict[str, list[str]] = {}
        for path in several:
            others = [trees[n] for n in having[path]]
            if path in owners and path.endswith(_CODE) and len({tree.files[path].content for tree in others}) > 1:
                where = f"{' and '.join(map(str, others))}: that of {trees[owners[path]].name} is installed"
                clashes.setdefault(where, []).append(path)
        for tree in trees:
            if taken := [path for path in tree.files if path in own]:
                clashes.setdefault(f"{tree}: not installed, it belongs to the environment", []).extend(taken)
        return cls(trees, owners, tuple(several), tuple(_told(where, paths) for where, paths in clashes.items()))

    def files_of(self, tree: Tree) -> dict[str, FileState]:
        """The files that are installed from this tree."""
        number = self.trees.index(tree)
        return {path: state for path, state in tree.files.items() if self._owners.get(path) == number}


def _told(where: str, paths: Sequence[str]) -> str:
    names = [path.partition("/site-packages/")[2] or path for path in paths]
    more = f" and {len(names) - _TOLD} more files" if len(names) > _TOLD else ""
    return f"{', '.join(names[:_TOLD])}{more} in {where}"


def in_pips_order(trees: Iterable[Tree]) -> list[str]:
    """The names of projects in the order in which `pip install` installs them, as pip's `get_topological_weights`.

    Those that require nothing come first, then those that require only these, and so on; each from Z to A.
    """
    required = {tree.name: tree.required() for tree in trees}
    order: list[str] = []
    while required:
        ready = [name for name, needs in required.items() if not (needs - {name}) & required.keys()]
        for name in sorted(ready or required, reverse=True):  # those that are left require each other
            order.append(name)
            del required[name]
    return order
