"""A mixture: an environment with some files of another release, or of no release."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from attrs import field, frozen


@frozen
class Mixture:
    """Files to put into a copy of an environment, by path relative to site-packages; None removes one.

    `label` describes the mixture; `flaw` says why it can't run, if that is known beforehand ("" if not).
    """

    files: Mapping[str, bytes | None] = field(repr=False)
    label: str
    flaw: str = ""

    @property
    def id(self) -> str:
        """A hash of the files."""
        digest = hashlib.sha256()
        for path in sorted(self.files):
            content = self.files[path]
            state = b"removed" if content is None else hashlib.sha256(content).digest()
            digest.update(path.encode() + b"\0" + state + b"\0")
        return digest.hexdigest()[:16]
