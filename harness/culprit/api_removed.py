"""Finds names, members and modules that only the older release has, and what replaced them."""

from __future__ import annotations

import contextlib
import difflib
import re
from typing import TYPE_CHECKING

from harness.culprit.api_mentions import says_where_to
from harness.culprit.api_sources import ReleaseApi, Source, look_up, named, place_of
from harness.model.culprit import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    import griffe

from harness.culprit.api_advice import deprecation, says_gone

_CLOSE = 0.75


def removed_name(name: str, before: ReleaseApi, after: ReleaseApi, told: str) -> Iterator[Evidence]:
    """Evidence that only the older release has a name in a module, and what replaced it."""
    known = look_up(before.api, name)
    file, line = place_of(known) if known is not None else _in_text(name, before.source)
    if not file or look_up(after.api, name) is not None:
        return
    if known is None and _in_text(name, after.source)[0] and not says_gone(name, after.source):
        return  # both create it on access
    was = f"{name} was in {before.version} ({file}:{line})"
    said = told or says_gone(name, after.source) or deprecation(known)
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


def removed_member(name: str, before: ReleaseApi, after: ReleaseApi, told: str) -> Iterator[Evidence]:
    """Evidence that a class or its base has an attribute or method only in the older release."""
    kind, _, member = name.rpartition(".")
    for old_class in named(before.api, kind.rpartition(".")[2], "class"):
        with contextlib.suppress(Exception):  # griffe can't resolve a base class
            owner = next((one for one in (old_class, *_bases(old_class)) if member in one.members), None)
            if owner is None:
                continue
            new_owner = look_up(after.api, owner.path)
            new_class = look_up(after.api, old_class.path)
            kept = [one for one in (new_owner, new_class) if one is not None and member in one.members]
            if kept or new_class is None:
                continue
            file, line = place_of(owner.members[member])
            said = told or deprecation(owner.members[member])
            advised = f'; the release says: "{said}"' if said else ""
            text = f"{owner.path}.{member} was in {before.version} ({file}:{line}) and was removed in {after.version}"
            yield Evidence("removed-name", f"{owner.path}.{member}", text + advised, file, line)


def removed_module(name: str, before: ReleaseApi, after: ReleaseApi) -> Iterator[Evidence]:
    """Evidence that only the older release has a module, and where the newer one has a new module with its name."""
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


def _bases(found: griffe.Object) -> list[griffe.Class]:
    return list(getattr(found, "mro", list)())


def _same_name_elsewhere(name: str, after: ReleaseApi) -> str:
    """The public location where the newer release defines this name; "" unless there is exactly one."""
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        return ""
    found = {
        one.path
        for kind in ("class", "function", "attribute")
        for one in named(after.api, last, kind)
        if one.parent is not None and one.parent.is_module
    }
    public = sorted(path for path in found if not any(part.startswith("_") for part in path.split(".")))
    return public[0] if len(public) == 1 else ""


def _closest(name: str, before: ReleaseApi, after: ReleaseApi) -> str:
    """The new name in the same module that is most similar to this one; "" if none is similar."""
    module, _, last = name.rpartition(".")
    there, was = look_up(after.api, module), look_up(before.api, module)
    if there is None or was is None or last.startswith("_"):
        return ""
    new = [one for one in there.members if one not in was.members and not one.startswith("_")]
    close = difflib.get_close_matches(last, new, n=1, cutoff=_CLOSE)
    return f"{module}.{close[0]}" if close else ""


def _in_text(name: str, source: Source) -> tuple[str, int]:
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
