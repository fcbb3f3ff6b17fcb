"""Evidence from the API of two releases: was the name in a failure removed, moved, renamed or changed?

Griffe (https://mkdocstrings.github.io/griffe/) reads the sources of both; nothing is imported or run. Names that a
module creates on access (`__getattr__`) are found by a text search. Evidence is not proof: only a run is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.culprit.api_mentions import About, Mention, advice, literal_part, mentions
from harness.culprit.api_sources import ReleaseApi, Source, api_of, look_up, place_of, source_of
from harness.model.culprit import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.model import RaisedException
from harness.culprit.api_parameters import changed_call
from harness.culprit.api_removed import removed_member, removed_module, removed_name

_MOST = 5


def api_evidence(
    raised: RaisedException | None, package: str, *, older: tuple[str, Path], newer: tuple[str, Path]
) -> tuple[Evidence, ...]:
    """At most five remarks on an exception, from the sources of two releases of a distribution.

    `older` and `newer` are each a version and the location of its files: a folder of installed packages, or a wheel.
    Returns () if the exception names nothing of this package, or if a location lacks it. Raises `OSError` if a location
    can't be read.
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
                    before, after = ReleaseApi(older[0], old, old_api), ReleaseApi(newer[0], new, new_api)
                    for mention, name in about:
                        found += _on(mention, name, before, after, advice(raised))
        found = found or list(_new_message(raised, package, old, new, newer[0]))
    unique = {(one.kind, one.name): one for one in reversed(found)}
    return tuple(reversed(unique.values()))[:_MOST]


def _names_of(mention: Mention, old: Source, new: Source) -> list[str]:
    """The dotted names that a mention can stand for: messages say `np.asfarray`, and omit the module of a class."""
    tops = sorted({*old.tops, *new.tops}, key=lambda top: (top.startswith("_"), top))
    first, _, rest = mention.name.partition(".")
    if first in tops:
        return [mention.name] if rest else []
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


def _on(mention: Mention, name: str, before: ReleaseApi, after: ReleaseApi, told: str) -> Iterator[Evidence]:
    if mention.about is About.MODULE:
        yield from removed_module(name, before, after)
    elif mention.about is About.NAME:
        yield from removed_name(name, before, after, told)
    elif mention.about is About.MEMBER:
        yield from removed_member(name, before, after, told)
    else:
        yield from changed_call(name, mention.argument, before, after)


def _new_message(
    raised: RaisedException | None, package: str, old: Source, new: Source, version: str
) -> Iterator[Evidence]:
    """Evidence that only the sources of the newer release have the message."""
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
