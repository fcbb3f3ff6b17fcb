"""Wheels are fetched once, as the lock names them."""

from __future__ import annotations

import hashlib

import pytest
from wheelhouse import Wheelhouse, free_port_url

from harness.environment import PipSettings, Uv
from harness.errors import NoNetwork
from harness.model import Pin
from harness.probing.bundle import Wheels
from harness.probing.prober import same_version


def wheels(folder, interpreter, **settings):
    (folder / "wheels").mkdir(exist_ok=True)
    uv = Uv(PipSettings(**settings), extra_environment={"UV_HTTP_RETRIES": "0"})
    return Wheels(folder / "wheels", uv, interpreter)


@pytest.fixture
def small(tmp_path):
    house = Wheelhouse(tmp_path / "small")
    house.add("tiny", "1.0", files={"tiny.py": "NUMBER = 1\n"})
    house.add_link("linked", "2.0", files={"linked.py": "NUMBER = 2\n"})
    return house


def test_a_wheel_is_fetched_once_and_checked_with_or_without_hashes(tmp_path, small, interpreter):
    of_both = wheels(tmp_path, interpreter, index_url=small.url, find_links=(str(small.links),))
    (first,) = of_both.fetch([Pin("linked", "2.0")])
    of_all = of_both.fetch(
        [Pin("tiny", "1.0", sha256="0" * 64, siblings=(sha_of(small, "tiny-1.0"),)), Pin("linked", "2.0")]
    )
    assert [(wheel.name, wheel.wheel) for wheel in of_all] == [
        ("tiny", "tiny-1.0-py3-none-any.whl"),
        ("linked", "linked-2.0-py3-none-any.whl"),
    ]
    assert of_all[1] == first
    cut_off = wheels(tmp_path, interpreter, no_index=True)
    assert cut_off.fetch([Pin("tiny", "1.0", of_all[0].wheel, of_all[0].sha256)]) == of_all[:1]
    assert cut_off.size((*of_all, first)) == sum(path.stat().st_size for path in of_both.folder.iterdir())


def sha_of(house, name):
    return hashlib.sha256(next((house.root / "files").glob(f"{name}-*.whl")).read_bytes()).hexdigest()


def test_a_wheel_with_the_wrong_content_is_never_used(tmp_path, small, interpreter):
    of_index = wheels(tmp_path, interpreter, index_url=small.url)
    answer = of_index.fetch([Pin("tiny", "1.0", sha256="0" * 64)])
    assert isinstance(answer, str)
    assert answer
    assert not list(of_index.folder.iterdir())


def test_a_damaged_wheel_is_fetched_again(tmp_path, small, interpreter):
    of_index = wheels(tmp_path, interpreter, index_url=small.url)
    digest = sha_of(small, "tiny-1.0")
    (of_index.folder / "tiny-1.0-py3-none-any.whl").write_bytes(b"half of it")
    (wheel,) = of_index.fetch([Pin("tiny", "1.0", "tiny-1.0-py3-none-any.whl", digest)])
    assert wheel.sha256 == digest


def test_an_unreachable_index_is_not_blamed_on_the_release(tmp_path, interpreter):
    with pytest.raises(NoNetwork):
        wheels(tmp_path, interpreter, index_url=free_port_url()).fetch([Pin("tiny", "1.0")])


def test_versions_are_compared_as_versions_with_their_local_labels():
    assert same_version("25.1", "25.1.0")
    assert same_version("2004d", "2004d")
    assert not same_version("2.13.0+cu130", "2.13.0")
    assert not same_version("", "1.0")
