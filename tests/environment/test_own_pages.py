"""The builds of an index of its own: links as servers write them, and wheels under another version."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest
from uv import find_uv_bin
from wheelhouse import Wheel

from harness.environment.own_pages import links_of, with_version


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ('<a href="../torch-2.0%2Bcpu-py3-none-any.whl">FILE</a>', "whl/cpu/torch-2.0%2Bcpu-py3-none-any.whl"),
        ("<A class='x' HREF='/whl/a.whl#sha256=12'\n data-yanked=''>\n FILE </A><br>", "whl/a.whl#sha256=12"),
        ("<a href=a&amp;b.whl>FILE</a>", "whl/cpu/torch/a&b.whl"),
    ],
)
def test_links_are_read_as_browsers_read_them(tmp_path, text, address):
    page = tmp_path / "whl" / "cpu" / "torch" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(text.replace("FILE", "torch-2.0+cpu-py3-none-any.whl"))
    (link,) = links_of(page.as_uri())
    root = tmp_path.as_uri() if not address.startswith("whl/a") else "file://"
    assert (link.address, str(link.version)) == (f"{root}/{address}", "2.0+cpu")
    assert f'href="{root}/' in link.tag()


def test_a_wheel_under_another_version_is_installed_as_that_version(tmp_path):
    files = {"Tool-1.0.data/scripts/tool": "#!python\nprint('a script')\n", "tool.py": "x = 1\n"}
    wheel = Wheel("Tool", "1.0", files).write(tmp_path)
    renamed = with_version(wheel, "1.0.post1+g1a2b3c4", tmp_path / "renamed")
    assert renamed.name == "Tool-1.0.post1+g1a2b3c4-py3-none-any.whl"
    assert all(not name.startswith("Tool-1.0.d") for name in zipfile.ZipFile(renamed).namelist())
    words = ("pip", "install", "--quiet", "--no-index", "--target", tmp_path / "site", renamed)
    subprocess.run([find_uv_bin(), *words, "--python", sys.executable], check=True)
    assert (tmp_path / "site" / "Tool-1.0.post1+g1a2b3c4.dist-info").is_dir()
    assert (tmp_path / "site" / "bin" / "tool").is_file()
