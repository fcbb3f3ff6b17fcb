"""What a person may send to the maintainers of a culprit: where to, a title, a body. Nothing here sends it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from attrs import frozen

from harness.report.answer.phrases import title_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.report import KeptAnswer

_REPOSITORY = re.compile(r"^https://github\.com/([\w.-]+/[\w.-]+)$")


@frozen
class UpstreamIssue:
    """An issue to be sent by hand. `repository` is "owner/name" on GitHub, "" where no metadata names one.

    `package` is the distribution whose maintainers it is for.
    """

    package: str
    repository: str
    title: str
    body: str

    def command(self, body_file: str) -> str:
        """What a person can type to send it, once the body is in a file; "" where it is not known where to."""
        if not self.repository:
            return ""
        words = ["gh", "issue", "create", "--repo", self.repository, "--title", self.title, "--body-file", body_file]
        return shlex.join(words)


def upstream_issue(kept: KeptAnswer, repositories: Mapping[str, str], body: str) -> UpstreamIssue:
    """The issue of an answer; `repositories` maps distributions to the address that their metadata names."""
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
