"""Lock files of every kind give the same pins."""

from __future__ import annotations

import json
import sys
import venv

import pytest

from harness.environment.interpreter import installed_in
from harness.errors import UserMistake
from harness.model.requirements import exact_version
from harness.question.lockfiles import installed_pins, read_pins

PYTHON = "3.11.7"


def read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_pins(path, PYTHON)


def test_entries_that_no_index_has_are_reported(tmp_path):
    text = """
six==1.16.0
-e git+https://example.org/a/tool@main#egg=tool
wheel-of-mine @ file:///home/me/wheel_of_mine.whl
-e .
torch==2.1.0+cu118 --hash=sha256:0000000000000000000000000000000000000000000000000000000000000000
old==1.0; python_version < "3.8"
"""
    pins = read(tmp_path, "freeze.txt", text)
    assert pins.requirements == ("six==1.16.0", "tool", "wheel-of-mine", "torch==2.1.0+cu118")
    assert len(pins.notes) == 3
    assert not pins.is_exact


def test_nested_requirement_files_are_read(tmp_path):
    (tmp_path / "more.txt").write_text("six==1.16.0\n")
    assert read(tmp_path, "all.txt", "-r more.txt\nidna==3.4\n").requirements == ("six==1.16.0", "idna==3.4")


def test_arbitrary_equality_pins_a_package(tmp_path):
    lines = ("six===1.16.0", "torch===2.1.0+cu118", "tool[full]===1.0")
    pins = read(tmp_path, "freeze.txt", "\n".join(lines))
    assert pins.requirements == lines
    assert pins.is_exact
    conda = "dependencies:\n  - python=3.10\n  - pip:\n" + "".join(f"      - {line}\n" for line in lines)
    assert read(tmp_path, "environment.yml", conda).requirements == lines
    assert [exact_version(line) for line in lines] == [("six", "1.16.0"), ("torch", "2.1.0+cu118"), ("tool", "1.0")]
    assert not read(tmp_path, "loose.txt", "six===1.16.0\nidna>=3\n").is_exact


UV = """
version = 1
[[package]]
name = "mine"
version = "1"
source = { editable = "." }
dependencies = [
    { name = "a" },
    { name = "windows-only", marker = "sys_platform == 'win32'" },
]
[package.dev-dependencies]
dev = [{ name = "tool" }]
[[package]]
name = "a"
version = "1.0"
source = { registry = "https://example.org/simple" }
dependencies = [{ name = "forked" }]
[[package]]
name = "windows-only"
version = "1.0"
source = { registry = "https://example.org/simple" }
[[package]]
name = "tool"
version = "3.0"
source = { git = "https://example.org/tool?rev=1#abc" }
[[package]]
name = "forked"
version = "1.0"
resolution-markers = ["python_full_version < '3.8'"]
source = { registry = "https://example.org/simple" }
[[package]]
name = "forked"
version = "2.0"
resolution-markers = ["python_full_version >= '3.8'"]
source = { registry = "https://example.org/simple" }
"""


def test_markers_select_the_entries_of_a_lock(tmp_path):
    pins = read(tmp_path, "uv.lock", UV)
    assert sorted(pins.requirements) == ["a==1.0", "forked==2.0", "tool==3.0"]
    assert [told.partition(" ")[0] for told in pins.notes] == ["tool"]


def test_poetry_and_pdm(tmp_path):
    poetry = """
[[package]]
name = "a"
version = "1.0"
[[package]]
name = "other-platform"
version = "1.0"
markers = "sys_platform == 'win32'"
[metadata]
lock-version = "2.1"
"""
    pdm = """
[metadata]
lock_version = "4.5.0"
[[package]]
name = "a"
version = "1.0"
[[package]]
name = "b"
version = "2.0"
git = "https://example.org/b"
"""
    assert read(tmp_path, "poetry.lock", poetry).requirements == ("a==1.0",)
    pins = read(tmp_path, "pdm.lock", pdm)
    assert pins.requirements == ("a==1.0", "b==2.0")
    assert len(pins.notes) == 1


PYLOCK = """
lock-version = "1.0"
[[packages]]
name = "a"
version = "1.0"
index = "https://example.org/simple"
[[packages]]
name = "windows-only"
version = "1.0"
marker = "sys_platform == 'win32'"
[[packages]]
name = "tool"
version = "3.0"
vcs = { type = "git", url = "https://example.org/tool", commit-id = "abc" }
[[packages]]
name = "zipped"
version = "4.0"
archive = { url = "https://example.org/zipped.zip" }
[[packages]]
name = "beside"
directory = { path = "../beside", editable = true }
[[packages]]
name = "own"
directory = { path = ".", editable = true }
"""


def test_a_pylock(tmp_path):
    pins = read(tmp_path, "pylock.dev.toml", PYLOCK)
    assert pins.requirements == ("a==1.0", "tool==3.0", "zipped==4.0", "beside")
    assert [told.partition(" ")[0] for told in pins.notes] == ["tool", "zipped", "beside"]


def test_a_conda_environment_has_a_pip_part_and_packages_that_pypi_may_have(tmp_path):
    text = "dependencies:\n  - python=3.10\n  - mkl=2024\n  - pytorch>=2\n  - pip:\n      - six==1.16.0\n"
    pins = read(tmp_path, "environment.yml", text)
    assert (pins.requirements, pins.python) == (("six==1.16.0",), "3.10")
    assert [package.requirement for package in pins.conda] == ["mkl==2024.*", "torch>=2"]


EXPORT = """
name: mine
channels: [conda-forge]
dependencies:
  - python=3.11.7=hab00c5b_1_cpython
  - conda-forge::numpy=1.26.4=py311h64a7726_0
  - libblas=3.9.0=20_linux64_openblas
  - openssl=3.2.0=hd590300_1
  - tzdata=2023c=h71feb2d_0
  - pip=24.0=pyhd8ed1ab_0
  - pip:
      - six==1.16.0
"""
CONDA_LOCK = """
version: 1
metadata: {platforms: [linux-64]}
package:
""" + "".join(
    f"""
- {{name: python, version: 3.11.7, manager: conda, platform: {platform}, dependencies: {{}}}}
- {{name: numpy, version: 1.26.4, manager: conda, platform: {platform}, dependencies: {{python: '>=3.11'}}}}
- {{name: libblas, version: 3.9.0, manager: conda, platform: {platform}, dependencies: {{libgcc: ''}}}}
- {{name: openssl, version: 3.2.0, manager: conda, platform: {platform}, dependencies: {{}}}}
- {{name: tzdata, version: 2023c, manager: conda, platform: {platform}, dependencies: {{}}}}
- {{name: six, version: 1.16.0, manager: pip, platform: {platform}, dependencies: {{}}, url: 'https://host/six.whl'}}
"""
    for platform in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64")
)
PIXI = """
version: 6
environments:
  docs:
    packages: {}
  default:
    packages:
      linux-64: &rows
      - conda: https://conda.example/linux-64/python-3.11.7-hab00c5b_1_cpython.conda
      - conda: https://conda.example/linux-64/numpy-base-1.26.4-py311h64a7726_0.conda
      - conda: https://conda.example/linux-64/libblas-3.9.0-20_linux64_openblas.conda
      - conda: https://conda.example/linux-64/openssl-3.2.0-hd590300_1.tar.bz2
      - conda: https://conda.example/noarch/tzdata-2023c-h71feb2d_0.conda
      - pypi: https://files.example/six-1.16.0-py2.py3-none-any.whl
      - pypi: ./
      linux-aarch64: *rows
      osx-64: *rows
      osx-arm64: *rows
packages:
- conda: https://conda.example/linux-64/numpy-base-1.26.4-py311h64a7726_0.conda
  depends: [python]
  purls:
  - pkg:pypi/numpy?source=hash-mapping
- conda: https://conda.example/linux-64/libblas-3.9.0-20_linux64_openblas.conda
  depends:
  - libopenblas >=0.3.25,<1.0a0
  purls: []
- conda: https://conda.example/linux-64/openssl-3.2.0-hd590300_1.tar.bz2
- conda: https://conda.example/noarch/tzdata-2023c-h71feb2d_0.conda
  depends:
  - python
- pypi: https://files.example/six-1.16.0-py2.py3-none-any.whl
  name: six
  version: 1.16.0
- pypi: ./
  name: mine
  version: 0.1.0
  editable: true
"""


ROWS, PACKAGES = PIXI.split("packages:\n- ")
BY_KIND = PACKAGES.replace("conda: https", "kind: conda\n  url: https").replace("pypi: ./", "kind: pypi\n  path: ./")
BY_KIND = BY_KIND.replace("pypi: https", "kind: pypi\n  url: https")  # as up to version 5 of the format


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", EXPORT),
        ("conda-lock.yml", CONDA_LOCK),
        ("pixi.lock", PIXI),
        ("pixi.lock", f"{ROWS}packages:\n- {BY_KIND}"),
    ],
    ids=["export", "conda-lock", "pixi", "older pixi"],
)
def test_the_locks_of_conda_say_what_pypi_may_have(tmp_path, name, text):
    pins = read(tmp_path, name, text)
    assert (pins.requirements, pins.python) == (("six==1.16.0",), "3.11.7")
    conda = {package.name.removesuffix("-base"): package.requirement for package in pins.conda}
    assert conda.pop("numpy") == "numpy==1.26.4"
    # Of an export nobody knows what is Python; the index decides.
    assert conda.pop("libblas") in ("", "libblas==3.9.0")
    assert conda.pop("openssl") in ("", "openssl==3.2.0")
    assert conda.pop("tzdata") in ("", "tzdata==2023c")
    assert not conda


def test_a_lock_without_this_platform_is_refused(tmp_path):
    for name, text in (("pixi.lock", PIXI), ("conda-lock.yml", CONDA_LOCK)):
        for platform in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64"):
            text = text.replace(platform, "win-64")
        with pytest.raises(UserMistake, match=r"has no packages for .*: it has those of win-64"):
            read(tmp_path, name, text)


PIPFILE = {
    "_meta": {"requires": {"python_version": "3.9"}},
    "default": {
        "A": {"version": "==1.0", "hashes": ["sha256:00"]},
        "other-platform": {"version": "==1.0", "markers": "sys_platform == 'win32'"},
        "tool": {"git": "https://example.org/tool", "ref": "abc"},
        "own": {"editable": True, "path": "."},
    },
    "develop": {"b": {"version": "==2.0", "markers": "python_version >= '3.8'"}},
}


def test_a_pipfile_lock(tmp_path):
    pins = read(tmp_path, "Pipfile.lock", json.dumps(PIPFILE))
    assert pins.requirements == ("a==1.0", "tool", "b==2.0")
    assert [told.partition(" ")[0] for told in pins.notes] == ["tool"]
    assert pins.python == "3.9"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Pipfile.lock", "{"),
        ("Pipfile.lock", '{"default": []}'),
        ("uv.lock", "["),
        ("pyproject.toml", "[project]\nname = 'x'\n"),
        ("pylock.toml", "lock-version = '1.0'\n"),
        ("environment.yml", "- a list"),
        ("environment.yaml", "dependencies:\n  - python=3.11\n"),
        ("environment.yaml", "dependencies: " + "[" * 600),
        ("conda-lock.yml", "package:\n- name: x\n"),
        ("pixi.lock", "version: 6\nenvironments: {}\npackages: []\n"),
        ("pixi.lock", "environments: {default: 5}"),
        ("pixi.lock", "["),
        ("freeze.txt", "!!!\n"),
        ("empty.txt", "# nothing\n"),
    ],
)
def test_an_unreadable_file_is_refused(tmp_path, name, text):
    with pytest.raises(UserMistake):
        read(tmp_path, name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("freeze.txt", "six==1.16.0\ntool @ git+https://me:pa55word@example.org/tool@main\n"),
        ("freeze.txt", "six==1.16.0\ntool @ https://example.org/tool.whl?access_token=a1b2c3d4e5f6pa55word\n"),
        ("freeze.txt", "six==1.16.0\n-e git+https://me:pa55word@example.org/tool#egg=tool\n"),
        ("uv.lock", 'version = 1\n[[package]]\nname = "tool"\nversion = "1.0"\n'
                    'source = { git = "https://me:pa55word@example.org/tool?rev=main" }\n'),
        ("poetry.lock", '[metadata]\n[[package]]\nname = "tool"\nversion = "1.0"\n'
                        '[package.source]\ntype = "git"\nurl = "https://me:pa55word@example.org/tool"\n'),
    ],
)  # fmt: skip
def test_a_password_in_an_address_is_not_told(tmp_path, name, text):
    told = " ".join(read(tmp_path, name, text).notes)
    assert "example.org/tool" in told
    assert "pa55word" not in told


def test_an_environment_gives_its_pins_without_remains_and_passwords(tmp_path):
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for folder, text in {
        "pep-1.2.dist-info": "Name: pep\nVersion: 1.2\n",
        "~ep-1.1.dist-info": "Name: pep\nVersion: 1.1\n",
        "lost-1.dist-info": "Name: lost\n",
        "private-1.0.dist-info": "Name: private\nVersion: 1.0\n",
        "numpy-1.26.4.dist-info": "Name: numpy\nVersion: 1.26.4\n",
    }.items():
        (site / folder).mkdir()
        (site / folder / "METADATA").write_text(f"Metadata-Version: 2.1\n{text}")
    (site / "private-1.0.dist-info" / "direct_url.json").write_text('{"url": "https://me:pa55word@example.org/x"}')
    built = "file:///home/conda/feedstock_root/build_artifacts/numpy_1707225359967/work/dist/numpy-1.26.4.whl"
    (site / "numpy-1.26.4.dist-info" / "direct_url.json").write_text(f'{{"url": "{built}"}}')
    pins = installed_pins(installed_in(tmp_path / "env" / "bin" / "python"), "env")
    assert pins.requirements == ("numpy==1.26.4", "pep==1.2", "private==1.0")
    assert any("lost is installed without a version" in told for told in pins.notes)
    assert "pa55word" not in " ".join(pins.notes)
    assert pins.python == ".".join(map(str, sys.version_info[:3]))


def test_extras_that_need_each_other_are_read_once(tmp_path):
    def package(name, other):
        return (
            f'[[package]]\nname = "{name}"\nversion = "1.0"\nsource = {{ registry = "https://index.example/simple" }}\n'
            f'[package.optional-dependencies]\nfull = [{{ name = "{other}", extra = ["full"] }}]\n'
        )

    text = (
        'version = 1\n[[package]]\nname = "mine"\nversion = "1.0"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "one", extra = ["full"] }]\n' + package("one", "two") + package("two", "one")
    )
    assert read(tmp_path, "uv.lock", text).requirements == ("one==1.0", "two==1.0")


@pytest.mark.parametrize("line", ["Zq7secret with words", "--Zq7secret", "me:Zq7secret:0:0:me", '-r "Zq7secret'])
def test_a_file_that_a_lock_names_is_not_shown(tmp_path, line):
    """A stranger's lock may name a file of the user, such as a key, in its lines with -r."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "key").write_text("Zq7secret\n", encoding="utf-8")
    (tmp_path / "project").mkdir()
    with pytest.raises(UserMistake, match="is outside its project"):
        read(tmp_path / "project", "all.txt", "-r ../home/key\n")
    (tmp_path / "key").write_text(f"six\n{line}\n", encoding="utf-8")
    with pytest.raises(UserMistake, match=r"key, line 2: can't be read as a requirement") as refused:
        read(tmp_path, "all.txt", "-r key\n")
    assert "Zq7secret" not in f"{refused.value.message} {refused.value.hint}"
