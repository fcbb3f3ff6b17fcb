"""What the pages of the documentation take for granted, made for one page: a home folder, a project, a clone, `gh`."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import Factory, frozen

sys.path.insert(0, str(Path(__file__).parents[1]))
from fake_gh import write_fake_gh

from harness.environment import Workspace

ISSUE = {
    "number": 12345,
    "title": "ImportError: cannot import name 'AdamW' from 'transformers'",
    "url": "https://github.com/huggingface/transformers/issues/12345",
    "comments": [{"body": "It worked with 4.49.0."}],
    "body": """\
- transformers 4.52.4
- torch 2.13.0
- Python 3.11

```python
import torch
from transformers import AdamW

layer = torch.nn.Linear(2, 2)
optimizer = AdamW(layer.parameters(), lr=0.1)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(layer.weight)
```

```pytb
Traceback (most recent call last):
  File "train.py", line 2, in <module>
    from transformers import AdamW
ImportError: cannot import name 'AdamW' from 'transformers' (transformers/__init__.py)
```
""",
}
ISSUE_TEXT = f"# {ISSUE['title']}\n\n{ISSUE['body']}"
LOG = """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    x = np.asfarray([1, 2])
  File "site-packages/numpy/__init__.py", line 411, in __getattr__
    raise AttributeError(
AttributeError: `np.asfarray` was removed in the NumPy 2.0 release. Use `np.asarray` with a proper dtype instead.
"""
NIGHTLY = """\
# /// script
# requires-python = ">=3.10"
# dependencies = ["packaging"]
# ///
from packaging.version import parse

builds = ["1.0", "1.0-nightly build", "0.9"]
print(sorted(builds, key=parse))
"""
PLOT = """\
# /// script
# dependencies = ["matplotlib"]
# ///
import matplotlib

print("drawn with", matplotlib.__version__)
"""
# pytest 9 refuses what pytest 8 warned of: marks on fixtures.
PROJECT = {
    "pyproject.toml": """\
[project]
name = "my-project"
version = "1.0"
requires-python = ">=3.11"
dependencies = [
    "packaging>=20",
]

[dependency-groups]
test = ["pytest>=8"]
""",
    "tests/test_io.py": """\
import pytest


def test_data():
    @pytest.mark.usefixtures("tmp_path")
    @pytest.fixture
    def data():
        return [1, 2]


def test_own():
    assert 1 + 1 == 2
""",
    "step.py": """\
# /// script
# dependencies = ["packaging"]
# ///
import asyncore
""",
    "train.log": LOG,
    "freeze-may.txt": "iniconfig==2.1.0\npackaging==25.0\npluggy==1.6.0\npytest==8.3.5\n",
    "freeze-june.txt": "iniconfig==2.1.0\npackaging==25.0\npluggy==1.6.0\npygments==2.19.2\npytest==9.0.0\n",
}
PACKAGING = """\
[build-system]
requires = ["flit_core>=3.3"]
build-backend = "flit_core.buildapi"

[project]
name = "packaging"
version = "{version}"
description = "Core utilities for Python packages"
dependencies = {needs}
"""
OLD = ("pytest==8.3.5", "packaging==25.0")


@frozen
class Surroundings:
    """The folders of one page and the variables of its commands."""

    checkout: Path
    project: Path
    home: Path
    environ: dict[str, str]
    running: list[subprocess.Popen[bytes]] = Factory(list)

    @classmethod
    @contextmanager
    def made(cls, folder: Path, root: Path, text: str) -> Iterator[Surroundings]:
        """Make what the `text` of a page names in `folder`, from the files of the repository `root`."""
        checkout, project, home = (folder / name for name in ("checkout", "my-project", "home"))
        listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout
        for name in listed.splitlines():
            if (root / name).is_file():
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, checkout / name)
        whisper = root / "repros/whisper_lora_checkpointing.py"
        mine = whisper.read_text(encoding="utf-8") if whisper.is_file() else ""
        own = {"mine.py": mine, "plot.py": PLOT, "nightly.py": NIGHTLY}
        _write(checkout, {"train.log": LOG, "issue.md": ISSUE_TEXT, **own})
        _write(project, PROJECT)
        _write(home, {"repros/nightly.py": NIGHTLY, ".bashrc": "", ".gitconfig": "[init]\ndefaultBranch = main\n"})
        gh = write_fake_gh(folder / "bin")
        _write(gh, {"view.json": json.dumps(ISSUE)})
        kept = {name: value for name, value in os.environ.items() if name != "HARNESS_RESULTS"}
        environ = {
            "HARNESS_CACHE_DIR": str(Workspace.default().root),
            "UV_CACHE_DIR": _said("uv", "cache", "dir"),
            "XDG_CONFIG_HOME": str(Path.home() / ".config"),  # the settings of pip and uv
            "UV_PYTHON_INSTALL_DIR": _said("uv", "python", "dir"),
            **kept,
            "HOME": str(home),
            "PATH": f"{gh}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_REPOSITORY": "some-one/project",
            "SHELL": "/bin/bash",
            **{f"GIT_{who}_{what}": "me@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        around = cls(checkout, project, home, environ)
        for words in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *words], cwd=project, check=True)
        for venv in ("venv-old", "venv"):
            if f"~/{venv}" in text:
                subprocess.run(["uv", "venv", "-q", str(home / venv)], env=environ, check=True)
                python = str(home / venv / "bin/python")
                subprocess.run(["uv", "pip", "install", "-q", "--python", python, *OLD], env=environ, check=True)
        if "~/src/packaging" in text:
            _clone_of_packaging(home / "src/packaging", environ)
        try:
            yield around
        finally:
            for process in around.running:
                process.terminate()
                process.wait(timeout=60)

    @property
    def installed(self) -> dict[str, str]:
        """The variables of commands that install: with a new environment first on `PATH`."""
        new = self.home.parent / "new"
        if not new.exists():
            subprocess.run([sys.executable, "-m", "venv", str(new)], check=True)
        own = {name: value for name, value in self.environ.items() if name != "PYTHONPATH"}
        return {**own, "PATH": f"{new / 'bin'}{os.pathsep}{own['PATH']}", "VIRTUAL_ENV": str(new)}

    def start(self, command: str, folder: Path) -> None:
        """Start a command that runs until the page ends."""
        words = command.removesuffix("&").split()
        self.running.append(subprocess.Popen(words, cwd=folder, env=self.environ, stderr=subprocess.DEVNULL))


def at_a_terminal(command: str, folder: Path, environ: dict[str, str], typed: str, limit_s: float) -> tuple[int, str]:
    """Run a command at a terminal, and type when it waits. Raises `TimeoutExpired`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, shell=True, cwd=folder, env={**environ, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown, until, quiet = b"", time.monotonic() + limit_s, False
    while time.monotonic() < until:
        if select.select([ours], [], [], 3)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux, once the other side is closed
                piece = b""
            if not piece:
                os.close(ours)
                return process.wait(timeout=60), shown.decode(errors="replace")
            shown, quiet = shown + piece, False
        elif not quiet:  # it waits
            os.write(ours, f"{typed}\n".encode() if typed.isprintable() else typed.encode())
            quiet = True
    process.kill()
    raise subprocess.TimeoutExpired(command, limit_s)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _clone_of_packaging(folder: Path, environ: dict[str, str]) -> None:
    """A repository with the files of packaging 21.3, 22.0 and a commit between them, tagged as its own releases are."""
    folder.mkdir(parents=True)

    def git(*words: str, day: str) -> None:
        dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
        subprocess.run(["git", *words], cwd=folder, env={**environ, **dates}, check=True)

    git("init", "-q", day="2021-11-18T00:00")
    for version, tag, day in (("21.3", "21.3", "2021-11-18T00:00"), ("22.0", "1a2b3c4", "2022-12-07T00:00")):
        shutil.rmtree(folder / "packaging", ignore_errors=True)
        download = ["-q", "download", "--no-deps", "--dest", str(folder.parent), f"packaging=={version}"]
        subprocess.run([sys.executable, "-m", "pip", *download], env=environ, check=True)
        with zipfile.ZipFile(folder.parent / f"packaging-{version}-py3-none-any.whl") as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("packaging/")])
        needs = '["pyparsing>=2.0.2,!=3.0.5"]' if version == "21.3" else "[]"
        _write(folder, {"pyproject.toml": PACKAGING.format(version=version, needs=needs)})
        git("add", ".", day=day)
        git("commit", "-q", "-m", f"Take the files of {version}", day=day)
        git("tag", tag, day=day)
        _write(folder, {"README.md": f"After {version}.\n"})
        later = day.replace("T00", "T12")
        git("add", ".", day=later)
        git("commit", "-q", "-m", "Say in the README what comes next", day=later)
    git("tag", "22.0", day="2022-12-07T12:00")
