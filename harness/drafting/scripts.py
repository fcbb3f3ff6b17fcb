"""Finds the script that matters among the code of a report, and makes it one that can run by itself."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import frozen

from harness.drafting.known import project_named, project_of_module
from harness.drafting.source import Block, parses, tree_of
from harness.drafting.tracebacks import frames_of
from harness.drafting.versions import one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.model import RaisedException

_PYTHON = ("python", "py", "python3", "ipython", "pycon", "jupyter", "python-repl", "py3")
_OTHER = ("bash", "sh", "shell", "console", "yaml", "yml", "json", "toml", "diff", "cpp", "c", "text", "txt", "log")
_PROMPT = re.compile(r"^(?:>>>|\.\.\.|In ?\[\d*\]:)(?: |$)")
_MAGIC = re.compile(r"^([ \t]*)((?:[!%]|(?:pip3?|uv pip|conda) install ).*)$", re.M)
_INSTALL = re.compile(r"(?:pip3?\s+install|uv\s+add)\s+(?P<words>[^\n&|;#]+)")
_SOLVES = one_of("solves-words")
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u00a0": " ", "\u200b": None})


@frozen
class Script:
    """The code of a report that a repro is made of.

    `wrong_line` is where it stops being Python, None if it is. `changes` say what was done to it, `before` are the
    lines above it.
    """

    code: str
    wrong_line: int | None = None
    changes: tuple[str, ...] = ()
    before: str = ""

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; empty if it is not Python."""
        return tree_of(self.code if self.wrong_line is None else "")

    @cached_property
    def undefined(self) -> tuple[str, ...]:
        """The names that nothing in it defines."""
        return undefined_in(self.tree)

    @property
    def defined(self) -> set[str]:
        """The names that it defines."""
        from pyflakes.checker import Argument, Builtin, Checker

        names = (pair for scope in Checker(self.tree).deadScopes for pair in scope.items())
        return {name for name, binding in names if not isinstance(binding, Argument | Builtin)}

    @property
    def imported_names(self) -> tuple[tuple[str, str], ...]:
        """The names that it imports, each with its module: "" and the module itself without `from`."""
        found: list[tuple[str, str]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [("", name.name) for name in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found += [(name.name, node.module) for name in node.names]
        return tuple(found)

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that it imports, in the order of their modules."""
        modules = sorted({module.partition(".")[0] for _, module in self.imported_names})
        return tuple(dict.fromkeys(filter(None, map(project_of_module, modules))))


def script_of(blocks: Iterable[Block], raised: RaisedException | None, comments: Iterable[Block] = ()) -> Script:
    """Return the script that a report is about, without code if it has none; then those of the comments count."""
    scripts = _scripts_in(blocks) or _scripts_in(comments)
    if not scripts:
        return Script("")
    at = max(range(len(scripts)), key=lambda number: (*_rank(scripts[number], raised), number))
    return _with_related(scripts, at)


def installs_in(text: str) -> tuple[str, ...]:
    """Return the known projects that commands in a text install with pip or uv."""
    words = [word for match in _INSTALL.finditer(text) for word in match["words"].split()]
    names = (project_named(re.split(r"[\[=<>~!]", word.strip("\"'`,"))[0]) for word in words)
    return tuple(dict.fromkeys(filter(None, names)))


def text_in(node: ast.AST | None) -> str | None:
    """Return the text that a node of code is, None if it is no literal text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _scripts_in(blocks: Iterable[Block]) -> list[Script]:
    return [script for block in blocks if block.is_code and (script := _script(block)) is not None]


def _script(block: Block) -> Script | None:
    """Return the script that a block of code is, None if it is none."""
    is_other = block.language in _OTHER or "Traceback (most recent call last)" in block.text
    if is_other and ">>> " not in block.text:
        return None
    text, changes = block.text.translate(_QUOTES), []
    if any(line.startswith((">>> ", "In [")) for line in text.splitlines()):
        text = _typed_lines(text)
        changes.append("the prompts and the output of the session are left out")
    text, magics = _MAGIC.subn(lambda found: f"{found[1]}{'pass  ' if found[1] else ''}# {found[2].strip()}", text)
    if magics:
        changes.append("notebook commands are comments now")
    wrong = parses(text)
    if wrong is not None:
        looks_so = block.language in _PYTHON or re.search(r"^\s*(?:from \w[\w.]* import|import \w+)", text, re.M)
        if not looks_so or re.search(r"^-+> ?\d+", text, re.M):
            return None
    found = Script(text.strip("\n"), wrong, tuple(changes), block.before)
    return found if wrong is not None or _has_substance(found.tree, block.language in _PYTHON) else None


def _rank(script: Script, raised: RaisedException | None) -> tuple[int, ...]:
    """How likely a block is the script that failed.

    It has lines of the traceback, is neither a fix nor an excerpt of a library, and imports something.
    """
    own = {frame.text for frame in frames_of(raised) if frame.text and not frame.package} if raised else set()
    is_fix = _SOLVES.search(script.before) and not re.search(r"\brepro", script.before, re.I)
    does_something = any(not isinstance(one, _DEFINITIONS) for one in script.tree.body)
    shown = sum(line in script.code for line in own)
    return shown, not is_fix, does_something, bool(script.imported_names), min(len(script.code.splitlines()), 40)


def _with_related(scripts: Sequence[Script], at: int) -> Script:
    """Return a script with the blocks that define the names that it lacks, and with the next steps.

    A next step is a block after it that lacks names, all of which are defined by then.
    """
    chosen = scripts[at]
    if chosen.wrong_line is not None:
        return chosen
    parts, missing = [chosen], set(chosen.undefined)
    for other in (*reversed(scripts[:at]), *scripts[at + 1 :]):
        defined = other.defined
        if defined & missing and other.code not in chosen.code:
            parts.insert(0, other)
            missing = (missing | set(other.undefined)) - defined
    for other in scripts[at + 1 :]:
        if other.wrong_line is not None or _SOLVES.search(other.before):
            break
        known = set().union(*(part.defined for part in parts))
        if other.undefined and set(other.undefined) <= known and all(other.code not in part.code for part in parts):
            parts.append(other)
    if len(parts) == 1:
        return chosen
    code = "\n\n".join(part.code for part in parts)
    told = f"{len(parts)} code blocks of the report are joined, because one uses what the others define"
    changes = tuple(dict.fromkeys(text for part in parts for text in part.changes))
    return Script(code, changes=(*changes, told))


def _typed_lines(text: str) -> str:
    kept = [match for line in text.splitlines() if (match := _PROMPT.match(line))]
    return "\n".join(match.string[match.end() :] for match in kept)


def _has_substance(tree: ast.Module, is_python: bool) -> bool:
    """Whether it does something: prose can be Python, too."""
    acts = any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(tree))
    return acts or (is_python and bool(tree.body))


def undefined_in(tree: ast.Module) -> tuple[str, ...]:
    """Return the names that nothing in the code defines, in order."""
    from pyflakes.checker import Checker
    from pyflakes.messages import UndefinedName

    found = sorted(Checker(tree).messages, key=lambda one: one.lineno)
    return tuple(dict.fromkeys(str(one.message_args[0]) for one in found if isinstance(one, UndefinedName)))
