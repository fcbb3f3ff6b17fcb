"""Evidence: what the code of two releases says about a failure. Only a run is proof."""

from __future__ import annotations

from attrs import frozen


@frozen
class Evidence:
    """One remark about a public name that a failure mentions.

    `kind` is "removed-name", "renamed-name", "moved-name", "changed-parameters", "removed-module" or "new-message";
    `name` includes its module; `text` is a sentence, with the release's own advice if it gives any; `file` and `line`
    say where the name was in the older release, relative to site-packages, or, for a new message, where it is in the
    newer one.
    """

    kind: str
    name: str
    text: str
    file: str = ""
    line: int = 0

    @property
    def short(self) -> str:
        """A few words, for a sentence that has others too; "" if they would say little."""
        match self.kind:
            case "removed-name" | "removed-module":
                return f"{self.name} was removed"
            case "moved-name":
                return f"{self.name} was moved"
            case "renamed-name":
                return f"{self.name} was removed, perhaps renamed"
            case "changed-parameters":
                return f"{self.name} takes other parameters"
            case _:
                return ""
