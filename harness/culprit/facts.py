"""The definitions and uses in a Python text, by line; ties between edits are computed from them. Pure."""

from __future__ import annotations

import ast

from attrs import define, field, frozen

# ("name", path, name); ("local", path, scope, name); ("own", path, class, name); ("attribute", name); ("module", name)
Symbol = tuple[str, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Parameters:
    """The parameters of a function without `self` or `cls`.

    `positional` includes the positional-only ones, `required` are those without a default. `takes_rest` means `*args`,
    `takes_any_keyword` means `**kwargs`.
    """

    positional: tuple[str, ...] = ()
    keyword_only: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    takes_rest: bool = False
    takes_any_keyword: bool = False
    positional_only: frozenset[str] = frozenset()

    def accepts(self, call: Call) -> bool:
        """Whether the parameters can be bound to a call, as far as its source shows."""
        if call.positional > len(self.positional) and not self.takes_rest:
            return False
        filled = set(self.positional[: call.positional])
        named = {*self.positional, *self.keyword_only} - self.positional_only
        if not self.takes_any_keyword and not call.keywords <= named:
            return False
        if filled & call.keywords - self.positional_only:
            return False
        return call.unpacks or self.required <= filled | call.keywords


@frozen
class Signature:
    """The header of a function and its lines. `called` is the name in calls: the class for `__init__`."""

    qualname: str
    called: str
    first: int
    last: int
    takes: Parameters


@frozen
class Call:
    """A call in changed lines; `unpacks` says whether it has arguments with `*` or `**`."""

    called: str
    positional: int
    keywords: frozenset[str]
    unpacks: bool
    first: int
    last: int


@frozen
class Arity:
    """The number of values (`size`) that a `return` of a function has, or that a call's result is unpacked into."""

    called: str
    size: int
    first: int
    last: int


@define
class Facts:
    """The definitions and uses of one text; lines are counted from 1.

    `statements` are the runs of lines, first and last, that can't be split.
    """

    defines: list[tuple[Symbol, int]] = field(factory=list)
    uses: list[tuple[Symbol, int]] = field(factory=list)
    signatures: list[Signature] = field(factory=list)
    calls: list[Call] = field(factory=list)
    returns: list[Arity] = field(factory=list)
    unpackings: list[Arity] = field(factory=list)
    statements: list[tuple[int, int]] = field(factory=list)


def module_of(path: str) -> str:
    """The dotted name of the module at a path relative to site-packages."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
