"""The script that runs the commands of the documentation reads every block, and knows every mark."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time

import pytest
from click.testing import CliRunner
from fake_gh import write_fake_gh
from support import ROOT

from harness.cli import cli

SPEC = importlib.util.spec_from_file_location("documented_commands", ROOT / "tests/e2e/documented_commands.py")
documented = importlib.util.module_from_spec(SPEC)
sys.modules["documented_commands"] = documented
SPEC.loader.exec_module(documented)

PAGE = """\
<!-- file: a.txt -->
```python
made
```

```console
$ cat a.txt
$ exit 2
```

<!-- commands: my-project -->
```console
$ cd my-project
$ ls pyproject.toml
```

<!-- commands: forge -->
```console
$ git clone https://github.com/some-one/project
```
"""
AROUND = """\
```console
$ sleep 6000 &
$ gh issue list --repo some-one/project --state all --label x
$ cd ~/repros
$ ls nightly.py && test "$HOME" = "$(dirname "$PWD")"
```

<!-- commands: my-project, terminal -->
```console
$ test -t 0 && python3 -c "print(input())"
```

<!-- commands: terminal -->
```console
$ test -t 0 && read a && test "$a" = q # --ask
```
"""


@pytest.mark.parametrize("page", documented.PAGES)
def test_every_mark_means_something(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in documented.blocks_of(page, text) if not block.file]
    assert sum(len(block.commands) for block in blocks) == text.count("\n$ ")
    assert sum(bool(block.needs) for block in blocks) >= text.count("<!-- commands: ")


def test_a_mark_that_means_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="page:2: nothing is called 'moon'"):
        list(documented.blocks_of("page", "<!-- commands: moon -->\n```console\n$ ls\n```\n"))


def test_blocks_run_in_order_and_say_how_they_ended(tmp_path, monkeypatch) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(documented, "ROOT", tmp_path)
    ran = list(documented.run_page("page.md", tmp_path / "work"))
    assert [(one.command, one.result) for one in ran] == [
        ("cat a.txt", "ran"),
        ("exit 2", "failed"),
        ("ls pyproject.toml", "ran"),
        ("git clone https://github.com/some-one/project", "left out"),
    ]


def test_a_page_has_a_home_a_terminal_and_programs_that_run_until_it_ends(tmp_path, monkeypatch) -> None:
    (tmp_path / "page.md").write_text(AROUND, encoding="utf-8")
    monkeypatch.setattr(documented, "ROOT", tmp_path)
    before = time.monotonic()
    ran = list(documented.run_page("page.md", tmp_path / "work"))
    assert [one.result for one in ran] == ["ran", "ran", "ran", "failed", "ran"], ran
    assert "EOFError" in ran[3].shown  # Ctrl-D was typed
    assert time.monotonic() - before < 3000


def test_the_example_of_a_draft_is_what_the_command_prints(tmp_path, monkeypatch) -> None:
    from documented_surroundings import ISSUE

    monkeypatch.chdir(tmp_path)
    folder = write_fake_gh(tmp_path / "bin")
    (folder / "view.json").write_text(json.dumps(ISSUE), encoding="utf-8")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    page = (ROOT / "docs/guides/from-an-issue.md").read_text(encoding="utf-8")
    [(command, printed)] = re.findall(r"```text\n> harness (.*?)\n\.\.\.\n(.*?)```", page, re.DOTALL)
    assert CliRunner().invoke(cli, command.split()).output.endswith(f"\n{printed}")


def test_no_other_page_shows_what_a_command_prints() -> None:
    """The session of the README has a record of its own: tests/test_readme.py."""
    shown = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
        for kind, block in re.findall(r"^```(console|text)\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
        if kind == "text" or any(not re.match(r"\w*\$ ", line) for line in block.splitlines())
    }
    assert shown == {"README.md", "docs/guides/from-an-issue.md"}
