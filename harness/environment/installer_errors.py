"""Tells lasting errors of an installer, about releases, from temporary ones, of the index or the network.

Only lasting errors may be stored. An error caused by a login page or a broken download must not come back after the
index works again. If in doubt, an error counts as temporary and is not stored.

The patterns match uv 0.9 to 0.13, as printed for misbehaving servers (`tests/environment`).
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import urlsplit

from harness.errors import IndexFault, NoNetwork, NoSpace
from harness.model import normalized_name

_AGAIN = "run the same command again when the index answers"
_LOG_IN = "does this network need a login? log in, then run the same command again"
_ACCESS = "check the user name, password or token in the index URL, netrc or the keyring"

_SPACE = re.compile(r"No space left on device|os error 28|Disk quota exceeded", re.IGNORECASE)
_REFUSED = re.compile(r"\(?(401|403|407)(?: Unauthorized| Forbidden| Proxy Authentication Required)\b", re.IGNORECASE)
# pip: "ERROR: 403 Client Error: ... for url". uv: "HTTP status server error (503 Service Unavailable)".
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3})|\b(4\d\d|5\d\d) (?:Client|Server) Error")
_GONE = ("404", "410", "451")  # the index lists a file that it does not have: an error of one release
_NETWORK = re.compile(
    r"error sending request|Failed to fetch|dns error|tcp connect error|Network is unreachable|"
    r"Connection refused|operation timed out|Network connectivity is disabled|request or response body error|"
    r"error decoding response body|connection closed before message completed|"
    r"too many redirects|invalid peer certificate|"
    r"Failed to establish a new connection|Read timed out|ConnectionResetError|Name or service not known",
    re.IGNORECASE,
)
_NO_INDEX_PAGE = re.compile(r"Received some unexpected (?:JSON|HTML)|Unsupported `Content-Type`", re.IGNORECASE)
# The first bytes of the supposed wheel, as a number. Those of a web page begin with "<".
_HEADER = re.compile(r"unexpected header \(actual: 0x([0-9a-f]{1,8})\b", re.IGNORECASE)

# Repetitions are bounded, because the message may quote an untrusted page.
_NAME = r"(?<![A-Za-z0-9._-])`?(?P<{0}>[A-Za-z0-9][A-Za-z0-9._-]{{0,200}})"
_DOUBTED = [
    re.compile(pattern)
    for pattern in (
        _NAME.format("p") + r" was not found in the (?:package registry|cache)",
        r"there (?:is|are) no versions? of " + _NAME.format("p"),
        _NAME.format("p") + r"[^\s,]{0,200} has an invalid package format",
        r"[Oo]nly " + _NAME.format("p") + r"[^\s,]{0,200} (?:is|are) available",
        r"[Oo]nly the following versions of " + _NAME.format("p"),
        r"Failed to (?:download|fetch|build|read)[^\n`]{0,200}`" + _NAME.format("p"),
        r"Failed to fetch: \S{0,500}/" + _NAME.format("p") + r"-\d[^/\s]{0,300}\.(?:whl|tar\.gz|zip)",
    )
]
# What the resolver concludes about releases that it read, and says about those that it could not read.
_CONCLUDED = re.compile(r"we can conclude|which are incompatible|Failed to build `")
_UNSEEN = re.compile(
    r"was not found in|there (?:is|are) no versions? of|invalid package format|could not be (?:read|queried|found)|"
    r"Failed to (?:read|fetch|download|extract)|metadata (?:was|could|is)|unexpected|mismatch|offline|exclude-newer",
    re.IGNORECASE,
)


def is_lasting(words: str) -> bool:
    """Whether an installer's error is about the releases themselves, so that a second attempt fails in the same way."""
    return _CONCLUDED.search(words) is not None and _UNSEEN.search(words) is None


def doubted_projects(words: str) -> tuple[str, ...]:
    """The projects for which the installer found too little; their pages may be wrong or outdated."""
    found = (match["p"] for pattern in _DOUBTED for match in pattern.finditer(words))
    return tuple(dict.fromkeys(normalized_name(re.split(r"[=<>!~]", name)[0].rstrip(".-_")) for name in found))


def raise_surroundings(words: str) -> None:
    """Raise `NoSpace`, `NoNetwork` or `IndexFault` if an installer's error means a full disk or a failing index."""
    if _SPACE.search(words):
        raise NoSpace("no space left on the disk while installing", hint="harness clean frees old environments")
    address = re.search(r"https?://[^\s`'\")]{1,2000}", words)
    host = host_of(address.group()) if address else ""
    if refused := _REFUSED.search(words):
        raise access_refused(host, int(refused.group(1)))
    if status := _STATUS.search(words):
        code = next(filter(None, status.groups()))
        if code not in _GONE:
            raise failing_status(host, int(code))
        return
    if _NO_INDEX_PAGE.search(words):
        raise no_list(host, "what it sends is no page of a package index")
    if (header := _HEADER.search(words)) and int(header.group(1), 16).to_bytes(4, "little").startswith(b"<"):
        raise no_list(host, "it sends a web page in place of a wheel")
    if _NETWORK.search(words):
        raise unreachable(host)


def host_of(url: str) -> str:
    """The host of an address, without user and password; "" if there is none."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return ""


def unreachable(host: str, why: str = "") -> NoNetwork:
    """The error for a server that does not answer."""
    told = ", ".join(filter(None, (host, why)))
    return NoNetwork(f"the package index can't be reached{f' ({told})' if told else ''}", hint=_AGAIN)


def access_refused(host: str, status: int) -> IndexFault:
    """The error for a server that requires a login."""
    return IndexFault(f"the package index refuses access: {host or 'it'} answers {_said(status)}", hint=_ACCESS)


def failing_status(host: str, status: int) -> IndexFault:
    """The error for a server that fails, or asks to try later."""
    return IndexFault(f"the package index fails: {host or 'it'} answers {_said(status)}", hint=_AGAIN)


def no_list(host: str, why: str, hint: str = _LOG_IN) -> IndexFault:
    """The error for an answer that is not an index page, or can't be read."""
    return IndexFault(f"the package index gives no list of releases ({host}): {why}", hint=hint)


def _said(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
