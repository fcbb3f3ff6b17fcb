"""Builds of one version that differ only in the local part, such as numpy's nightly 2.4.0.dev0+git20250801.ab12cd3.

Everywhere else the local part says for which device a build is, and makes no other release. So each of these becomes a
release: its wheel goes to an index in the cache under a version with the number in its local part, 2.4.0.dev20250801.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from attrs import evolve
from packaging.version import Version

from harness.atomic import sha256_of
from harness.environment.index import day_in
from harness.environment.own_pages import Link, links_of, with_version, written
from harness.environment.pages import download, read_page
from harness.errors import NoNetwork
from harness.events import Note
from harness.model import Release, normalized_name, parsed_version
from harness.model.text import counted
from harness.run.locks import made_once
from harness.session import local_session

if TYPE_CHECKING:
    from pathlib import Path

    from harness.events import Reporter
    from harness.question.request import Request
    from harness.session import Session
    from harness.settings import Settings

_NUMBER = re.compile(r"(?:^|\.)(?:git)?(\d+)(?=\.|$)")


def at_local_builds(request: Request, settings: Settings, reporter: Reporter) -> tuple[Request, Settings]:
    """Return the question between such builds, with the settings for their index; any other unchanged.

    Raises `UserMistake`, `NoNetwork` and `IndexFault`.
    """
    name, indexes = normalized_name(request.subject or ""), dict(settings.own_indexes)
    url = indexes.get(name, "")
    if not url or not _differ_in_local_part(url, name):
        return request, settings
    indexes[name] = _renamed(local_session(settings, reporter), name, url)
    good, bad = (_release(text) if text else None for text in (request.good, request.bad))
    index = tuple(f"{name}={url}" for name, url in indexes.items())
    return evolve(request, good=good, bad=bad), evolve(settings, index=index)


def _release(text: str) -> str:
    """The release that an end names, which may be the version of a build."""
    numbered = _numbered(version) if (version := parsed_version(text)) is not None else None
    return numbered.public if numbered is not None else text


def _differ_in_local_part(url: str, name: str) -> bool:
    try:
        releases = read_page(f"{url.rstrip('/')}/", name).releases
    except NoNetwork:  # what follows says so, if it can't be answered without it
        return False
    versions = {release.version for release in releases if _numbered(release.version) is not None}
    return any(count > 1 for count in Counter(version.public for version in versions).values())


def _numbered(version: Version) -> Version | None:
    """The version with the number in its local part, a day or a count, in its public one; None if it has no number."""
    number = _NUMBER.search(version.local or "")
    if number is None:
        return None
    base, dev, _ = version.public.partition(".dev")
    return Version(f"{base}{dev or '.post'}{int(number[1])}+{version.local}")


def _renamed(session: Session, name: str, url: str) -> str:
    """Download what this Python can install; returns the address of an index of these builds under new versions."""
    target, folder = session.interpreter.target, session.workspace.clones / "builds" / "renamed"
    builds: dict[Link, Version] = {}
    for link in links_of(f"{url.rstrip('/')}/{name}/"):
        numbered = _numbered(link.version) if link.version is not None else None
        if numbered is not None and Release(name, numbered, wheels=(link.file,)).has_wheel_for(target):
            builds[link] = numbered
    session.reporter.report(Note(f"downloading {counted(len(builds), 'build')} of {name}, to compare them"))
    tags = []
    for link, version in builds.items():
        place = folder / hashlib.sha256(link.address.encode()).hexdigest()[:20]
        made_once(place, partial(_download, session, link, version))
        (renamed,) = place.glob("*.whl")
        moment = day_in(version)
        tags.append(Link(renamed.name, f"{renamed.as_uri()}#sha256={sha256_of(renamed)}").tag(moment))
    return written(session.workspace, f"{url} renamed {session.interpreter.cache_tag}", name, tags)


def _download(session: Session, link: Link, version: Version, folder: Path) -> None:
    """Write the wheel of a link under another version to a folder."""
    address, fragment = urldefrag(link.address)
    wheel = folder / link.file
    download(session.local.builder.uv.settings, address, wheel, fragment.removeprefix("sha256="))
    with_version(wheel, str(version), folder)
    wheel.unlink()
