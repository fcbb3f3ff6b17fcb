"""The index: releases in version order with dates, yanks and gaps, also offline."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime

import pytest
from wheelhouse import Wheelhouse, free_port_url

from harness.environment import Index, PipSettings
from harness.errors import NoNetwork, UnknownProject
from harness.model import Target


def index_of(tmp_path, **settings):
    (tmp_path / "pages").mkdir(exist_ok=True)
    return Index(PipSettings(**settings), tmp_path / "pages", environ={})


@pytest.fixture
def small(tmp_path):
    return Wheelhouse(tmp_path / "small")


def versions(index, name):
    return [str(release.version) for release in index.releases(name)]


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("2.9.0.dev20250801", "2025-08-01"),
        ("2.9.0.dev20250801+cpu", "2025-08-01"),
        ("1.0.post20250801", "2025-08-01"),
        ("1.17.0.dev0+git20250801.ab12cd3", "2025-08-01"),
        ("2.9.0.dev20251301", None),
        ("2.9.0.dev12345678", None),
        ("20250801", None),
        ("1.0", None),
    ],
)
def test_the_version_of_a_build_without_upload_time_names_its_day(tmp_path, small, version, day):
    small.add("p", version, uploaded=None)
    index = index_of(tmp_path, index_url=small.url)
    (release,) = index.releases("p")
    assert (f"{release.uploaded:%Y-%m-%d}" if release.uploaded else None) == day
    assert index.lacks_dates("p")


def test_releases_are_in_version_order_whatever_their_dates(tmp_path, small):
    for i, version in enumerate(["1.10", "1.9", "1.9.post1", "2.0", "2.0rc1", "2.0.dev3", "1.9.1"]):
        small.add("p", version, uploaded=f"2024-01-0{i + 1}T12:00:00Z")
    index = index_of(tmp_path, index_url=small.url)
    assert versions(index, "p") == ["1.9", "1.9.post1", "1.9.1", "1.10", "2.0.dev3", "2.0rc1", "2.0"]
    assert index.release("p", "1.9.0").uploaded == datetime(2024, 1, 2, 12, tzinfo=UTC)
    assert index.release("p", "1.9+cpu") == index.release("p", "1.9")
    assert index.release("p", "3") is None
    assert index.release("p", "newest") is None


def test_a_release_takes_the_date_of_its_first_file_and_is_yanked_if_all_are(tmp_path, small):
    small.add("p", "1.0", uploaded="2024-01-02T00:00:00Z", yanked="bad", tag="cp311-cp311-win32")
    small.add("p", "1.0", uploaded="2024-01-01T00:00:00Z", tag="py3-none-any", requires_python=">=3.8")
    small.add("p", "1.1", yanked="")
    small.add("p", "1.2", yanked="broken")
    index = index_of(tmp_path, index_url=small.url)
    first, second, third = index.releases("P")
    assert (first.uploaded, first.yanked, len(first.wheels)) == (datetime(2024, 1, 1, tzinfo=UTC), None, 2)
    assert first.requires_python == ">=3.8"
    assert (second.yanked, third.yanked) == ("", "broken")


def test_source_releases_are_recognised(tmp_path, small):
    small.add_sdist("p", "1.0")
    (release,) = index_of(tmp_path, index_url=small.url).releases("p")
    assert (release.has_sdist, release.wheels) == (True, ())


def test_a_json_index_also_lists_releases_without_files(tmp_path, small):
    page = small.root / "simple" / "p" / "index.json"
    page.parent.mkdir(parents=True)
    file = {
        "filename": "p-1.0-py3-none-any.whl",
        "url": "../../files/p-1.0-py3-none-any.whl",
        "hashes": {},
        "size": 17,
        "upload-time": "2024-01-01T00:00:00Z",
        "yanked": False,
    }
    record = {"meta": {"api-version": "1.1"}, "name": "p", "versions": ["1.0", "1.1"], "files": [file]}
    page.write_text(json.dumps(record))
    with small.served() as url:
        first, second = index_of(tmp_path, index_url=url).releases("p")
    assert (first.size, first.wheels) == (17, ("p-1.0-py3-none-any.whl",))
    assert (second.wheels, second.has_sdist, second.yanked) == ((), False, None)
    assert second.left_out_because(Target("3.11.7", frozenset())) == "no files on the index"


def test_all_configured_indexes_and_folders_are_read(tmp_path, small):
    other = Wheelhouse(tmp_path / "other")
    small.add("p", "1.0")
    other.add("p", "1.1")
    small.add_link("p", "1.2")
    small.add_link("p", "1.0+local")
    index = index_of(tmp_path, index_url=small.url, extra_index_urls=(other.url,), find_links=(str(small.links),))
    assert versions(index, "p") == ["1.0", "1.1", "1.2"]
    assert index.projects_without_dates() == {"p"}
    assert index.release("p", "1.2").uploaded is None
    assert versions(index_of(tmp_path, no_index=True, find_links=(str(small.links),)), "p") == ["1.0", "1.2"]


def test_variables_of_uv_override_those_of_pip(tmp_path, small):
    small.add("p", "1.0")
    settings = PipSettings(index_url=free_port_url())
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        assert versions(Index(settings, pages, environ={name: small.url}), "p") == ["1.0"]


def test_an_unknown_project_is_reported(tmp_path, small):
    with pytest.raises(UnknownProject, match="no project named 'Q_q'"):
        index_of(tmp_path, index_url=small.url).releases("Q_q")
    with small.served() as url, pytest.raises(UnknownProject):
        index_of(tmp_path, index_url=url).releases("q")


def test_a_page_is_sent_again_only_if_it_changed_and_is_read_from_the_cache_offline(tmp_path, small):
    small.add("p", "1.0")
    page = small.root / "simple" / "p" / "index.html"
    hour_ago = time.time() - 3600
    os.utime(page, (hour_ago, hour_ago))
    with small.served() as url:
        first = index_of(tmp_path, index_url=url)
        assert versions(first, "p") == ["1.0"]
        page.write_text(page.read_text().replace("1.0", "0.1"))
        os.utime(page, (hour_ago, hour_ago))
        assert versions(index_of(tmp_path, index_url=url), "p") == ["1.0"]  # the server said that it did not change
        state = first.state(["p"])
        assert index_of(tmp_path, index_url=url).state(["p"]) == state
        small.add("p", "1.1")
        assert versions(index_of(tmp_path, index_url=url), "p") == ["1.0", "1.1"]
        changed = index_of(tmp_path, index_url=url).state(["p"])
        assert changed != state
    assert index_of(tmp_path, index_url=url).state(["p"]) == changed
    assert versions(index_of(tmp_path, index_url=url), "p") == ["1.0", "1.1"]
    (cached,) = (tmp_path / "pages").iterdir()
    cached.write_text("{")
    with pytest.raises(NoNetwork):
        index_of(tmp_path, index_url=url).releases("p")
