"""What was removed is proved by one run: it is put back in the newer release, and the failure is gone.

A name gets its old definition, with what that needs of its old module, at the end of the newer module. If that can't
run, a stand-in shows at least that the failure is about the name. A parameter is accepted again: it is ignored, or
passed on under another name that is new, or its function is the old one. In the other direction both are taken out of
the older release.
"""

from __future__ import annotations

import ast
import re
from itertools import starmap
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.culprit.api_evidence import api_evidence
from harness.culprit.cause import causes
from harness.culprit.regions import FileDifference, lines_of
from harness.culprit.syntax import bound_names, parsed
from harness.environment.workspace import module_of
from harness.model import Mixture, Verdict
from harness.model.culprit import Evidence, Finding, Level, Proof, Region
from harness.model.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.culprit.proofs import Trials
    from harness.culprit.sides import Exchange, PackageFiles, Sides
    from harness.model import Change

Files = dict[str, bytes | None]

_OWN_FAILURES = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError")  # of what was put back
_GONE = ("removed-name", "moved-name", "renamed-name", "removed-module")
_STAND_IN = '''

class {name}:
    """A stand-in for a removed name."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass
'''
_METHOD = '''class {0}:
    def {1}(self, *args, **kwargs):
        """A stand-in for a removed method."""
'''
# The package itself may need the name to run at all, so only other code misses it.
_WITHOUT_NAME = """

import sys as _sys


def _refuse_others(name):
    caller = _sys._getframe(2).f_globals.get("__name__") or ""
    if name == "{name}" and caller.partition(".")[0] != __name__.partition(".")[0]:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")


class _Without(type(_sys.modules[__name__])):
    def __getattribute__(self, name):
        _refuse_others(name)
        return super().__getattribute__(name)

    def __getattr__(self, name):
        _refuse_others(name)
        found = getattr(super(), "__getattr__", None)
        if found is None:
            raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
        return found(name)


_sys.modules[__name__].__class__ = _Without
"""
# A function is replaced in its class or module, by what `_changed` makes of it.
_REPLACED = """

import functools as _functools
import sys as _sys


def _replaced(owner, name):
    function = vars(owner)[name]
    if isinstance(function, classmethod | staticmethod):
        setattr(owner, name, type(function)(_changed(function.__func__)))
    else:
        setattr(owner, name, _changed(function))


def _changed(function):
    @_functools.wraps(function)
    def changed(*args, **kwargs):
        if "{parameter}" in kwargs:
            {then}
        return function(*args, **kwargs)

    return changed


_replaced({owner}, "{name}")
"""
_IGNORED, _RENAMED = 'del kwargs["{parameter}"]', 'kwargs["{new}"] = kwargs.pop("{parameter}")'
# The package itself may pass it, so only other code is refused.
_REFUSED = """caller = _sys._getframe(1).f_globals.get("__name__") or ""
            if caller.partition(".")[0] != __name__.partition(".")[0]:
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument '{parameter}'")"""
# A module may have put another object in its place, which imports names on access.
_SHOWN = """
import sys as _sys

setattr(_sys.modules[__name__], "{name}", {name})
"""


@frozen
class _Name:
    """A removed name: the file of the module that lacks it, the file that defined it, and its parts in the module."""

    dotted: str
    module: str
    file: str
    defined: str
    parts: tuple[str, ...]


@frozen
class _Restoration:
    """What is put back in the newer release, in words and as files.

    If it is not `whole`, a failure of another kind may be due to what is not put back. `cause` is what it shows if that
    is more than the removal.
    """

    sentence: str
    files: Files
    whole: bool = True
    cause: str = ""


@frozen
class _Removal:
    """What was removed, in words, of which file, and the sentence that says so.

    `restorations` are tried one after the other. `taken_out` are the files of the older release without it, None if
    that can't be done. `regions` are the changed lines that removed it.
    """

    what: str
    file: str
    cause: str
    restorations: tuple[_Restoration, ...]
    taken_out: Files | None
    regions: tuple[Region, ...] = ()


def put_back(trials: Trials, sides: Sides, exchange: Exchange, until: Level) -> tuple[Finding, ...]:
    """The findings that a name or a parameter of the failure was removed; () if no run proves it.

    Only a failure on the newer side is looked at. Of a parameter the lines are known, too, if `until` is deep enough.
    """
    raised = trials.judge.raised(sides.after.observation)
    if sides.after.verdict is not Verdict.BAD or raised is None:
        return ()
    for change in exchange.package.packages:
        places = (change.before or "", exchange.before.packages), (change.after or "", exchange.after.packages)
        try:
            remarks = api_evidence(raised, change.name, older=places[0], newer=places[1])
        except OSError:  # the environment was removed in the meantime
            return ()
        for evidence in remarks:  # a class may have namesakes
            removal = _removed(evidence, exchange)
            if removal is not None and (finding := _proved(trials, sides, exchange, change, removal)) is not None:
                if until.depth < Level.REGION.depth or not removal.regions or finding.level is not Level.FILE:
                    return (finding,)
                return finding, evolve(finding, level=Level.REGION, regions=removal.regions, runs=0)
    return ()


def _removed(evidence: Evidence, exchange: Exchange) -> _Removal | None:
    """What a piece of evidence says was removed; None if it says no such thing, or it can't be put back."""
    if evidence.parameter:
        return _parameter(evidence, exchange)
    name = _split(evidence, exchange) if evidence.kind in _GONE else None
    if name is None:
        return None
    restorations, gone = tuple(starmap(_Restoration, _restorations(name, exchange))), _taken_out(name, exchange)
    return _Removal(name.dotted, name.defined, _sentence(name), restorations, gone)


def _proved(trials: Trials, sides: Sides, exchange: Exchange, change: Change, removal: _Removal) -> Finding | None:
    older, newer = f"{change.name} {change.before}", f"{change.name} {change.after}"
    proofs: list[Proof] = []
    notes: list[str] = []
    cause, runs = removal.cause, 0
    for restoration in removal.restorations:
        runs += 1
        probe = trials.mixed(sides.after, Mixture(restoration.files, f"{removal.what} put back"))
        proof = trials.proof(f"{newer} with {restoration.sentence}", probe, sides.before.verdict)
        if proof.holds:
            proofs.append(proof)
            cause = restoration.cause or cause
            break
        raised = trials.judge.raised(proof.observation) if proof.observation is not None else None
        if proof.verdict is Verdict.SKIP and raised is not None and raised.name not in _OWN_FAILURES:
            message = one_line(raised.message, 100)
            notes.append(f"with {restoration.sentence} it fails differently: {raised.name}: {message}")
            if restoration.whole:
                break
    if notes and not proofs:  # the next failure has a cause of its own
        package = exchange.package
        return evolve(package, causes=(removal.cause,), notes=(*package.notes, *notes), runs=package.runs + runs)
    if not proofs:
        return None
    if removal.taken_out is not None:
        mixture = Mixture(removal.taken_out, f"{removal.what} taken out")
        # What the newer release still prints with the name is no part of the failure.
        trials = trials.for_mixtures(sides, (*exchange.package.proofs, *proofs))
        proof = trials.proof(
            f"{older} without {removal.what}", trials.mixed(sides.before, mixture), sides.after.verdict
        )
        runs += 1
        proofs.append(proof)
    return Finding(
        Level.FILE,
        (change,),
        files=(removal.file,),
        causes=(cause,),
        proofs=tuple(proofs),
        candidates=len(exchange.units),
        runs=runs,
    )


def _parameter(evidence: Evidence, exchange: Exchange) -> _Removal | None:
    """A removed parameter of a function that both releases have in the same file; None if only a stub declares it."""
    path, parameter, module = evidence.file, evidence.parameter, f"{module_of(evidence.file)}."
    old, new = _text(exchange.before, path), _text(exchange.after, path)
    if not path.endswith(".py") or not old or not new or not evidence.name.startswith(module):
        return None
    name = evidence.name.removeprefix(module)
    owner, _, last = name.rpartition(".")
    difference, about = FileDifference.between(path, old, new), f"the parameter `{parameter}` of `{name}` was"
    removing = {
        number: cause
        for number in range(len(difference.blocks))
        for cause in causes(difference, number)
        if cause.startswith(about)
    }
    what = f"the parameter {parameter} of {name}"

    def with_call(text: str, then: str) -> Files:
        place = owner or "_sys.modules[__name__]"
        return {path: f"{text}{_REPLACED.format(parameter=parameter, then=then, owner=place, name=last)}".encode()}

    ignored = with_call(new, _IGNORED.format(parameter=parameter))
    restorations = [_Restoration(f"{what} put back and ignored", ignored, whole=False)]
    for cause in removing.values():  # another new parameter in its place may be no new name of it
        if renamed := re.search(r"was renamed to `(\w+)`$", cause):
            passed_on = with_call(new, _RENAMED.format(parameter=parameter, new=renamed[1]))
            restorations.append(_Restoration(f"{what} put back as {renamed[1]}", passed_on, whole=False, cause=cause))
    if own := [number for number in range(len(difference.blocks)) if difference.function_of(number) == name]:
        restorations.append(_Restoration(f"the older {name}", {path: difference.mixed(own).encode()}))
    gone = with_call(old, _REFUSED.replace("{parameter}", parameter))
    regions = tuple(map(difference.region, removing))
    return _Removal(what, path, f"{about} removed", tuple(restorations), gone, regions)


def _sentence(name: _Name) -> str:
    if not name.parts:
        return f"the module `{name.dotted}` was removed"
    owner = ".".join((name.module, *name.parts[:-1]))
    return f"`{name.parts[-1]}` was removed from `{owner}`"


def _split(evidence: Evidence, exchange: Exchange) -> _Name | None:
    """Find the module of a removed name in the older release; None without one."""
    parts = evidence.name.split(".")
    path, files = "/".join(parts), exchange.before.digests
    for file in (f"{path}.py", f"{path}/__init__.py"):
        if file in files and file not in exchange.after.digests:  # `from package import module`
            return _Name(evidence.name, evidence.name, file, file, ())
    for count in range(len(parts) - 1, 0, -1):
        path = "/".join(parts[:count])
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if file in files and evidence.file in files:
                return _Name(evidence.name, ".".join(parts[:count]), file, evidence.file, tuple(parts[count:]))
    return None


def _restorations(name: _Name, exchange: Exchange) -> Iterator[tuple[str, Files]]:
    """What puts a name back in the newer release, in words and as files: its old definition, then a stand-in."""
    old = _text(exchange.before, name.defined)
    if not name.parts:
        yield f"{name.dotted} put back", {path: exchange.before.read(path) for path in _files_of(name, exchange)}
        return
    defining = _text(exchange.after, name.defined)
    texts = {f"{name.dotted} put back": restored(name.parts, old, defining)}
    if not defining:  # the rest of its module may need what is gone, too, or be needed
        texts[f"{name.dotted} put back with its module"] = old
    for sentence, text in texts.items():
        if not text:
            continue
        files: Files = {name.defined: text.encode()}
        if name.file != name.defined:
            module = name.defined.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            exporting = _text(exchange.after, name.file)
            shown = _SHOWN.format(name=name.parts[0])
            files[name.file] = f"{exporting}\nfrom {module} import {name.parts[0]}\n{shown}".encode()
        yield sentence, files
    if len(name.parts) == 1 and (exporting := _text(exchange.after, name.file)):
        stand_in = _STAND_IN.format(name=name.parts[0]) + _SHOWN.format(name=name.parts[0])
        yield f"a stand-in for {name.dotted} put in", {name.file: f"{exporting}{stand_in}".encode()}
    elif len(name.parts) > 1 and (text := restored(name.parts, _METHOD.format(*name.parts), defining)):
        yield f"a stand-in for {name.dotted} put in", {name.defined: text.encode()}


def _taken_out(name: _Name, exchange: Exchange) -> Files | None:
    """The files of the older release without a name; None if it can't be taken out."""
    if not name.parts:
        return dict.fromkeys(_files_of(name, exchange))
    text = _text(exchange.before, name.file)
    if len(name.parts) == 1:
        return {name.file: f"{text}{_WITHOUT_NAME.format(name=name.parts[0])}".encode()}
    return {name.file: f"{text}\ndel {'.'.join(name.parts)}\n".encode()}


def _files_of(name: _Name, exchange: Exchange) -> list[str]:
    """The files of a removed module; of a package also those below it, with which its folder can still be imported."""
    folder = name.file.removesuffix("__init__.py")
    below = (path for path in exchange.before.digests if path.startswith(folder) and folder.endswith("/"))
    return [name.file, *(path for path in below if path != name.file and path not in exchange.after.digests)]


def _text(files: PackageFiles, path: str) -> str:
    return (files.read(path) or b"").decode(errors="replace")


def restored(parts: tuple[str, ...], old: str, new: str) -> str | None:
    """The newer text of a module with a name of the older one put back, and what its definition needs.

    `parts` is the name, after its class if it has one. Returns None if it is not bound in the older text, or if the
    newer one lacks the class.
    """
    tree, today = parsed(old), parsed(new)
    if tree is None or today is None:
        return None
    statement = _binding(parts, old)
    if statement is None and len(parts) == 1:
        statement = _binding(("__getattr__",), old)
    if statement is None:
        return None
    present = {name for name, _ in bound_names(today.body)}
    added = _needed(statement, tree, present)
    lines = list(lines_of(new))
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if len(parts) > 1:
        owner = next((node for node in today.body if isinstance(node, ast.ClassDef) and node.name == parts[0]), None)
        if owner is None:
            return None
        lines[owner.end_lineno : owner.end_lineno] = ["\n", *_source(statement, old)]
    else:
        added.append(statement)
    order = sorted(added, key=lambda node: node.lineno)
    tail = [line for node in order for line in ("\n", *_source(node, old))]
    return "".join((*lines, *tail))


def _binding(parts: tuple[str, ...], text: str) -> ast.stmt | None:
    """The statement of a module that binds a name, or of its class."""
    tree = parsed(text)
    body = tree.body if tree is not None else []
    for part in parts[:-1]:
        owner = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == part), None)
        body = owner.body if owner is not None else []
    return next((node for node in reversed(body) if parts[-1] in dict(bound_names([node]))), None)


def _needed(statement: ast.stmt, tree: ast.Module, present: set[str]) -> list[ast.stmt]:
    """The statements of the older module that define what a statement uses and the newer module lacks."""
    by_name = {name: node for node in tree.body for name, _ in bound_names([node])}
    needed: dict[int, ast.stmt] = {}
    border = [statement]
    while border:
        used = {node.id for node in ast.walk(border.pop()) if isinstance(node, ast.Name)}
        for name in used - present:
            node = by_name.get(name)
            if node is not None and node is not statement and node.lineno not in needed:
                needed[node.lineno] = node
                border.append(node)
    return list(needed.values())


def _source(statement: ast.stmt, text: str) -> list[str]:
    """The lines of a statement, with its decorators."""
    decorators = getattr(statement, "decorator_list", ())
    first = min((statement.lineno, *(decorator.lineno for decorator in decorators)))
    lines = list(lines_of(text)[first - 1 : statement.end_lineno])
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines
