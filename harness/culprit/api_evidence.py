"""Evidence from the API of two releases: was the name that a failure is about removed, moved, renamed or changed?

Griffe (https://mkdocstrings.github.io/griffe/) reads the sources of both; nothing is imported, nothing is run. What a
module makes up when it is asked (`__getattr__`) is found by its text. None of this proves anything: a run does.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import re
import textwrap
from typing import TYPE_CHECKING

from attrs import frozen

from harness.culprit.api_mentions import About, Mention, advice, literal_part, mentions, says_where_to
from harness.culprit.api_sources import Source, api_of, look_up, place_of, source_of
from harness.model.evidence import Evidence
from harness.model.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import griffe

    from harness.model import RaisedException

_MOST = 5
_ADVICE = re.compile(r"deprecat|removed|instead|moved|renamed", re.IGNORECASE)
_CLOSE = 0.75
_LONGEST_ADVICE = 300


@frozen
class _Release:
    """One of the two releases: its version, its sources and the part of its API that is in question."""

    version: str
    source: Source
    api: dict[str, griffe.Module]


def api_evidence(
    raised: RaisedException | None, package: str, *, older: tuple[str, Path], newer: tuple[str, Path]
) -> tuple[Evidence, ...]:
    """What two releases of a distribution say on an exception.

    `older` and `newer` are each a version and the place of its files: a folder of installed packages, or a wheel. There
    is no evidence where the exception is about no name of this package. Raises `OSError` where a place can't be read.
    """
    asked = mentions(raised)
    with source_of(older[1], package) as old, source_of(newer[1], package) as new:
        if not old.files or not new.files:
            return ()
        about = [(mention, name) for mention in asked for name in _names_of(mention, old, new)]
        found: list[Evidence] = []
        if about:
            words = {part for mention, _ in about for part in _words_of(mention)}
            with api_of(old, words) as old_api:
                defined = {place_of(one)[0] for _, name in about if (one := look_up(old_api, name)) is not None}
                with api_of(new, words, defined) as new_api:
                    before, after = _Release(older[0], old, old_api), _Release(newer[0], new, new_api)
                    for mention, name in about:
                        found += _on(mention, name, before, after, advice(raised))
        found = found or list(_new_message(raised, package, old, new, newer[0]))
    unique = {(one.kind, one.name): one for one in reversed(found)}
    return tuple(reversed(unique.values()))[:_MOST]


def _names_of(mention: Mention, old: Source, new: Source) -> list[str]:
    """The dotted names that a mention may stand for: messages say `np.asfarray`, and leave out a class's module."""
    tops = sorted({*old.tops, *new.tops}, key=lambda top: (top.startswith("_"), top))
    first, _, rest = mention.name.partition(".")
    if first in tops:
        return [mention.name] if rest else []
    if mention.about is About.MODULE:
        return []
    if mention.about is About.NAME:
        # The first part is a name that people give to the module, as `np`, or the name stands alone.
        inner = mention.name if not rest else rest if len(first) <= 3 else ""
        return [f"{top}.{inner}" for top in tops if inner][:2]
    return [mention.name]


def _words_of(mention: Mention) -> list[str]:
    """Words that a file must have to say something on it: the name, and the class where it is of one."""
    parts = [part for part in mention.name.split(".") if part not in ("__init__", "__call__")]
    return parts[-1:] if mention.about is About.NAME else parts[-2:]


def _on(mention: Mention, name: str, before: _Release, after: _Release, told: str) -> Iterator[Evidence]:
    if mention.about is About.MODULE:
        yield from _removed_module(name, before, after)
    elif mention.about is About.NAME:
        yield from _removed_name(name, before, after, told)
    elif mention.about is About.MEMBER:
        yield from _removed_member(name, before, after, told)
    else:
        yield from _changed_call(name, mention.argument, before, after)


def _removed_name(name: str, before: _Release, after: _Release, told: str) -> Iterator[Evidence]:
    """A name of a module that only the older release has, and what became of it."""
    known = look_up(before.api, name)
    file, line = place_of(known) if known is not None else _in_text(name, before.source)
    if not file or look_up(after.api, name) is not None:
        return
    if known is None and _in_text(name, after.source)[0] and not _says_gone(name, after.source):
        return  # both make it up when they are asked
    was = f"{name} was in {before.version} ({file}:{line})"
    said = told or _says_gone(name, after.source) or _deprecation(known)
    advised = f'; the release says: "{said}"' if said else ""
    if says_where_to(told):
        yield Evidence("moved-name", name, f"{was} and is gone in {after.version}{advised}", file, line)
        return
    elsewhere = _same_name_elsewhere(name, after)
    if elsewhere:
        yield Evidence(
            "moved-name", name, f"{was} and is gone in {after.version}; {elsewhere} is there{advised}", file, line
        )
        return
    close = _closest(name, before, after)
    if close:
        yield Evidence(
            "renamed-name",
            name,
            f"{was} and is gone in {after.version}, perhaps renamed: {close} is new there{advised}",
            file,
            line,
        )
        return
    yield Evidence("removed-name", name, f"{was} and was removed in {after.version}{advised}", file, line)


def _removed_member(name: str, before: _Release, after: _Release, told: str) -> Iterator[Evidence]:
    """An attribute or method that a class, or one that it inherits from, had in the older release only."""
    kind, _, member = name.rpartition(".")
    for old_class in _named(before.api, kind.rpartition(".")[2], "class"):
        with contextlib.suppress(Exception):  # griffe can't follow what a base class comes from
            owner = next((one for one in (old_class, *_bases(old_class)) if member in one.members), None)
            if owner is None:
                continue
            new_owner = look_up(after.api, owner.path)
            new_class = look_up(after.api, old_class.path)
            kept = [one for one in (new_owner, new_class) if one is not None and member in one.members]
            if kept or new_class is None:
                continue
            file, line = place_of(owner.members[member])
            said = told or _deprecation(owner.members[member])
            advised = f'; the release says: "{said}"' if said else ""
            text = f"{owner.path}.{member} was in {before.version} ({file}:{line}) and was removed in {after.version}"
            yield Evidence("removed-name", f"{owner.path}.{member}", text + advised, file, line)


def _removed_module(name: str, before: _Release, after: _Release) -> Iterator[Evidence]:
    if not before.source.has_module(name) or after.source.has_module(name):
        return
    path = name.replace(".", "/")
    file = next((one for one in before.source.files if one in (f"{path}.py", f"{path}.pyi", f"{path}/__init__.py")), "")
    last = name.rpartition(".")[2]
    names = (f"/{last}.py", f"/{last}/__init__.py")
    moved = [one for one in after.source.files if one.endswith(names) and one not in before.source.files]
    hint = f"; {moved[0]} is new there" if len(moved) == 1 else ""
    text = f"the module {name} was in {before.version} ({file}) and is gone in {after.version}{hint}"
    yield Evidence("removed-module", name, text, file, 1)


def _changed_call(name: str, argument: str, before: _Release, after: _Release) -> Iterator[Evidence]:
    """Functions of this name whose parameters differ, in what the message complains of where it names a parameter."""
    owner, _, last = name.rpartition(".")
    for old in _named(before.api, last, "function"):
        if owner and not old.path.endswith(f".{name}"):
            continue
        new = look_up(after.api, old.path)
        if new is None or not new.is_function:
            continue
        with contextlib.suppress(Exception):
            yield from _changed_parameters(old, new, argument, before.version, after.version)


def _changed_parameters(
    old: griffe.Object, new: griffe.Object | griffe.Alias, argument: str, *versions: str
) -> Iterator[Evidence]:
    was, now = _parameters(old), _parameters(new)
    gone, added = [one for one in was if one not in now], [one for one in now if one not in was]
    if was == now or (argument and argument not in gone and argument not in added):
        return
    if argument:
        gone, added = [one for one in gone if one == argument], [one for one in added if one == argument]
    words = [f"{one} is gone" for one in gone]
    words += [f"{one} is new" + (" and required" if now[one] else "") for one in added]
    what = ", ".join(words) or "their order or kinds differ"
    file, line = place_of(old)
    text = f"{old.path} has other parameters in {versions[1]} than in {versions[0]} ({file}:{line}): {what}"
    yield Evidence("changed-parameters", old.path, text, file, line)


def _parameters(function: griffe.Object | griffe.Alias) -> dict[str, bool]:
    """Each parameter, and whether a call must give it."""
    told = getattr(function, "parameters", ())
    return {f"{'*' * _stars(one)}{one.name.lstrip('*')}": one.required and not _stars(one) for one in told}


def _stars(parameter: griffe.Parameter) -> int:
    kind = parameter.kind.value if parameter.kind else ""
    return {"variadic positional": 1, "variadic keyword": 2}.get(kind, 0)


def _named(api: dict[str, griffe.Module], name: str, kind: str) -> Iterator[griffe.Object]:
    """Every definition of a name, of this kind, wherever it stands."""
    waiting: list[griffe.Object] = list(api.values())
    while waiting:
        one = waiting.pop()
        for member in list(one.members.values()):
            if member.is_alias:
                continue
            if member.name == name and member.kind.value == kind:
                yield member  # type: ignore[misc]
            if member.is_module or member.is_class:
                waiting.append(member)  # type: ignore[arg-type]


def _bases(found: griffe.Object) -> list[griffe.Class]:
    return list(getattr(found, "mro", list)())


def _same_name_elsewhere(name: str, after: _Release) -> str:
    """Another public place where the newer release has a definition of this name, if there is just one."""
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        return ""
    found = {
        one.path
        for kind in ("class", "function", "attribute")
        for one in _named(after.api, last, kind)
        if one.parent is not None and one.parent.is_module
    }
    public = sorted(path for path in found if not any(part.startswith("_") for part in path.split(".")))
    return public[0] if len(public) == 1 else ""


def _closest(name: str, before: _Release, after: _Release) -> str:
    """A name that is new in the same module and much like this one; "" where there is none."""
    module, _, last = name.rpartition(".")
    there, was = look_up(after.api, module), look_up(before.api, module)
    if there is None or was is None or last.startswith("_"):
        return ""
    new = [one for one in there.members if one not in was.members and not one.startswith("_")]
    close = difflib.get_close_matches(last, new, n=1, cutoff=_CLOSE)
    return f"{module}.{close[0]}" if close else ""


def _in_text(name: str, source: Source) -> tuple[str, int]:
    """Where a module has a name in its text as a string: modules that make up names keep them so."""
    module, _, last = name.rpartition(".")
    path = module.replace(".", "/")
    pattern = re.compile(rb"[\"']%s[\"']" % re.escape(last.encode()))
    for file in (f"{path}.py", f"{path}/__init__.py", f"{path}.pyi", f"{path}/__init__.pyi"):
        if file in source.files:
            text = source.read(file)
            match = pattern.search(text)
            if match is not None and b"__getattr__" in text:
                return file, text.count(b"\n", 0, match.start()) + 1
    return "", 0


def _says_gone(name: str, source: Source) -> str:
    """What a table of removed names (`{"asfarray": "Use ..."}`) says of one; "" where there is none."""
    last = name.rpartition(".")[2]
    for _, text in sorted(source.containing(last).items()):
        for node in ast.walk(_parsed(text)):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if _text(key) == last and " " in _text(value):
                    return one_line(_text(value), _LONGEST_ADVICE)
    return ""


def _deprecation(known: griffe.Object | griffe.Alias | None) -> str:
    """What the older release already said of a name: the text of a warning in its body, or of its docstring."""
    try:
        source = textwrap.dedent(known.source) if known is not None else ""
        docstring = known.docstring.value if known is not None and known.docstring else ""
    except Exception:  # noqa: BLE001 - griffe: an alias of something that is not here
        return ""
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Call) and _called(node) in ("warn", "deprecated"):
            text = " ".join(" ".join(map(_text, ast.walk(node))).split())
            if _ADVICE.search(text):
                return one_line(text, _LONGEST_ADVICE)
    lines = [" ".join(line.split()) for line in re.split(r"\n\s*\n", docstring) if "deprecated" in line.lower()]
    return one_line(lines[0].removeprefix(".. deprecated::"), _LONGEST_ADVICE) if lines else ""


def _new_message(
    raised: RaisedException | None, package: str, old: Source, new: Source, version: str
) -> Iterator[Evidence]:
    """A message that only the newer release can print."""
    literal = literal_part(raised)
    wanted = literal.encode()
    if not literal or any(wanted in old.read(path) for path in old.files):
        return
    for path in new.files:
        if wanted in (text := new.read(path)):
            line = text.count(b"\n", 0, text.index(wanted)) + 1
            said = f'the message "{literal}" is new in {package} {version} ({path}:{line})'
            yield Evidence("new-message", package, said, path, line)
            return


def _parsed(source: str | bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))
