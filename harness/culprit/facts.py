"""The definitions and uses in a Python text, by line; ties between edits are computed from them. Pure.

Names are resolved by scope as in Python, attributes only by name. Uses are only read from changed lines. Definitions
are read from unchanged lines too, because a name that is defined there ties nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from attrs import define, field, frozen

from harness.culprit.syntax import (
    LAZY,
    Function,
    annotations_of,
    bound_names,
    children_of,
    evaluated_at_definition,
    exported_names,
    extends_property,
    has_lazy_annotations,
    header_lines,
    own_nodes,
    parsed,
    statement_lines,
    walk,
)

# ("name", path, name); ("local", path, scope, name); ("own", path, class, name); ("attribute", name); ("module", name)
Symbol = tuple[str, ...]


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


_STORED = re.compile(r"\.([A-Za-z_]\w*)[ \t]*(?::[^=\n]+)?=(?!=)")
_SETTERS = frozenset({"getattr", "hasattr"})


def read_facts(path: str, source: str, is_changed: Callable[[int, int], bool]) -> Facts | None:
    """Read the facts of a text; returns None if it is not valid Python for this interpreter.

    `path` is relative to site-packages. `is_changed(first, last)` says whether any of these lines changed (from 1, both
    included).
    """
    tree = parsed(source)
    if tree is None:
        return None
    reader = _Reader(path, is_changed)
    reader.module(tree)
    for number, line in enumerate(source.splitlines(), 1):
        if "." in line and "=" in line and not line.lstrip().startswith("#"):
            reader.facts.defines += [(("attribute", name), number) for name in _STORED.findall(line)]
    return reader.facts


class _Reader:
    """Walks a syntax tree. Scopes are pairs of a qualified name and the names bound there, the innermost last."""

    def __init__(self, path: str, is_changed: Callable[[int, int], bool]) -> None:
        self.facts = Facts()
        self._path = path
        self._is_changed = is_changed
        self._is_lazy = False

    def module(self, tree: ast.Module) -> None:
        self._is_lazy = has_lazy_annotations(tree)
        for name, line in bound_names(tree.body):
            self.facts.defines += [(("name", self._path, name), line), (("attribute", name), line)]
        self._body(tree.body, (), "", in_class="")
        exported = {name: line for node in tree.body for name, line in exported_names(node)}
        for name, line in exported.items():
            self.facts.defines.append((("export", self._path, name), line))
        for name, line in bound_names(tree.body):
            if name in exported:  # an entry in `__all__` is added and removed with its name
                self.facts.uses.append((("export", self._path, name), line))

    def _body(
        self, body: Iterable[ast.stmt], scopes: tuple[tuple[str, frozenset[str]], ...], prefix: str, in_class: str
    ) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                self._class(node, scopes, prefix, in_class)
            elif isinstance(node, Function):
                self._function(node, scopes, prefix, in_class)
            else:
                self._statement(node, scopes, prefix, in_class)

    def _class(
        self, node: ast.ClassDef, scopes: tuple[tuple[str, frozenset[str]], ...], prefix: str, in_class: str
    ) -> None:
        self._header(node, scopes)
        qualname = f"{prefix}{node.name}"
        bound = list(bound_names(node.body))
        extended = {one.lineno for one in node.body if isinstance(one, Function) and extends_property(one)}
        for name, line in bound:
            self.facts.defines += [(("attribute", name), line), (("own", self._path, qualname, name), line)]
            if line not in extended:
                self.facts.defines.append((("local", self._path, qualname, name), line))
        if self._is_changed(node.lineno, node.end_lineno or node.lineno):
            self._own_attributes(node, qualname)
        names = frozenset(name for name, _ in bound)
        self._body(node.body, (*_seen_by_functions(scopes, in_class), (qualname, names)), f"{qualname}.", node.name)

    def _own_attributes(self, node: ast.ClassDef, qualname: str) -> None:
        """Read where a class sets attributes of its instances, and where its changed lines read them."""
        for one in walk(node):
            if not isinstance(one, ast.Attribute) or not isinstance(one.value, ast.Name) or one.value.id != "self":
                continue
            symbol, line = ("own", self._path, qualname, one.attr), one.end_lineno or one.lineno
            if isinstance(one.ctx, ast.Store):
                self.facts.defines.append((symbol, line))
            elif self._is_changed(line, line):
                self.facts.uses.append((symbol, line))

    def _function(
        self, node: Function, scopes: tuple[tuple[str, frozenset[str]], ...], prefix: str, in_class: str
    ) -> None:
        qualname = f"{prefix}{node.name}"
        first, changed_from = node.lineno, min([node.lineno, *(one.lineno for one in node.decorator_list)])
        called = in_class if node.name == "__init__" and in_class else node.name
        takes = _parameters(node, is_method=bool(in_class))
        self.facts.signatures.append(Signature(qualname, called, first, node.body[0].lineno - 1, takes))
        if not self._is_changed(changed_from, node.end_lineno or first):
            return
        self._header(node, scopes)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
        bound = [(one.arg, one.lineno) for one in arguments]
        bound += list(bound_names(node.body, deep=True))
        own = list(own_nodes(node))
        elsewhere = frozenset(name for one in own if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names)
        local = frozenset(name for name, _ in bound) - elsewhere
        for name, line in bound:
            if name in local:
                self.facts.defines.append((("local", self._path, qualname, name), line))
            else:
                self.facts.defines.append((("name", self._path, name), line))
        for inner in own:
            if isinstance(inner, ast.Return) and inner.value is not None and self._touches(inner):
                size = len(inner.value.elts) if isinstance(inner.value, ast.Tuple) else 1
                self.facts.returns.append(Arity(node.name, size, inner.lineno, inner.end_lineno or inner.lineno))
        self._body(node.body, (*_seen_by_functions(scopes, in_class), (qualname, local)), f"{qualname}.", in_class="")

    def _statement(
        self, node: ast.stmt, scopes: tuple[tuple[str, frozenset[str]], ...], prefix: str, in_class: str
    ) -> None:
        first, last = node.lineno, node.end_lineno or node.lineno
        inner: list[list[ast.stmt]] = [
            body for name in ("body", "orelse", "finalbody") if isinstance(body := getattr(node, name, None), list)
        ]
        inner += [one.body for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        if not self._is_changed(first, last):
            # It has no changes, but functions defined in it may be called by changed lines.
            for body in inner:
                self._body([one for one in body if isinstance(one, ast.ClassDef | Function)], scopes, prefix, in_class)
            return
        head_last = min((body[0].lineno - 1 for body in inner if body), default=last)
        if self._is_changed(first, first):  # a change of the first line affects the whole statement
            self.facts.statements.append((first, max(first, head_last)))
        else:
            self.facts.statements += statement_lines(node, head_last)
        for child in children_of(node):
            if isinstance(child, ast.stmt):
                continue
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                for part in children_of(child):
                    if not isinstance(part, ast.stmt):
                        self._expression(part, scopes)
            else:
                self._expression(child, scopes)
        self._taken(node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and self._touches(node):
            self._unpacking(node, node.value)
        for body in inner:
            self._body(body, scopes, prefix, in_class)

    def _header(self, node: ast.ClassDef | Function, scopes: tuple[tuple[str, frozenset[str]], ...]) -> None:
        """Read a header: its decorators, bases, defaults and annotations belong to the enclosing scope."""
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        last = max(node.lineno, node.body[0].lineno - 1)
        self.facts.statements += header_lines(node)
        if self._is_changed(first, last):
            for child in evaluated_at_definition(node) if self._is_lazy else children_of(node):
                if not isinstance(child, ast.stmt):
                    self._expression(child, scopes)
        if self._is_lazy and not isinstance(node, ast.ClassDef):
            # Without the import that defers them they are evaluated, and their names may exist only for type checkers.
            lines = [one.lineno for one in annotations_of(node) if self._is_changed(one.lineno, one.lineno)]
            self.facts.uses += [(("name", self._path, LAZY), line) for line in lines]

    def _expression(self, node: ast.AST, scopes: tuple[tuple[str, frozenset[str]], ...]) -> None:
        for one in walk(node):
            line = getattr(one, "lineno", None)
            if line is None or not self._is_changed(line, getattr(one, "end_lineno", None) or line):
                continue
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load | ast.Del):
                self.facts.uses.append((self._resolved(one.id, scopes), line))
            elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load | ast.Del):
                self.facts.uses.append((("attribute", one.attr), one.end_lineno or line))
            elif isinstance(one, ast.Call):
                self._call(one)

    def _call(self, node: ast.Call) -> None:
        called = _last_name(node.func)
        if called in _SETTERS and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            self.facts.uses.append((("attribute", str(node.args[1].value)), node.lineno))
        if called == "__init__" and isinstance(node.func, ast.Attribute):
            called = "super"
        keywords = frozenset(one.arg for one in node.keywords if one.arg is not None)
        unpacks = len(keywords) < len(node.keywords) or any(isinstance(one, ast.Starred) for one in node.args)
        count = sum(not isinstance(one, ast.Starred) for one in node.args)
        last = node.end_lineno or node.lineno
        self.facts.calls.append(Call(called, count, keywords, unpacks, node.lineno, last))

    def _taken(self, node: ast.stmt) -> None:
        """Record what an import needs from other modules, and the names that `__all__` needs in this one."""
        self.facts.uses += [(("name", self._path, name), line) for name, line in exported_names(node)]
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                for end in range(1, len(parts) + 1):
                    self.facts.uses.append((("module", ".".join(parts[:end])), alias.lineno))
        if not isinstance(node, ast.ImportFrom):
            return
        package = self._path.split("/")[:-1]
        base = package[: len(package) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        self.facts.uses.append((("module", module), node.lineno))
        for alias in node.names:
            if self._is_changed(alias.lineno, alias.lineno):
                self.facts.uses.append((("taken", module, alias.name), alias.lineno))

    def _unpacking(self, node: ast.Assign, value: ast.Call) -> None:
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in target.elts):
                last = node.end_lineno or node.lineno
                self.facts.unpackings.append(Arity(_last_name(value.func), len(target.elts), node.lineno, last))

    def _resolved(self, name: str, scopes: tuple[tuple[str, frozenset[str]], ...]) -> Symbol:
        for qualname, bound in reversed(scopes):
            if name in bound:
                return ("local", self._path, qualname, name)
        return ("name", self._path, name)

    def _touches(self, node: ast.stmt) -> bool:
        return self._is_changed(node.lineno, node.end_lineno or node.lineno)


def _seen_by_functions(
    scopes: tuple[tuple[str, frozenset[str]], ...], in_class: str
) -> tuple[tuple[str, frozenset[str]], ...]:
    """The scopes that the body of a function or class sees: not the body of the class around it."""
    return scopes[:-1] if in_class else scopes


def _parameters(node: Function, *, is_method: bool) -> Parameters:
    positional = [*node.args.posonlyargs, *node.args.args]
    with_default = len(node.args.defaults)
    required = {one.arg for one in (positional[:-with_default] if with_default else positional)}
    required |= {
        one.arg for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value is None
    }
    is_static = any(_last_name(one) == "staticmethod" for one in node.decorator_list)
    skipped = positional[:1] if is_method and not is_static else []
    names = tuple(one.arg for one in positional[len(skipped) :])
    return Parameters(
        positional=names,
        keyword_only=tuple(one.arg for one in node.args.kwonlyargs),
        required=frozenset(required - {one.arg for one in skipped}),
        takes_rest=node.args.vararg is not None,
        takes_any_keyword=node.args.kwarg is not None,
        positional_only=frozenset(one.arg for one in node.args.posonlyargs),
    )


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
