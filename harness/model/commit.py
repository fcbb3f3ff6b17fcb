"""A commit of a project's source repository, as answers and reports name it."""

from __future__ import annotations

from typing import Any

from attrs import frozen


@frozen
class Commit:
    """One commit: its full hash, author, the author's date (ISO 8601), and the first line of its message.

    `pull_request` is the number that the message names; `link` the commit's page, "" where the project names none.
    """

    sha: str
    author: str
    date: str
    subject: str
    parents: tuple[str, ...] = ()
    pull_request: int | None = None
    link: str = ""

    @property
    def short(self) -> str:
        """The hash as people write it."""
        return self.sha[:10]

    @property
    def is_merge(self) -> bool:
        """Whether it joins two lines of history."""
        return len(self.parents) > 1

    def as_json(self) -> dict[str, Any]:
        """The commit as answers print it."""
        return {
            "sha": self.sha,
            "author": self.author,
            "date": self.date,
            "subject": self.subject,
            "pull_request": self.pull_request,
            "link": self.link,
        }

    def __str__(self) -> str:
        return f"{self.short} ({self.subject})"
