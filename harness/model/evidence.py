"""Evidence: what the code of two releases suggests about a failure. Only a run is proof."""

from __future__ import annotations

from attrs import frozen


@frozen
class Evidence:
    """One fact about a public name that a failure mentions.

    `kind` is "removed-name", "renamed-name", "moved-name", "changed-parameters", "removed-module" or "new-message";
    `name` includes its module; `text` is a sentence, with the release's own advice if it has any. `file` (relative to
    site-packages) and `line` are where the older release has the name or, for a new message, where the newer release
    has it.
    """

    kind: str
    name: str
    text: str
    file: str = ""
    line: int = 0

    @property
    def short(self) -> str:
        """A few words to use inside another sentence; "" if they would not be useful."""
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
