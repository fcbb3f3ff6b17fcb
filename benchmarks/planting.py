"""Plants one regression in a real package: one changed line, hidden among refactorings that change no answer.

The older text is the package as it was published. The newer one has helpers renamed, moved and given parameters, with
their callers, files renamed, results returned as tuples, base classes put in - and one line of one function that ran
is wrong. Each step is checked by running the expression that shows the bug; what changes its answer is taken back.
"""

from __future__ import annotations

# ruff: noqa: E501
import ast
import builtins
import functools
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

Tree = dict[str, str]
_parsed = functools.lru_cache(maxsize=2048)(ast.parse)  # nothing here alters a tree
Function = ast.FunctionDef | ast.AsyncFunctionDef
MESSAGE = "the answer is wrong"

_SERVER = r"""
import json, os, sys
def answer(job, out):
    sys.path.insert(0, job["folder"]); lines = {}
    def enter(frame, event, arg):
        name = frame.f_code.co_filename
        if not name.startswith(job["folder"]): return None
        seen = lines.setdefault(name[len(job["folder"]) + 1:], set())
        def inside(frame, event, arg):
            if event == "line": seen.add(frame.f_lineno)
            return inside
        return inside
    space = {}
    try:
        exec(job["setup"], space)
        if job["trace"]: sys.settrace(enter)
        value = repr(eval(job["expression"], space)); raised = ""
    except BaseException as error:
        value, raised = str(error)[:300], type(error).__name__
    finally:
        sys.settrace(None)
    os.write(out, json.dumps({"value": value[:5000], "raised": raised, "lines": {k: sorted(v) for k, v in lines.items()}}).encode())
for line in sys.stdin:
    job = json.loads(line); ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        import signal
        signal.alarm(5); os.close(ours); null = os.open(os.devnull, os.O_RDWR); os.dup2(null, 1); os.dup2(null, 2)
        answer(job, theirs); os._exit(0)
    os.close(theirs); parts = []
    while part := os.read(ours, 65536): parts.append(part)
    os.close(ours); os.waitpid(pid, 0)
    print(b"".join(parts).decode() or '{"value": "", "raised": "died", "lines": {}}', flush=True)
"""


@frozen
class Ran:
    """What an expression came to: its value as text or an exception, and the lines that ran."""

    value: str
    raised: str
    lines: dict[str, list[int]] = field(factory=dict, eq=False)


@define
class Runner:
    """Evaluates expressions over trees of files, each in a forked process of its own."""

    folder: Path
    _process: subprocess.Popen[str] | None = None

    def __call__(self, tree: Tree, setup: str, expression: str, *, trace: bool = False) -> Ran:
        """Write the tree and evaluate."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for path, text in tree.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, encoding="utf-8")
        job = {"folder": str(place), "setup": setup, "expression": expression, "trace": trace}
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("no pipes")
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        told = json.loads(stdout.readline())
        shutil.rmtree(place)
        return Ran(told["value"], told["raised"], told["lines"])

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


@frozen
class Case:
    """Two trees, the expression that tells them apart, and where the bug is in the newer one (file and line)."""

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
    """One case, None where nothing could be planted."""
    expression = rng.choice(expressions)
    good = run(tree, setup, expression)
    if good.raised:
        return None
    newer, steps = _refactored(tree, lambda found: run(found, setup, expression) == good, rng)
    ran = run(newer, setup, expression, trace=True)
    spots = list(_mutations(newer, ran.lines))
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
        _parsed(text)
    except SyntaxError:
        return False
    return True


# Refactorings: each takes a package's files and a source of chance, and gives new files or None.


def _pick(tree: Tree, rng: random.Random) -> tuple[str, str, ast.Module] | None:
    paths = [path for path, text in tree.items() if text.isascii() and len(text) > 200]
    if not paths:
        return None
    path = rng.choice(paths)
    return path, tree[path], _parsed(tree[path])


def _spliced(text: str, edits: list[tuple[int, int, str]]) -> str:
    for first, last, new in sorted(edits, reverse=True):
        text = text[:first] + new + text[last:]
    return text


def _offsets(text: str) -> list[int]:
    found = [0]
    for line in text.splitlines(keepends=True):
        found.append(found[-1] + len(line))
    return found


def _span(node: Any, offsets: list[int]) -> tuple[int, int]:
    return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset


def _functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _everywhere(tree: Tree, name: str) -> int:
    return sum(len(re.findall(rf"\b{re.escape(name)}\b", text)) for text in tree.values())


def _defined_once(tree: Tree, name: str) -> bool:
    return sum(len(re.findall(rf"\bdef {re.escape(name)}\b", text)) for text in tree.values()) == 1


def _renamed_everywhere(tree: Tree, name: str, new: str) -> Tree:
    return {path: re.sub(rf"\b{re.escape(name)}\b", new, text) for path, text in tree.items()}


def _rename_local(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    candidates = (
        [f for f in _functions(picked[2]) if sum(isinstance(n, Function) for n in ast.walk(f)) == 1] if picked else []
    )
    if picked is None or not candidates:
        return None
    path, text, _ = picked
    function = rng.choice(candidates)
    nodes = list(ast.walk(function))
    if any(
        isinstance(n, ast.JoinedStr | ast.Global | ast.Nonlocal | ast.ExceptHandler | ast.Import | ast.ImportFrom)
        for n in nodes
    ):
        return None
    arguments = {n.arg for n in nodes if isinstance(n, ast.arg)}
    names = sorted({n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - arguments)
    if not names:
        return None
    name = rng.choice(names)
    new = rng.choice(["current_", "the_", "new_"]) + name.strip("_")
    offsets = _offsets(text)
    edits = [(*_span(n, offsets), new) for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return {**tree, path: _spliced(text, edits)}


def _rename_function(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    if picked is None:
        return None
    names = [f.name for f in _functions(picked[2]) if len(f.name) > 4 and not f.name.startswith("__")]
    names = [name for name in names if _defined_once(tree, name) and 2 <= _everywhere(tree, name) <= 12]
    if not names:
        return None
    name = rng.choice(sorted(set(names)))
    return _renamed_everywhere(tree, name, f"{name}_{rng.choice(['of', 'impl', 'inner', 'for'])}")


def _rename_attribute(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    names = sorted(set(re.findall(r"self\.(_[a-z]\w{3,})\s*=", picked[1]))) if picked else []
    names = [name for name in names if _everywhere(tree, name) <= 15]
    if not names:
        return None
    name = rng.choice(names)
    return _renamed_everywhere(tree, name, f"{name}_kept")


def _plain_functions(picked: tuple[str, str, ast.Module] | None, tree: Tree) -> list[Function]:
    """Module-level functions without decorators, with a name of their own."""
    if picked is None:
        return []
    found = [node for node in picked[2].body if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    return [f for f in found if _defined_once(tree, f.name) and len(f.name) > 3]


def _calls(tree: Tree, name: str) -> Iterator[tuple[str, ast.Call, str]]:
    for path, text in tree.items():
        if name in text and text.isascii():
            for node in ast.walk(_parsed(text)):
                if isinstance(node, ast.Call):
                    called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                    if called == name:
                        yield path, node, text


def _add_parameter(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    found = [
        f
        for f in _plain_functions(picked, tree)
        if not (f.args.vararg or f.args.kwarg or f.args.kwonlyargs) and f.args.args
    ]
    if picked is None or not found:
        return None
    path, text, _ = picked
    function = rng.choice(found)
    new = rng.choice(["mode", "strict", "options", "context"]) + "_"
    offsets = _offsets(text)
    last = (function.args.defaults or function.args.args)[-1]
    last = last if not function.args.defaults or function.args.defaults[-1].lineno else function.args.args[-1]
    edits: dict[str, list[tuple[int, int, str]]] = {path: []}
    end = max(_span(node, offsets)[1] for node in (*function.args.args, *function.args.defaults))
    edits[path].append((end, end, f", {new}=None"))
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1:
        first = function.body[1]
    start = offsets[first.lineno - 1]
    if isinstance(first, Function | ast.ClassDef) or first.lineno == function.lineno:
        return None
    indent = " " * first.col_offset
    edits[path].append((start, start, f"{indent}if {new} is not None:\n{indent}    raise ValueError({new})\n"))
    for place, call, found_in in _calls(tree, function.name):
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            continue
        _, stop = _span(call, _offsets(found_in))
        before = found_in[: stop - 1].rstrip()
        comma = "" if before.endswith((",", "(")) else ", "
        at = len(before)
        if "#" in found_in[found_in.rfind("\n", 0, at) + 1 : at]:
            return None
        edits.setdefault(place, []).append((at, at, f"{comma}{new}=None"))
    return {**tree, **{place: _spliced(tree[place], found_edits) for place, found_edits in edits.items()}}


def _return_tuple(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    functions = _plain_functions(picked, tree)
    rng.shuffle(functions)
    for function in functions:
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
        inner = sum(isinstance(n, Function | ast.Lambda) for n in ast.walk(function))
        if picked is None or inner != 1 or not returns or any(n.value is None for n in returns):
            continue
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(function)) or not isinstance(
            function.body[-1], ast.Return
        ):
            continue
        calls = list(_calls(tree, function.name))
        assigned = {
            (path, node.value.lineno, node.value.col_offset): node
            for path, text in tree.items()
            if function.name in text and text.isascii()
            for node in ast.walk(_parsed(text))
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        }
        if not calls or not all((path, call.lineno, call.col_offset) in assigned for path, call, _ in calls):
            continue
        if _everywhere(tree, function.name) - 1 > 2 * len(calls) + 2:
            continue
        edits: dict[str, list[tuple[int, int, str]]] = {}
        offsets = _offsets(picked[1])
        for one in returns:
            first, last = _span(one.value, offsets)
            edits.setdefault(picked[0], []).append((first, last, f"({picked[1][first:last]}), None"))
        for path, call, text in calls:
            target = assigned[(path, call.lineno, call.col_offset)].targets[0]
            _, last = _span(target, _offsets(text))
            edits.setdefault(path, []).append((last, last, ", _unused"))
        return {**tree, **{path: _spliced(tree[path], found) for path, found in edits.items()}}
    return None


def _chunk(text: str, node: ast.stmt) -> tuple[int, int]:
    offsets = _offsets(text)
    return offsets[node.lineno - 1], offsets[(node.end_lineno or node.lineno)]


def _used_at_import(module: ast.Module, name: str) -> bool:
    for node in module.body:
        if isinstance(node, Function):
            parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
        elif isinstance(node, ast.ClassDef):
            parts = [node]
        else:
            parts = [node]
        if any(isinstance(n, ast.Name) and n.id == name for part in parts for n in ast.walk(part)):
            return True
    return False


def _move_in_file(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    functions = [f for f in _plain_functions(picked, tree) if picked and not _used_at_import(picked[2], f.name)]
    if picked is None or not functions:
        return None
    path, text, _ = picked
    function = rng.choice(functions)
    first, last = _chunk(text, function)
    rest = text[:first].rstrip("\n") + "\n\n\n" + text[last:].lstrip("\n")
    return {**tree, path: rest.rstrip("\n") + "\n\n\n" + text[first:last].rstrip("\n") + "\n"}


def _move_to_new_file(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    found = []
    for function in _plain_functions(picked, tree):
        nodes = list(ast.walk(function))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        stored |= {n.arg for n in nodes if isinstance(n, ast.arg)} | {n.name for n in nodes if isinstance(n, Function)}
        loaded = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if loaded - stored <= set(dir(builtins)):
            found.append(function)
    if picked is None or not found:
        return None
    path, text, _ = picked
    function = rng.choice(found)
    first, last = _chunk(text, function)
    module = f"_helpers_{rng.randint(10, 99)}"
    new = f"{path.rpartition('/')[0]}/{module}.py"
    if new in tree:
        return None
    dotted = new.removesuffix(".py").replace("/", ".")
    body = f'"""Helpers."""\n\n\n{text[first:last]}'
    return {**tree, path: f"{text[:first]}from {dotted} import {function.name}\n{text[last:]}", new: body}


def _rename_file(tree: Tree, rng: random.Random) -> Tree | None:
    paths = [path for path in tree if not path.endswith("__init__.py") and len(tree[path]) > 300]
    if not paths:
        return None
    path = rng.choice(paths)
    module = path.rpartition("/")[2].removesuffix(".py")
    new = f"{module}_core"
    place = f"{path.rpartition('/')[0]}/{new}.py"
    dotted = path.rpartition("/")[0].replace("/", ".")
    patterns = (
        (rf"\bfrom \.{module} import", f"from .{new} import"),
        (rf"\bfrom \. import {module}$", f"from . import {new} as {module}"),
        (rf"\bfrom {re.escape(dotted)}\.{module} import", f"from {dotted}.{new} import"),
        (rf"\bfrom {re.escape(dotted)} import {module}$", f"from {dotted} import {new} as {module}"),
    )
    found = {}
    for other, text in tree.items():
        for pattern, into in patterns:
            text = re.sub(pattern, into, text, flags=re.MULTILINE)
        found[place if other == path else other] = text
    return found


def _comment(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    if picked is None:
        return None
    path, text, module = picked
    statements = [n for f in _functions(module) for n in f.body if n.col_offset > 0]
    if not statements:
        return None
    lines = text.splitlines(keepends=True)
    for node in sorted(rng.sample(statements, min(3, len(statements))), key=lambda n: -n.lineno):
        if not isinstance(node, Function | ast.ClassDef):
            lines.insert(
                node.lineno - 1,
                " " * node.col_offset + f"# See the notes on {rng.choice(['speed', 'order', 'limits'])}.\n",
            )
    return {**tree, path: "".join(lines)}


def _name_the_result(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    if picked is None:
        return None
    path, text, module = picked
    returns = [n for n in ast.walk(module) if isinstance(n, ast.Return) and n.value is not None]
    returns = [n for n in returns if text.splitlines()[n.lineno - 1].lstrip().startswith("return ")]
    if not returns:
        return None
    offsets = _offsets(text)
    edits = []
    for one in rng.sample(returns, min(2, len(returns))):
        first, last = _span(one, offsets)
        start, stop = _span(one.value, offsets)
        value = text[start:stop]
        indent = " " * one.col_offset
        wrapped = f"({value})" if "\n" in value and not value.startswith(("(", "[", "{")) else value
        edits.append((first, last, f"found_ = {wrapped}\n{indent}return found_"))
    return {**tree, path: _spliced(text, edits)}


def _new_helper(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    if picked is None:
        return None
    path, text, module = picked
    returns = [n for f in _functions(module) for n in ast.walk(f) if isinstance(n, ast.Return) and n.value is not None]
    if not returns:
        return None
    name = f"_checked_{rng.randint(10, 99)}"
    offsets = _offsets(text)
    one = rng.choice(returns)
    first, last = _span(one.value, offsets)
    changed = text[:first] + f"{name}({text[first:last]})" + text[last:]
    return {**tree, path: changed.rstrip("\n") + f"\n\n\ndef {name}(value):\n    return value\n"}


def _new_base(tree: Tree, rng: random.Random) -> Tree | None:
    picked = _pick(tree, rng)
    classes = (
        [
            n
            for n in picked[2].body
            if isinstance(n, ast.ClassDef) and not n.bases and not n.decorator_list and not n.keywords
        ]
        if picked
        else []
    )
    if picked is None or not classes:
        return None
    path, text, _ = picked
    node = rng.choice(classes)
    methods = [
        m for m in node.body if isinstance(m, ast.FunctionDef) and not m.decorator_list and not m.name.startswith("__")
    ]
    methods = [m for m in methods if "super" not in ast.dump(m) and "__" not in ast.unparse(m)]
    if not methods or len(node.body) < 3:
        return None
    method = rng.choice(methods)
    first, last = _chunk(text, method)
    start, _ = _chunk(text, node)
    header = text[start : text.index(":", start)]
    if header != f"class {node.name}":
        return None
    base = f"class {node.name}Base:\n    __slots__ = ()\n\n{text[first:last].rstrip()}\n\n\n"
    changed = base + f"class {node.name}({node.name}Base)" + text[start + len(header) : first] + text[last:]
    return {**tree, path: text[:start] + changed}


_REFACTORINGS = (
    _rename_local, _rename_local, _rename_function, _rename_function, _rename_attribute, _add_parameter, _add_parameter,
    _return_tuple, _return_tuple, _move_in_file, _move_to_new_file, _rename_file, _comment, _name_the_result,
    _name_the_result, _new_helper, _new_base,
)  # fmt: skip


# The bug itself.

_COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}  # fmt: skip
_COUNTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "+"}


def _mutations(tree: Tree, ran: dict[str, list[int]]) -> Iterator[tuple[str, int, str, str]]:
    """File, line, the file's new text and what was changed, for changes of one line that ran inside a function."""
    for path, lines in ran.items():
        text = tree.get(path, "")
        if not text.isascii() or not text:
            continue
        offsets, executed = _offsets(text), set(lines)
        inside = {n for f in _functions(_parsed(text)) for s in f.body for n in ast.walk(s)}
        for node in inside:
            line = getattr(node, "lineno", 0)
            if line not in executed or getattr(node, "end_lineno", 0) != line:
                continue
            for first, last, new in _replacements(node, text, offsets):
                change = f"{text[first:last]!r} became {new!r}"
                yield path, line, text[:first] + new + text[last:], change


def _replacements(node: ast.AST, text: str, offsets: list[int]) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        first, last = _span(node.left, offsets)[1], _span(node.comparators[0], offsets)[0]
        if "(" not in text[first:last] and ")" not in text[first:last]:
            yield first, last, f" {_COMPARED[type(node.ops[0])]} "
    elif isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        first, last = _span(node.left, offsets)[1], _span(node.right, offsets)[0]
        if "(" not in text[first:last] and ")" not in text[first:last]:
            yield first, last, f" {_COUNTED[type(node.op)]} "
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield *_span(node, offsets), str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield *_span(node, offsets), str(not node.value)
    elif isinstance(node, ast.BoolOp):
        first, last = _span(node.values[0], offsets)[1], _span(node.values[1], offsets)[0]
        if text[first:last].strip() in ("and", "or"):
            yield first, last, " or " if isinstance(node.op, ast.And) else " and "
    elif isinstance(node, ast.If):
        first, last = _span(node.test, offsets)
        if "\n" not in text[first:last]:
            yield first, last, f"not ({text[first:last]})"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield *_span(node, offsets), "pass"


def with_seed(case: Case, name: str) -> Case:
    """The same case under another name."""
    return evolve(case, name=name)
