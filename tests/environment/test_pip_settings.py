"""The index settings of pip are used, from variables and from its files."""

from __future__ import annotations

import os
from pathlib import Path

from support import make_parts
from wheelhouse import Wheelhouse

from harness.environment import PipSettings, read_pip_settings
from harness.model import Combination


def test_variables_win_over_files(tmp_path):
    conf = tmp_path / "pip.conf"
    conf.write_text(
        "[global]\nindex-url = file:///a\nextra-index-url =\n    file:///b\n    file:///c\nno-index = yes\n"
    )
    read = read_pip_settings({"PIP_CONFIG_FILE": str(conf), "HOME": str(tmp_path)})
    assert (read.index_url, read.extra_index_urls, read.no_index) == ("file:///a", ("file:///b", "file:///c"), True)
    read = read_pip_settings({"PIP_CONFIG_FILE": str(conf), "PIP_INDEX_URL": "file:///z", "HOME": str(tmp_path)})
    assert (read.index_url, read.extra_index_urls) == ("file:///z", ("file:///b", "file:///c"))


def test_the_configuration_file_of_the_user_is_read(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text("[global]\nextra-index-url = file:///own\n")
    assert "file:///own" in read_pip_settings({"XDG_CONFIG_HOME": str(tmp_path)}).extra_index_urls


def test_files_that_pip_ignores_and_broken_ones_are_ignored(tmp_path):
    assert read_pip_settings({"PIP_CONFIG_FILE": os.devnull}) == PipSettings()
    conf = tmp_path / "pip.conf"
    conf.write_text("index-url without a section")
    environ = {"PIP_CONFIG_FILE": str(conf), "PIP_FIND_LINKS": "/x ~/y file:///z"}
    links = read_pip_settings(environ).find_links
    assert (links[0], links[2]) == ("/x", "file:///z")
    assert Path(links[1]).is_absolute()


def test_uv_gets_the_settings_of_pip_unless_it_has_its_own(tmp_path):
    settings = PipSettings("file:///a", ("file:///b",), ("/links",), no_index=True)
    told = settings.as_uv_environment({})
    assert (told["UV_DEFAULT_INDEX"], told["UV_INDEX"], told["UV_FIND_LINKS"]) == ("file:///a", "file:///b", "/links")
    assert told["UV_NO_INDEX"] == "1"
    told = settings.as_uv_environment({"UV_INDEX_URL": "x", "UV_INDEX": "y", "UV_FIND_LINKS": "/mine"})
    assert told.keys() == {"UV_FIND_LINKS", "UV_NO_INDEX"}
    assert told["UV_FIND_LINKS"] == "/mine,/links"


def test_uv_resolves_with_the_settings_of_pip(tmp_path, uv_cache, interpreter):
    one, two = Wheelhouse(tmp_path / "one"), Wheelhouse(tmp_path / "two")
    one.add("p", "1.0")
    two.add("p", "1.1")
    one.add_link("q", "3.0")
    settings = PipSettings(index_url=one.url, extra_index_urls=(two.url,), find_links=(str(one.links),))
    resolver = make_parts(tmp_path, settings, uv_cache, interpreter).resolver
    lock = resolver.resolve(Combination(interpreter.version, ("p", "q"))).lock
    assert {pin.name: pin.version for pin in lock.pins} == {"p": "1.1", "q": "3.0"}


def test_the_command_reads_variables_and_files_of_pip(harness, write_repro, house):
    write_repro("brittle")
    conf = harness.folder / "pip.conf"
    conf.write_text(f"[global]\nindex-url = {house.url}\n")
    for told in ({"PIP_INDEX_URL": house.url}, {"PIP_CONFIG_FILE": str(conf)}):
        ended = harness("probe", "brittle_step", "--with", "brittle==1.2", **{"UV_DEFAULT_INDEX": None, **told})
        assert ended.code == 0, ended.stderr
