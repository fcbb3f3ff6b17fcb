"""An entry of the catalogue in words, and all of them as the sections of a page in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.catalogue.entries import Entry


def lines_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield what is known of an entry: labels and texts."""
    known = entry.known
    yield "kind", known.kind
    yield "releases", entry.releases
    if known.last_good is not None:
        yield "last good", known.last_good
    if known.seen is not None:
        yield "error", known.seen.error
    elif entry.repro.signature is not None:
        yield "signature", str(entry.repro.signature)
    if place := known.removed or known.file:
        function = f", {known.function}" if known.function and not known.removed else ""
        yield ("removed" if known.removed else "where"), f"{place}{function}"
    for label, text in (("commit", known.commit), ("pull request", known.pull_request), ("fix", known.fix)):
        if text:
            yield label, text
    if known.workaround:
        yield "workaround", known.workaround
    yield "upstream", " ".join(known.upstream)
    yield "reproduce", f"harness {' '.join(entry.command)}"


def sections_of(entries: Iterable[Entry]) -> str:
    """Return the entries in Markdown, by package."""
    by_subject: dict[str, list[Entry]] = {}
    for entry in entries:
        by_subject.setdefault(entry.subject, []).append(entry)
    parts = []
    for subject in sorted(by_subject):
        parts.append(f"## {subject}\n")
        parts += [_section(entry) for entry in sorted(by_subject[subject], key=lambda one: one.name)]
    return "\n".join(parts)


def _section(entry: Entry) -> str:
    told = []
    for label, text in lines_of(entry):
        if label == "upstream":
            shown = " · ".join(f"<{address}>" for address in text.split())
        elif label in ("error", "reproduce", "signature", "where", "removed"):
            fence = "``" if "`" in text else "`"
            pad = " " if "`" in text else ""
            shown = f"{fence}{pad}{text}{pad}{fence}"
        elif label == "pull request":
            shown = f"<{text}>"
        else:
            shown = text
        told.append(f"- **{label}**: {shown}")
    return "\n".join([f"### {entry.name}", "", entry.repro.summary, "", *told, ""])
