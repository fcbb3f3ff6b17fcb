"""A commit of a project's source repository, as answers and reports name it."""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen


@frozen
class Commit:
    """One commit: its full hash, author, the author's date (ISO 8601), and the first line of its message.

    `pull_request` is the number that the message names; `link` the commit's page and `pull_request_link` that of the
    pull request, "" if they are not known.
    """

    sha: str
    author: str
    date: str
    subject: str
    parents: tuple[str, ...] = ()
    pull_request: int | None = None
    link: str = ""
    pull_request_link: str = ""

    @property
    def short(self) -> str:
        """The abbreviated hash."""
        return self.sha[:10]

    @property
    def day(self) -> str:
        """The author's day, as an ISO date."""
        return self.date[:10]

    @property
    def described(self) -> str:
        """The commit in words: hash, subject, day, and the pull request unless the subject names it."""
        request = f"#{self.pull_request}"
        told = f", pull request {request}" if self.pull_request and request not in self.subject else ""
        return f"{self.short} ({self.subject}; {self.day}{told})"

    @property
    def is_merge(self) -> bool:
        """Whether it is a merge commit."""
        return len(self.parents) > 1

    def as_json(self) -> dict[str, Any]:
        """The commit in the JSON of answers."""
        return {
            "sha": self.sha,
            "author": self.author,
            "date": self.date,
            "subject": self.subject,
            "pull_request": self.pull_request,
            "link": self.link,
            "pull_request_link": self.pull_request_link,
        }

    def __str__(self) -> str:
        return f"{self.short} ({self.subject})"


@frozen
class PinnedCommit:
    """A commit of `project` that a matrix cell uses in place of a release.

    `revision` is what the user wrote ("main"), `sha` the full hash that it resolved to, `folder` the clone, `git` the
    clone or its URL as the user wrote it, and `date` the committer's date (ISO 8601, UTC).
    """

    project: str
    revision: str
    sha: str
    folder: str
    git: str
    date: str

    @property
    def value(self) -> str:
        """The value on a matrix axis: "main@1a2b3c4"."""
        return f"{self.revision}@{self.sha[:7]}"

    @property
    def requirement(self) -> str:
        """The requirement for `--with`."""
        return f"{self.project} @ {self.folder}@{self.sha}"


def revision_of(value: str) -> str:
    """The value of an axis without the commit's hash: "main" for "main@1a2b3c4"; other values are unchanged."""
    return _HASH.sub("", value)


_HASH = re.compile(r"(?<=.)@[0-9a-f]{7}$")
