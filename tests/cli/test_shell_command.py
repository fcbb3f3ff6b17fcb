"""`harness shell` opens either side of an answer, made again if it was cleaned, in a copy of the project."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from at_a_terminal import Terminal
from support import Harness, write_repro  # noqa: F401 - a fixture

from harness.cli.shell import link_sources
from harness.model import Repro
from harness.store import OWN_FOLDER

VERSION = "import importlib.metadata as m, sys; print(m.version('brittle'), sys.prefix)"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, house, uv_cache: Path) -> Harness:
    """An answer about a command in a project, in a folder of its own."""
    folder = tmp_path_factory.mktemp("shell")
    project = folder / "mine"
    project.mkdir()
    (project / "requirements.txt").write_text("brittle\n", encoding="utf-8")
    (project / "check.py").write_text("import brittle\nbrittle.step()\n", encoding="utf-8")
    environ = {**house.environ, "UV_CACHE_DIR": str(uv_cache), "HARNESS_CACHE_DIR": str(folder / "cache")}
    harness = Harness(
        project, {**environ, "HARNESS_SANDBOX": "off", "HARNESS_RESULTS": "", "PIP_CONFIG_FILE": os.devnull}
    )
    with contextlib.chdir(project):
        words = ("bisect", "brittle", "--run", "python check.py", "--good", "1.5", "--bad", "1.6", "--depth", "release")
        ended = harness(*words)
    assert ended.code == 0, ended.stderr
    return harness


def run(asked: Harness, *words: str) -> subprocess.CompletedProcess[str]:
    started = asked.start("shell", *words)
    out, err = started.communicate(timeout=300)
    return subprocess.CompletedProcess(words, started.returncode, out, err)


def test_a_command_runs_in_either_side_and_passes_its_status_on(asked: Harness) -> None:
    good = run(asked, "good", "--", "python", "-c", VERSION)
    assert good.stdout.startswith("1.5 "), good.stderr
    bad = run(asked, "--", "python", "check.py")
    assert bad.returncode == 1
    assert "the step is broken" in bad.stderr


def test_it_starts_in_a_fresh_copy_that_is_gone_afterwards(asked: Harness) -> None:
    ended = run(asked, "good", "--", "sh", "-c", "pwd; ls; echo changed > check.py")
    folder, *names = ended.stdout.split()
    assert names == ["check.py", "requirements.txt"]
    assert not Path(folder).exists()
    assert "changed" not in (asked.folder / "check.py").read_text(encoding="utf-8")
    assert not {"results", OWN_FOLDER} & set(names)


def test_a_cleaned_side_is_made_again(asked: Harness) -> None:
    shutil.rmtree(Path(asked.environ["HARNESS_CACHE_DIR"]) / "environments")
    shutil.rmtree(Path(asked.environ["HARNESS_CACHE_DIR"]) / "projects")
    ended = run(asked, "bad", "--", "python", "-c", VERSION)
    assert ended.stdout.startswith("1.6 "), ended.stderr
    assert run(asked, "good", "--", "ls").stdout.split() == ["check.py", "requirements.txt"]


@pytest.mark.parametrize(
    ("words", "typed", "shown"),
    [
        (["good"], "python -c 'import brittle; print(brittle.NUMBER + 100)'\nexit 7\n", "good: brittle 1.5"),
        (["bad", "--", "python", "-q"], "import brittle; print(brittle.NUMBER + 99)\nraise SystemExit(7)\n", ">>> "),
    ],
)
def test_a_shell_or_a_program_is_used_at_a_terminal(asked: Harness, words: list[str], typed: str, shown: str) -> None:
    terminal = Terminal(asked, "shell", *words)
    terminal.expect(shown)
    terminal.type(typed)
    terminal.expect("105")
    assert terminal.end() == 7


def test_mistakes_are_one_sentence(asked: Harness) -> None:
    assert "a shell needs a terminal" in run(asked, "good").stderr
    assert "no answer id starts with 'nothing'" in run(asked, "good", "--answer", "nothing", "--", "ls").stderr
    missing = run(asked, "good", "--", "no-such-program")
    assert (missing.returncode, "no-such-program can't be started" in missing.stderr) == (2, True)


def test_edits_in_the_shell_count_in_the_modules_that_were_built(tmp_path: Path) -> None:
    """A file that the build left as it was, one that it changed, one that it made, and a new one."""
    built, folder, outside = tmp_path / "built", tmp_path / "work", tmp_path / "outside"
    for path, text in {
        built / "mine" / "__init__.py": "",
        built / "mine" / "same.py": "same",
        built / "mine" / "version.py": "built",
        built / "mine" / "fast.so": "made",
        built / "mine" / "data" / "linked": "from the wheel",
        built / "alone.py": "",
        built / "mine-1.dist-info" / "METADATA": "",
        folder / "src" / "mine" / "__init__.py": "",
        folder / "src" / "mine" / "same.py": "same",
        folder / "src" / "mine" / "version.py": "source",
        folder / "src" / "alone.py": "",
        outside / "linked": "of the user",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "src" / "mine" / "data").symlink_to(outside)
    link_sources(Repro(name="x", digest="x", search_path=(str(built), ".", "src")), folder)
    (folder / "src" / "mine" / "same.py").write_text("edited", encoding="utf-8")
    (folder / "src" / "mine" / "new.py").write_text("new", encoding="utf-8")
    texts = {path.name: path.read_text(encoding="utf-8") for path in (built / "mine").iterdir() if path.is_file()}
    assert texts == {"__init__.py": "", "same.py": "edited", "version.py": "built", "fast.so": "made", "new.py": "new"}
    assert (built / "alone.py").resolve() == folder / "src" / "alone.py"
    assert (built / "mine-1.dist-info" / "METADATA").is_file()
    assert (outside / "linked").read_text(encoding="utf-8") == "of the user"
