"""The catalogue of known regressions in Markdown, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.catalogue.entries import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.catalogue.entries import Entry


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
