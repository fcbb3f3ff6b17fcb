"""An issue that a person may send to the culprit's maintainers: repository, title, body. Nothing here sends it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from attrs import frozen

from harness.report.phrases import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report import KeptAnswer

_REPOSITORY = re.compile(r"^https://github\.com/([\w.-]+/[\w.-]+)$")


@frozen
class UpstreamIssue:
    """An issue to send by hand. `repository` is "owner/name" on GitHub, "" if the metadata names none.

    `package` is the distribution that it is about.
    """

    package: str
    repository: str
    title: str
    body: str

    def command(self, body_file: str) -> str:
        """Return the command that sends it, with the body in a file; "" if the repository is not known."""
        if not self.repository:
            return ""
        words = ["gh", "issue", "create", "--repo", self.repository, "--title", self.title, "--body-file", body_file]
        return shlex.join(words)


def upstream_issue(kept: KeptAnswer, repositories: Mapping[str, str], body: str) -> UpstreamIssue:
    """Return the issue for an answer; `repositories` maps distributions to the URL in their metadata."""
    answer = kept.answer
    packages = answer.culprit.packages if answer.culprit is not None else ()
    names = [change.name for change in packages] or [answer.subject]
    name = answer.subject if answer.subject in names else names[0]
    title = title_of(answer)
    if name != answer.subject:
        change = packages[0]
        title = f"{name} {change.after or f'without {change.before}'} breaks {answer.repro}"
    known = _REPOSITORY.match(repositories.get(name, ""))
    return UpstreamIssue(name, known[1] if known else "", title, body)
