"""Links come only from the metadata of a package."""

from __future__ import annotations

import pytest

from harness.model import Change
from harness.report.links import compare_link, repositories_in

SHOP = {"shop": "https://github.com/mall/shop"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Project-URL: Repository, https://github.com/mall/shop", SHOP),
        ("Project-URL: Source Code, https://github.com/mall/shop.git", SHOP),
        ("Project-URL: Homepage, https://github.com/mall/shop/", SHOP),
        ("Home-page: https://github.com/mall/shop", SHOP),
        ("Home-page: https://shop.example", {}),
        ("Project-URL: Funding, https://github.com/mall/shop", {}),
        ("Project-URL: Source, https://github.com/mall/shop/issues", {}),
        ("Summary: see https://github.com/mall/shop", {}),
    ],
)
def test_only_a_repository_in_the_metadata_is_linked(tmp_path, header, found):
    folder = tmp_path / "lib" / "python3.11" / "site-packages" / "Shop-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Shop\n{header}\n\nthe text\n", encoding="utf-8")
    assert repositories_in(tmp_path, ["shop"]) == found


def test_a_missing_environment_gives_no_links(tmp_path):
    assert repositories_in(tmp_path / "gone", ["shop"]) == {}


def test_a_link_compares_two_tags_without_local_parts():
    change = Change("shop", "1.1+cpu", "1.2")
    assert compare_link(change, SHOP) == "https://github.com/mall/shop/compare/v1.1...v1.2"
    assert compare_link(Change("shop", None, "1.2"), SHOP) == ""
    assert compare_link(Change("till", "1", "2"), SHOP) == ""
