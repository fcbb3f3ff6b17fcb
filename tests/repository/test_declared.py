"""The dependencies declared by a commit are parsed, and nothing is executed."""

from __future__ import annotations

import pytest

from harness.repository.declared import declared_requirements, local_sources

SETUP = "from setuptools import setup\nNEEDS = ['numpy', 'torch>=2']\nsetup(name='x', install_requires={0})\n"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"pyproject.toml": '[project]\nname = "x"\ndependencies = ["numpy>=1"]\n'}, ("numpy>=1",)),
        ({"pyproject.toml": '[project]\nname = "x"\n'}, ()),
        ({"setup.cfg": "[options]\ninstall_requires =\n    numpy\n    # no\n    torch>=2\n"}, ("numpy", "torch>=2")),
        ({"setup.py": SETUP.format("['numpy', 'torch>=2']")}, ("numpy", "torch>=2")),
        ({"setup.py": SETUP.format("NEEDS")}, ("numpy", "torch>=2")),
        ({"setup.py": SETUP.format("NEEDS + ['more']")}, None),
        ({"setup.py": "needs = ['numpy']\nneeds += ['more']\nsetup(install_requires=needs)\n"}, None),
        ({"setup.py": SETUP.format("read('requirements.txt')")}, None),
        ({"setup.py": "setup(install_requires=['not a requirement!'])"}, None),
        ({"setup.py": "this is no Python ("}, None),
        ({"pyproject.toml": "[project"}, None),
        ({"pyproject.toml": "[tool.x]\n", "setup.py": SETUP.format("NEEDS")}, ("numpy", "torch>=2")),
        ({"pyproject.toml": '[project]\nname = "x"\ndynamic = ["dependencies"]\n', "setup.py": SETUP.format("NEEDS")},
         ("numpy", "torch>=2")),
        ({}, None),
    ],
)  # fmt: skip
def test_requirements_are_read_from_any_metadata(texts: dict[str, str], found: tuple[str, ...] | None) -> None:
    assert declared_requirements(texts) == found


def test_a_setup_file_is_never_run(tmp_path) -> None:
    mark = tmp_path / "ran"
    text = f"open({str(mark)!r}, 'w')\nfrom setuptools import setup\nsetup(install_requires=['numpy'])\n"
    assert declared_requirements({"setup.py": text}) == ("numpy",)
    assert not mark.exists()


def test_folders_in_place_of_releases_are_those_of_the_repository(tmp_path):
    """Of uv, also for some machines only, of its workspace, and of Poetry."""
    workspace = "[tool.uv.workspace]\nmembers = ['packages/*']\n[tool.uv.sources]\nb = { workspace = true }\n"
    of_uv = "[tool.uv.sources]\nc = [{ path = '../../c', marker = 'x' }]\nout = { path = '../../../out' }\n"
    of_uv += "d = { git = 'https://example.org/d' }\n"
    of_poetry = "[tool.poetry.group.dev.dependencies]\ne-e = { path = '../../e', develop = true }\npython = '^3.11'\n"
    texts = {
        "top/pyproject.toml": workspace,
        "top/packages/a/pyproject.toml": f"[project]\nname = 'a'\n{of_uv}{of_poetry}",
        "top/packages/b/pyproject.toml": "[project]\nname = 'B'\n",
        **dict.fromkeys(("top/c/setup.py", "top/e/setup.py", "out/setup.py"), ""),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    top = tmp_path / "top"
    assert local_sources(top / "packages" / "a") == {"b": top / "packages" / "b", "c": top / "c", "e-e": top / "e"}
