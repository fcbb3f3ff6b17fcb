"""Evidence from the API of two releases: was the name in a failure removed, moved, renamed or changed?

Names that a module creates on access (`__getattr__`) are found by a text search. Evidence is not proof: only a run is.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from harness.culprit.mentions import (
    About,
    Mention,
    advice,
    clause_with_advice,
    ended_once,
    literal_part,
    mentions,
    says_what_instead,
    says_where_to,
)
from harness.culprit.release_api import ApiSource, ReleaseApi, api_of, look_up, named, place_of
from harness.culprit.syntax import called
from harness.model.culprit import Evidence
from harness.model.text import one_line
from harness.repository.declared import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    import griffe

    from harness.model import RaisedException


_MOST = 5


@functools.lru_cache(maxsize=16)  # the search and the answer ask for the same
def api_evidence(
    raised: RaisedException | None, package: str, *, older: tuple[str, Path], newer: tuple[str, Path]
) -> tuple[Evidence, ...]:
    """At most five remarks on an exception, from the sources of two releases of a distribution.

    `older` and `newer` are each a version and the location of its files: a folder of installed packages, or a wheel.
    Returns () if the exception names nothing of this package, or if a location lacks it. Raises `OSError` if a location
    can't be read.
    """
    mentioned = mentions(raised)
    old, new = (ApiSource.of(place, package) for _, place in (older, newer))
    if not old.files or not new.files:
        return ()
    about = [(mention, name) for mention in mentioned for name in _names_of(mention, old, new)]
    remarks: list[Evidence] = []
    if about:
        words = {part for mention, _ in about for part in _words_of(mention)}
        with api_of(old, words) as old_api:
            defined = {place_of(known)[0] for _, name in about if (known := look_up(old_api, name)) is not None}
            with api_of(new, words, defined) as new_api:
                before, after = ReleaseApi(older[0], old, old_api), ReleaseApi(newer[0], new, new_api)
                for mention, name in about:
                    remarks += _on(mention, name, before, after, advice(raised))
    remarks = remarks or list(_new_message(raised, package, old, new, newer[0]))
    unique = {(remark.kind, remark.name): remark for remark in reversed(remarks)}
    return tuple(reversed(unique.values()))[:_MOST]


def _names_of(mention: Mention, old: ApiSource, new: ApiSource) -> list[str]:
    """The dotted names that a mention can stand for: messages say `np.asfarray`, and omit the module of a class."""
    tops = sorted({*old.tops, *new.tops}, key=lambda top: (top.startswith("_"), top))
    first, _, rest = mention.name.partition(".")
    if first in tops:
        return [mention.name] if rest or mention.about is About.MODULE else []
    if mention.about is About.MODULE:
        return []
    if mention.about is About.NAME:
        # Either the first part is an alias of the module, such as `np`, or there is only one part.
        inner = mention.name if not rest else rest if len(first) <= 3 else ""
        return [f"{top}.{inner}" for top in tops if inner][:2]
    return [mention.name]


def _words_of(mention: Mention) -> list[str]:
    """The words that make a file relevant: the name, and its class if it has one."""
    parts = [part for part in mention.name.split(".") if part not in ("__init__", "__call__")]
    return parts[-1:] if mention.about is About.NAME else parts[-2:]


def _on(mention: Mention, name: str, before: ReleaseApi, after: ReleaseApi, hint: str) -> Iterator[Evidence]:
    if mention.about is About.MODULE:
        yield from removed_module(name, before, after, hint)
    elif mention.about is About.NAME:
        yield from removed_name(name, before, after, hint)
    elif mention.about is About.MEMBER:
        yield from removed_member(name, before, after, hint)
    else:
        yield from changed_call(name, mention.argument, before, after)


def _new_message(
    raised: RaisedException | None, package: str, old: ApiSource, new: ApiSource, version: str
) -> Iterator[Evidence]:
    """Evidence that only the sources of the newer release have the message."""
    literal = literal_part(raised)
    wanted = literal.encode()
    if not literal or any(wanted in old.read(path) for path in old.files):
        return
    for path in new.files:
        if wanted in (text := new.read(path)):
            line = text.count(b"\n", 0, text.index(wanted)) + 1
            sentence = f'the message "{literal}" is new in {package} {version} ({path}:{line})'
            instead = next(
                (clause for clause in map(clause_with_advice, raised.chain() if raised else ()) if clause), ""
            )
            yield Evidence("new-message", package, sentence, path, line, instead)
            return


_CLOSE = 0.75
_PRIVATE = re.compile(r"(^|/)(_(?!_init__)|vendor|vendored|third_party|extern|tests?/)")


def removed_name(name: str, before: ReleaseApi, after: ReleaseApi, hint: str) -> Iterator[Evidence]:
    """Evidence that only the older release has a name in a module, and what replaced it."""
    known = look_up(before.api, name)
    file, line = place_of(known) if known is not None else _in_text(name, before.source)
    if not file and (known := _only_older_definition(name, before, after)) is not None:
        file, line = place_of(known)
    if not file or look_up(after.api, name) is not None:
        return
    if known is None and _in_text(name, after.source)[0] and not says_gone(name, after.source):
        return  # both create it on access
    was = f"{name} was in {before.version} ({file}:{line})"
    guidance = hint or says_gone(name, after.source) or deprecation(known)
    suffix = f'; the release says: "{guidance}"' if guidance else ""
    if says_where_to(guidance):
        yield Evidence("moved-name", name, f"{was} and is gone in {after.version}{suffix}", file, line, guidance)
        return
    if says_what_instead(guidance):
        yield Evidence("removed-name", name, f"{was} and was removed in {after.version}{suffix}", file, line, guidance)
        return
    elsewhere = _same_name_elsewhere(name, before, after)
    if elsewhere:
        yield Evidence(
            "moved-name",
            name,
            f"{was} and is gone in {after.version}; {elsewhere} is there{suffix}",
            file,
            line,
            guidance or f"Use {elsewhere} instead.",
        )
        return
    close = _closest(name, before, after)
    if close:
        yield Evidence(
            "renamed-name",
            name,
            f"{was} and is gone in {after.version}, perhaps renamed: {close} is new there{suffix}",
            file,
            line,
            guidance or f"Perhaps {close} replaces it.",
        )
        return
    yield Evidence("removed-name", name, f"{was} and was removed in {after.version}{suffix}", file, line, guidance)


def _only_older_definition(name: str, before: ReleaseApi, after: ReleaseApi) -> griffe.Object | None:
    """Return the function, class or attribute of a module that only the older release defines, if it is the only one.

    A package whose `__all__` is computed at run time shows a name that no look-up finds, for example `numpy.product`.
    A module that became private is still the same module.
    """
    last = name.rpartition(".")[2]
    definitions = [
        {
            definition.path.replace("._", "."): definition
            for kind in ("class", "function", "attribute")
            for definition in named(release.api, last, kind)
            if definition.parent is not None and definition.parent.is_module
        }
        for release in (before, after)
    ]
    gone = [definition for path, definition in definitions[0].items() if path not in definitions[1]]
    return gone[0] if len(gone) == 1 else None


def removed_member(name: str, before: ReleaseApi, after: ReleaseApi, hint: str) -> Iterator[Evidence]:
    """Evidence that a class or its base has an attribute or method only in the older release."""
    kind, _, member = name.rpartition(".")
    for old_class in named(before.api, kind.rpartition(".")[2], "class"):
        with contextlib.suppress(Exception):  # griffe can't resolve a base class
            owner = next((base for base in (old_class, *_bases_of(old_class)) if member in base.members), None)
            if owner is None:
                continue
            new_owner = look_up(after.api, owner.path)
            new_class = look_up(after.api, old_class.path)
            holders = [new for new in (new_owner, new_class) if new is not None and member in new.members]
            if holders or new_class is None:
                continue
            file, line = place_of(owner.members[member])
            guidance = hint or deprecation(owner.members[member])
            suffix = f'; the release says: "{guidance}"' if guidance else ""
            # A stub gives a compiled class bases that exist nowhere else.
            dotted = f"{(old_class if file.endswith('.pyi') else owner).path}.{member}"
            text = f"{dotted} was in {before.version} ({file}:{line}) and was removed in {after.version}"
            yield Evidence("removed-name", dotted, text + suffix, file, line, guidance)


def removed_module(name: str, before: ReleaseApi, after: ReleaseApi, hint: str) -> Iterator[Evidence]:
    """Evidence that only the older release has a module, and where the newer one has a new module with its name."""
    if not before.source.has_module(name) or after.source.has_module(name):
        return
    path = name.replace(".", "/")
    file = next(
        (file for file in before.source.files if file in (f"{path}.py", f"{path}.pyi", f"{path}/__init__.py")),
        "",
    )
    last = name.rpartition(".")[2]
    names = (f"/{last}.py", f"/{last}/__init__.py")
    new = (file for file in after.source.files if file.endswith(names) and file not in before.source.files)
    moved = [file for file in new if not _PRIVATE.search(file)]
    suffix = f"; {moved[0]} is new there" if len(moved) == 1 else ""
    suffix = f'; the release says: "{hint}"' if hint else suffix
    text = f"the module {name} was in {before.version} ({file}) and is gone in {after.version}{suffix}"
    yield Evidence("removed-module", name, text, file, 1)


def _bases_of(definition: griffe.Object) -> list[griffe.Class]:
    return list(getattr(definition, "mro", list)())


def _is_namesake(name: str, elsewhere: str, before: ReleaseApi) -> bool:
    """Whether the older release had both names already as two things, so that none of them moved."""
    target, itself = look_up(before.api, elsewhere), look_up(before.api, name)
    return target is not None and (itself is None or place_of(target) != place_of(itself))


def _same_name_elsewhere(name: str, before: ReleaseApi, after: ReleaseApi) -> str:
    """The public location where the newer release defines this name; "" unless there is exactly one."""
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        return ""
    paths = {
        definition.path
        for kind in ("class", "function", "attribute")
        for definition in named(after.api, last, kind)
        if definition.parent is not None and definition.parent.is_module
    }
    public = sorted(path for path in paths if not _PRIVATE.search(path.replace(".", "/")))
    return public[0] if len(public) == 1 and not _is_namesake(name, public[0], before) else ""


def _closest(name: str, before: ReleaseApi, after: ReleaseApi) -> str:
    """The new name in the same module that is most similar to this one; "" if none is similar."""
    module, _, last = name.rpartition(".")
    home, was = look_up(after.api, module), look_up(before.api, module)
    if home is None or was is None or last.startswith("_"):
        return ""
    new = [member for member in home.members if member not in was.members and not member.startswith("_")]
    close = difflib.get_close_matches(last, new, n=1, cutoff=_CLOSE)
    return f"{module}.{close[0]}" if close else ""


def _in_text(name: str, source: ApiSource) -> tuple[str, int]:
    """The file and line where a module with `__getattr__` has a name as a string; ("", 0) if there is none."""
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


def changed_call(name: str, argument: str, before: ReleaseApi, after: ReleaseApi) -> Iterator[Evidence]:
    """Evidence on the functions of this name whose parameters differ; with `argument`, only if that parameter does."""
    owner, _, last = name.rpartition(".")
    for old in named(before.api, last, "function"):
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
    was, now = _parameters_of(old), _parameters_of(new)
    gone, added = [name for name in was if name not in now], [name for name in now if name not in was]
    if was == now or (argument and argument not in gone and argument not in added):
        return
    if argument:
        gone, added = [name for name in gone if name == argument], [name for name in added if name == argument]
    words = [f"{name} is gone" for name in gone]
    words += [f"{name} is new" + (" and required" if now[name] else "") for name in added]
    what = ", ".join(words) or "their order or kinds differ"
    file, line = place_of(old)
    text = f"{old.path} has other parameters in {versions[1]} than in {versions[0]} ({file}:{line}): {what}"
    yield Evidence("changed-parameters", old.path, text, file, line, parameter=argument if gone == [argument] else "")


def _parameters_of(function: griffe.Object | griffe.Alias) -> dict[str, bool]:
    """The parameters by name, stars included, and whether each is required."""
    parameters = getattr(function, "parameters", ())
    return {
        f"{'*' * _stars(parameter)}{parameter.name.lstrip('*')}": parameter.required and not _stars(parameter)
        for parameter in parameters
    }


def _stars(parameter: griffe.Parameter) -> int:
    kind = parameter.kind.value if parameter.kind else ""
    return {"variadic positional": 1, "variadic keyword": 2}.get(kind, 0)


_DIRECTIVE = re.compile(r"^\.\. deprecated::(?: v?\d\S*(?= \S))? ?")  # with the release, if a text follows
_NOTICE = re.compile(r"deprecat|removed|instead|moved|renamed", re.IGNORECASE)
_LONGEST_ADVICE = 300


def says_gone(name: str, source: ApiSource) -> str:
    """The text for a name in a table of removed names (`{"asfarray": "Use ..."}`); "" if there is none."""
    last = name.rpartition(".")[2]
    for _, text in sorted(source.containing(last).items()):
        for node in nodes_in(text):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if _text(key) == last and says_what_instead(_text(value)):
                    return ended_once(one_line(_text(value), _LONGEST_ADVICE))
    return ""


def deprecation(known: griffe.Object | griffe.Alias | None) -> str:
    """What the older release says about a name: a warning in its body, else a note in its docstring; "" for neither."""
    try:
        source = textwrap.dedent(known.source) if known is not None else ""
        docstring = known.docstring.value if known is not None and known.docstring else ""
    except Exception:  # noqa: BLE001 - griffe: an alias whose target is missing
        return ""
    for node in nodes_in(source):
        if isinstance(node, ast.Call) and called(node) in ("warn", "deprecated"):
            text = " ".join(" ".join(map(_text, ast.walk(node))).split())
            if _NOTICE.search(text):
                return ended_once(one_line(text, _LONGEST_ADVICE))
    lines = [" ".join(line.split()) for line in re.split(r"\n\s*\n", docstring) if "deprecated" in line.lower()]
    note = _DIRECTIVE.sub("", lines[0]) if lines else ""
    return ended_once(one_line(note, _LONGEST_ADVICE))


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
