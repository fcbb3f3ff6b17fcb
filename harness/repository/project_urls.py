"""Reads a package's repository from its metadata; no URL is guessed. Pure."""

from __future__ import annotations

import email.parser
import re

_HOSTS = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org")
_REPOSITORY = re.compile(
    rf"^https?://(?:www\.)?({'|'.join(map(re.escape, _HOSTS))})/([\w.-]+)/([\w.-]+?)"
    r"(?:\.git)?(?:/(?:-/)?tree/[^/]+|/)?$"
)
# Labels of a project's source (packaging specifications, "Well-known project URLs").
_SOURCE_LABELS = ("source", "repository", "sourcecode", "github", "code", "homepage")


def repository_url(metadata: str) -> str | None:
    """Return the repository's URL in the text of a METADATA file, or None if it has none on a known host."""
    headers = email.parser.HeaderParser().parsestr(metadata)
    told = {}
    for value in headers.get_all("Project-URL", []):
        label, _, url = str(value).partition(",")
        told[re.sub(r"[\W_]", "", label.lower())] = url.strip()
    if home_page := headers.get("Home-page"):
        told.setdefault("homepage", str(home_page).strip())
    for label in _SOURCE_LABELS:
        if match := _REPOSITORY.match(told.get(label, "")):
            return f"https://{match[1]}/{match[2]}/{match[3]}"
    return None


def known_address(url: str) -> str:
    """Return the web page of a repository from its clone URL, "" if the host is not known."""
    match = _REPOSITORY.match(url.removeprefix("git+"))
    return f"https://{match[1]}/{match[2]}/{match[3]}" if match else ""


def pull_request_url(repository: str, number: int | None) -> str:
    """The URL of a pull request, "" if the repository or the number is not known."""
    if not repository or number is None:
        return ""
    host = repository.split("/")[2]
    middle = {"gitlab.com": "/-/merge_requests/", "bitbucket.org": "/pull-requests/", "codeberg.org": "/pulls/"}
    return f"{repository}{middle.get(host, '/pull/')}{number}"


def commit_url(repository: str, sha: str) -> str:
    """The URL of a commit, "" if the repository is not known."""
    if not repository:
        return ""
    middle = {"gitlab.com": "/-/commit/", "bitbucket.org": "/commits/"}.get(repository.split("/")[2], "/commit/")
    return f"{repository}{middle}{sha}"
