"""Puts packages of a lock or requirements file back to what an older version of the file has, as text.

The entries of the older file are taken as they are, with their hashes for every platform; nothing is resolved. Whoever
edits a file so reads it again, to see that it has the versions that it should have.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from harness.model import Change, normalized_name
from harness.question.conda import SUFFIXES
from harness.question.lockfiles import LockFormat, format_of

_TABLES = (".lock", ".toml")
# A table of a package, with its own tables, up to the next table of the file.
_TABLE = re.compile(r"^\[\[packages?\]\][ \t]*\n(?:(?!\[(?!\[?packages?\.)).*\n?)*", re.MULTILINE)
_TABLE_NAME = re.compile(r"""^name\s*=\s*["']([\w.-]+)["']""", re.MULTILINE)
# A requirement with its continued lines, and the indented comments that pip-compile writes below it.
_LINE = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:.*\\\n)*.*\n?(?:[ \t]+#.*\n?)*", re.MULTILINE)


@frozen
class _Block:
    """A part of a file: the entry of the package `name`, "" for what is between entries."""

    name: str
    text: str


def files_with_versions(
    files: Mapping[str, str], older: Mapping[str, str], versions: Mapping[str, str | None]
) -> dict[str, str] | None:
    """Do the same as `with_versions` for a file, the first of `files`, and those that it includes, by their paths.

    `older` are the same of the older version, whose file may have another path. A package is put back in each file that
    names it, or else in the one that did.
    """
    first = next(iter(files))
    before = {**older, first: next(iter(older.values()), "")}
    is_lock = first.endswith(_TABLES)
    named = {path: {block.name for block in _blocks(text, is_lock=is_lock)} for path, text in files.items()}
    homes = {path: {block.name for block in _blocks(before.get(path, ""), is_lock=is_lock)} for path in files}
    edited: dict[str, str] = {}
    for path, text in files.items():
        own = {
            name: version
            for name, version in versions.items()
            if name in named[path]
            or (
                not any(name in names for names in named.values())
                and path == next((home for home, names in homes.items() if name in names), first)
            )
        }
        after = with_versions(text, before.get(path, ""), own, path)
        if after is None:
            return None
        edited[path] = after
    return edited


def with_versions(text: str, older: str, versions: Mapping[str, str | None], file: str) -> str | None:
    """Return the text of a `file` in which packages have the entries of its `older` text; None takes one out.

    `versions` are by normalised name. A requirement that the older text lacks is added as NAME==VERSION. None if this
    file can't be edited so: an entry of a lock would be missing, or another one names a package that is taken out.
    """
    is_lock, known = file.endswith(_TABLES), format_of(file)
    if file.endswith(SUFFIXES) or (known is not None and not known.has_entries):
        return None
    before: dict[str, list[str]] = {}
    for block in _blocks(older, is_lock=is_lock):
        before.setdefault(block.name, []).append(block.text)
    entries: dict[str, list[str]] = {}
    for name, version in versions.items():
        line = [f"{name}=={version}"] if version is not None and not is_lock else []
        entries[name] = before.get(name, line) if version is not None else []
        if version is not None and not entries[name]:
            return None
    edited = _replaced(_blocks(text, is_lock=is_lock), entries, "\n\n" if is_lock else "\n")
    removed = [name for name, version in versions.items() if version is None]
    if is_lock and any(re.search(rf"""\bname\s*=\s*["']{re.escape(name)}["']""", edited) for name in removed):
        return None
    return edited


def _blocks(text: str, *, is_lock: bool) -> list[_Block]:
    blocks: list[_Block] = []
    end = 0
    for match in (_TABLE if is_lock else _LINE).finditer(text):
        named = _TABLE_NAME.search(match[0]) if is_lock else match
        blocks += [_Block("", text[end : match.start()])] if match.start() > end else []
        blocks.append(_Block(normalized_name(named[1]) if named is not None else "", match[0]))
        end = match.end()
    return [*blocks, *([_Block("", text[end:])] if end < len(text) else [])]


def _replaced(blocks: Sequence[_Block], entries: Mapping[str, Sequence[str]], between: str) -> str:
    """Return the text of blocks with other entries of some packages; new ones go where their name belongs."""
    new = {name: "".join(_ending(text, between) for text in texts) for name, texts in entries.items()}
    waiting = sorted(name for name in new if new[name] and all(block.name != name for block in blocks))
    last = max((position for position, block in enumerate(blocks) if block.name), default=-1)
    parts: list[str] = []
    for position, block in enumerate(blocks):
        while waiting and block.name and waiting[0] < block.name:
            parts.append(new[waiting.pop(0)])
        parts.append(new.get(block.name, block.text))
        if block.name in new:
            new[block.name] = ""  # its other entries are replaced by the first
        if position == last:
            parts[-1] = _ending(parts[-1], between) if waiting else parts[-1]
            parts += [new[name] for name in waiting]
            parts[-1] = _ending(parts[-1], block.text[len(block.text.rstrip("\n")) :])
            waiting = []
    return "".join([*parts, *(new[name] for name in waiting)])


def _ending(text: str, end: str) -> str:
    return text.rstrip("\n") + end if text else ""


def diff_of(before: str, after: str, path: str) -> str:
    """Return the unified diff of a file at a path with slashes, as `git apply` reads it."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def command_of(file: str, held: Iterable[Change]) -> str:
    """Return the command with which the tool of a lock puts packages back to their older versions; "" if unknown.

    `held` are the changes of an update that are not made.
    """
    back = [f"{change.name}=={change.before}" for change in held if change.before is not None]
    out = [change.name for change in held if change.before is None]
    known = format_of(file) or LockFormat("")
    pins = [word for text in back for word in (known.option, text) if word]
    commands = (known.remove and out and (*known.remove, *out), known.pin and pins and (*known.pin, *pins))
    return "\n".join(shlex.join(words) for words in commands if words)
