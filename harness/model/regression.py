"""A known regression, as a repro documents it: what broke, since when, in which lines, and what works around it."""

from __future__ import annotations

from typing import Any

from attrs import fields, frozen
from packaging.version import Version

from harness.model.release import parsed_version
from harness.model.table import Reader, filled, list_of, one_of, parsed, read_table, switch

KINDS = ("crash", "import error", "wrong number", "changed default", "changed output", "slower", "more memory", "hang")
_VERSIONS = ("last-good", "first-bad", "last-bad", "fixed-in", "good-again")


@frozen
class Seen:
    """The failure as one release of the subject showed it: the last line of its traceback, and its frames.

    Each frame is "file:function", the outermost first, `file` relative to site-packages.
    """

    release: str
    error: str
    frames: tuple[str, ...] = ()

    @property
    def exception(self) -> str:
        """The name of the exception's type, without its module."""
        return self.error.partition(":")[0].rpartition(".")[2]

    @property
    def message(self) -> str:
        """The message of the exception."""
        return self.error.partition(":")[2].strip()


@frozen
class Regression:
    """What is known to be true of a repro's first subject. All but `kind` and `upstream` may be unknown ("" or None).

    `upstream` are addresses of the report, the change or the release notes. The bug is in the releases from `first_bad`
    to `last_bad`, after `last_good` and before `fixed_in`; with `never_worked` no earlier release is good. `good_again`
    is a release from which to look back for the fix. `file` (relative to site-packages) and `function` are the culprit;
    `removed` is a public name that is gone. `depth` is how deep the benchmark asks: "release", else to the lines.
    `written` says that these releases write the files that fail to be read (`--made`). `fix` and `workaround` are
    sentences; `seen` is how it looks.
    """

    kind: str
    upstream: tuple[str, ...]
    last_good: str | None = None
    first_bad: str | None = None
    last_bad: str | None = None
    fixed_in: str | None = None
    good_again: str | None = None
    never_worked: bool = False
    written: bool = False
    file: str = ""
    function: str = ""
    removed: str = ""
    depth: str = ""
    pull_request: str = ""
    fix: str = ""
    workaround: str = ""
    seen: Seen | None = None

    def has(self, version: str) -> bool | None:
        """Whether a release of the subject has the bug; None if it is not a version."""
        given = parsed_version(version)
        if given is None:
            return None
        if self.first_bad is not None and given < Version(self.first_bad):
            return False
        return self.fixed_in is None or given < Version(self.fixed_in)

    @property
    def since(self) -> str:
        """The releases that have the bug, in words."""
        if self.fixed_in is not None:
            begin = "" if self.never_worked else f"from {self.first_bad} "
            return f"{begin}up to {self.last_bad}; fixed in {self.fixed_in}"
        return "in every release; not fixed" if self.never_worked else f"from {self.first_bad} on"


def _is_address(text: str) -> bool:
    return text.startswith("https://") and len(text.split()) == 1


_SEEN: dict[str, Reader] = {
    "release": filled,
    "error": filled,
    "frames": list_of(bool, "a list of 'file:function'"),
}
KNOWN: dict[str, Reader] = {
    **{
        attribute.name.replace("_", "-"): switch if attribute.default is False else filled
        for attribute in fields(Regression)
    },
    **dict.fromkeys(_VERSIONS, parsed(Version, "a version")),
    "kind": one_of(*KINDS),
    "upstream": list_of(_is_address, "a list of https addresses of the issue, pull request or changelog"),
    "depth": one_of("release", "region"),
    "seen": lambda value, where: Seen(**read_table(value, where, _SEEN, needs=("release", "error"))),
}


def regression(value: Any, where: str) -> Regression:
    """Read `[tool.harness.known]`. Raises `ValueError`, whose message says what to change."""
    known = Regression(**read_table(value, where, KNOWN, needs=("kind", "upstream")))
    if not known.upstream:
        raise ValueError(f"{where}.upstream must be a list of https addresses, not empty")
    if known.never_worked == (known.first_bad is not None):
        raise ValueError(f"{where} needs either last-good and first-bad, or never-worked = true")
    return known
