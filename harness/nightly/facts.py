"""What the nights add to the report of a break: where it was seen, what fixed it, when it was closed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.words import listed

if TYPE_CHECKING:
    from harness.model import Change
    from harness.nightly.record import Break


def releases_of(packages: tuple[Change, ...]) -> str:
    """The releases that a change brought, in words."""
    return listed(f"{one.name} {one.after}" if one.after else f"{one.name} being gone" for one in packages)


def facts_of_break(known: Break) -> tuple[tuple[str, str], ...]:
    """What the nights add to the report of a break, as label and text."""
    facts = [
        ("Seen in", "; ".join(known.cells)),
        ("First seen", f"in the night of {known.first_seen[:10]}"),
    ]
    if known.last_seen != known.first_seen:
        facts.append(("Last spread", f"in the night of {known.last_seen[:10]}"))
    by: dict[tuple[str, str], list[str]] = {}
    for fix in known.fixes:
        by.setdefault((fix.by, fix.night), []).append(fix.cell)
    facts += [
        ("Fixed by", f"{what}, in the night of {night[:10]} ({'; '.join(cells)})")
        for (what, night), cells in by.items()
    ]
    if known.closed:
        facts.append(("Closed", f"in the night of {known.closed[:10]}: no cell is broken by it any more"))
    return tuple(facts)
