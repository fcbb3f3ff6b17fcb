"""What a Python text contains: its outline, the names that it binds or lacks, the parts that must stay whole. Pure.

A search reads hundreds of texts for several purposes, so each is parsed once and the results are cached.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import symtable
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

from attrs import define, field, frozen

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MOST_TEXTS = 4096  # a search reads both texts of hundreds of files repeatedly
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@frozen
class Definition:
    """A class or function with its decorators: first and last line, counted from 1, and its qualified name.

    Definitions inside of other statements, such as `if`, are left out.
    """

    first: int
    last: int
    qualname: str
    is_function: bool
    is_in_function: bool


@frozen
class Import:
    """One import statement: its first and last line, counted from 1, and name, origin and line of what it binds."""

    first: int
    last: int
    module: str
    names: tuple[tuple[str, str, int], ...]


Span = tuple[int, int]  # first and last line


class Signature(NamedTuple):
    """A function, or a class with an `__init__`: its name and its parameters, with their lines."""

    name: str
    parameters: tuple[tuple[str, Span], ...]
    takes_any: bool


class Call(NamedTuple):
    """A call: the last part of the name that is called, its lines, and the arguments that it passes by name."""

    name: str
    span: Span
    keywords: tuple[tuple[str, Span], ...]


@define
class Uses:
    """What the code of a text calls, accepts and returns.

    `returned` are the function, the number of values and the lines of each `return` with a value, `unpacked` the same
    of each assignment that takes the result of a call apart.
    """

    accepted: list[Signature] = field(factory=list)
    calls: list[Call] = field(factory=list)
    returned: list[tuple[str, int, Span]] = field(factory=list)
    unpacked: list[tuple[str, int, Span]] = field(factory=list)


@frozen
class Outline:
    """The outline of a text; lines are counted from 1. That of a text that is not valid Python is empty.

    `decorators` have their first and last line, and their syntax tree as text. `quiet` are the lines that are empty,
    comments or docstrings, None without valid Python. `bound` are the names that the module binds, with their lines.
    `statements` are the lines of all statements, the outer ones first; `assignments` have their target as well, and are
    those of modules and classes.
    """

    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    decorators: tuple[tuple[int, int, str], ...] = ()
    quiet: frozenset[int] | None = None
    bound: tuple[tuple[str, int], ...] = ()
    statements: tuple[Span, ...] = ()
    assignments: tuple[tuple[int, int, str], ...] = ()
    uses: Uses = field(factory=Uses)

    def imported(self, first: int, last: int) -> dict[str, str] | None:
        """The names that these lines import, with their origins; None if the lines do anything else."""
        inside = [statement for statement in self.imports if statement.first <= last and first <= statement.last]
        quiet = self.quiet or frozenset()
        others = (line for line in range(first, last + 1) if line not in quiet)
        if any(not any(statement.first <= line <= statement.last for statement in inside) for line in others):
            return None
        names = {name: origin for statement in inside for name, origin, _ in statement.names}
        return None if self.quiet is None or "*" in names else names


@functools.lru_cache(maxsize=16)
def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a text, which must not be changed; None if it is not valid Python for this interpreter."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=_MOST_TEXTS)
def outline_of(source: str) -> Outline:
    """The outline of a text."""
    tree = parsed(source)
    if tree is None:
        return Outline()
    walk = _Walk()
    walk.read(tree)
    empty = (
        number
        for number, line in enumerate(source.splitlines(), 1)
        if not (stripped := line.strip()) or stripped.startswith("#")
    )
    return Outline(
        definitions=tuple(walk.definitions),
        imports=tuple(walk.imports),
        decorators=tuple(walk.decorators),
        quiet=frozenset(walk.docstrings.union(empty)),
        bound=tuple(bound_names(tree.body)),
        statements=tuple(sorted(walk.statements, key=lambda span: (span[0], -span[1]))),
        assignments=tuple(walk.assignments),
        uses=walk.uses,
    )


@define
class _Walk:
    """Reads all nodes of a tree once: the parts of an outline, and what the code uses."""

    definitions: list[Definition] = field(factory=list)
    imports: list[Import] = field(factory=list)
    decorators: list[tuple[int, int, str]] = field(factory=list)
    docstrings: set[int] = field(factory=set)
    statements: set[Span] = field(factory=set)
    assignments: list[tuple[int, int, str]] = field(factory=list)
    uses: Uses = field(factory=Uses)

    def read(self, tree: ast.Module) -> None:
        """Read a module."""
        # With the functions around each node, and its definition, None where definitions are left out.
        module = Definition(0, 0, "", is_function=False, is_in_function=False)
        left: list[tuple[ast.AST, tuple[ast.AST, ...], Definition | None]] = [(tree, (), module)]
        while left:
            node, functions, own = left.pop()
            if isinstance(node, ast.stmt):
                self.statements.add(span_of(node))
            if isinstance(node, ast.Assign | ast.AnnAssign) and not functions:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                self.assignments.append((*span_of(node), ast.unparse(target)))
            for name in _BODIES if not isinstance(node, ast.expr) else ():
                inner = getattr(node, name, None)
                if isinstance(inner, list) and inner and _is_text(inner[0]):
                    first, last = span_of(inner[0])
                    self.docstrings.update(range(first, last + 1))
            self._note(node, functions)
            inside = (*functions, node) if isinstance(node, Function) else functions
            children = (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context))
            left += [(child, inside, self._noted(child, own)) for child in children]

    def _noted(self, node: ast.AST, around: Definition | None) -> Definition | None:
        """Note a statement; returns the definition that it is."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(_import_of(node))
        if not isinstance(node, ast.ClassDef | Function):
            return None
        starts = [decorator.lineno for decorator in node.decorator_list]
        for decorator, start, end in zip(node.decorator_list, starts, [*starts[1:], node.lineno], strict=False):
            self.decorators.append((start, end - 1, ast.dump(decorator)))
        if around is None:
            return None
        definition = Definition(
            first=min([node.lineno, *starts]),
            last=span_of(node)[1],
            qualname=f"{around.qualname}.{node.name}" if around.qualname else node.name,
            is_function=not isinstance(node, ast.ClassDef),
            is_in_function=around.is_function or around.is_in_function,
        )
        self.definitions.append(definition)
        return definition

    def _note(self, node: ast.AST, functions: tuple[ast.AST, ...]) -> None:
        uses = self.uses
        if isinstance(node, ast.Call):
            passed = tuple((keyword.arg, span_of(keyword.value)) for keyword in node.keywords if keyword.arg)
            uses.calls.append(Call(called(node), span_of(node), passed))
        elif isinstance(node, ast.FunctionDef):
            uses.accepted.append(_signature(node.name, node))
        elif isinstance(node, ast.ClassDef):
            made = (method for method in node.body if isinstance(method, ast.FunctionDef) and method.name == "__init__")
            uses.accepted += [_signature(node.name, method) for method in made]
        elif isinstance(node, ast.Return) and node.value is not None:
            size = len(node.value.elts) if isinstance(node.value, ast.Tuple) else 1
            owners = [function.name for function in functions if isinstance(function, ast.FunctionDef)]
            uses.returned += [(name, size, span_of(node)) for name in owners]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            parts = [target for target in node.targets if isinstance(target, ast.Tuple | ast.List)]
            uses.unpacked += [(called(node.value), len(target.elts), span_of(node)) for target in parts]


def span_of(node: ast.stmt | ast.expr | ast.arg) -> Span:
    """The first and the last line of a node, counted from 1."""
    return node.lineno, node.end_lineno or node.lineno


def called(node: ast.Call) -> str:
    """The last part of the name that is called; "" for another expression."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _signature(name: str, node: ast.FunctionDef) -> Signature:
    parameters = (*node.args.args, *node.args.kwonlyargs)
    return Signature(
        name, tuple((parameter.arg, span_of(parameter)) for parameter in parameters), node.args.kwarg is not None
    )


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement is only a string, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _import_of(node: ast.Import | ast.ImportFrom) -> Import:
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        names = tuple((alias.asname or alias.name, f"{module}:{alias.name}", alias.lineno) for alias in node.names)
    else:
        module = node.names[0].name
        names = tuple((alias.asname or alias.name.partition(".")[0], alias.name, alias.lineno) for alias in node.names)
    return Import(*span_of(node), module, names)


_OWN = re.compile(r"\b(?:self|cls)\.([A-Za-z_]\w*)")
_FOR_TYPES = re.compile(r"^([ \t]*)if (?:\w+\.)?TYPE_CHECKING:[ \t\r]*\n(?:[ \t\r]*\n|\1[ \t]+.*\n)+", re.M)
_STAR = re.compile(r"^[ \t]*from\b[^#\n]*\bimport[ \t]*\(?[ \t]*\*", re.M)


@frozen
class Names:
    """The names in a text, from the interpreter's own symbol table; there are none if it is not valid Python.

    `error` is the line of the first syntax error, counted from 1, None if there is none. `defined` are classes and
    functions at any level, `own_attributes` the attributes of `self` or `cls` that occur. `unbound` are
    the names that are used as global names and that neither the text nor Python binds. Deferred annotations are not
    uses, what is imported for type checkers only is not bound, and a text that imports all names of a module may bind
    any.
    """

    error: int | None = None
    defined: frozenset[str] = frozenset()
    own_attributes: frozenset[str] = frozenset()
    unbound: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=1024)
def names_in(source: str) -> Names:
    """Return the names in a text. A search asks for thousands of mixed texts, so no syntax tree is made."""
    try:
        waiting = [symtable.symtable(source, "<text>", "exec")]
        if (run := _FOR_TYPES.sub(_emptied, source)) != source:
            waiting = [symtable.symtable(run, "<text>", "exec")]
    except SyntaxError as error:
        return Names(error.lineno or 1)
    except (ValueError, RecursionError):
        return Names(1)
    defined: set[str] = set()
    used: set[str] = set()
    bound: set[str] = set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        kind = table.get_type()
        if kind in ("class", "function"):
            defined.add(table.get_name())
        for symbol in table.get_symbols() if kind != "annotation" else ():
            if not symbol.is_global():
                continue
            if symbol.is_referenced():
                used.add(symbol.get_name())
            if symbol.is_assigned() or symbol.is_imported():
                bound.add(symbol.get_name())
    unbound = used - bound - vars(builtins).keys() if not _STAR.search(source) else frozenset[str]()
    return Names(None, frozenset(defined), frozenset(_OWN.findall(source)), frozenset(unbound))


def _emptied(block: re.Match[str]) -> str:
    """An `if` block that does nothing, with as many lines."""
    indent = f"{block[1]} "
    lines = block[0].splitlines(keepends=True)
    return "".join([lines[0], *(f"{indent}pass\n" for _ in lines[1:])])


def bound_names(body: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The names that these statements bind in their own scope, with their lines."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef | Function):
            yield node.name, node.lineno
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno
        if not isinstance(node, ast.expr) or isinstance(node, ast.Tuple | ast.List | ast.Starred):
            waiting += ast.iter_child_nodes(node)
