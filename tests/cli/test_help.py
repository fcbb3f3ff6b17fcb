"""`harness --help` lists every command and imports none of them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.arguments import OptionGroup
from harness.bisection import showing
from harness.bisection.answer import Status
from harness.cli import cli
from harness.cli.main import EXIT_CODES
from harness.cli.options import SectionCommand, option, settings_options
from harness.errors import HarnessError

_HEAVY = ("rich", "attrs", "cattrs", "requests", "pandas", "packaging", "harness.session", "harness.cli.bisect")


def test_every_command_is_listed():
    text = CliRunner().invoke(cli, ["--help"]).output
    for name in cli.list_commands(click.Context(cli)):
        assert any(line.strip().startswith(f"{name} ") for line in text.splitlines())
        assert CliRunner().invoke(cli, [name, "--help"]).output.startswith("Usage: ")


def test_listing_imports_no_command():
    code = (
        "import sys\nfrom harness.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        f"print([name for name in {_HEAVY} if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"


def test_a_misspelled_command_or_value_gets_a_suggestion():
    assert "Did you mean 'bisect'?" in CliRunner().invoke(cli, ["bisct"]).output
    assert "'cpux' is not one of 'auto', 'cpu'," in CliRunner().invoke(cli, ["bisect", "x", "--device", "cpux"]).output
    assert "No such command 'xyz'." in CliRunner().invoke(cli, ["xyz"]).output
    assert "did you mean transformers?" in CliRunner().invoke(cli, ["bisect", "transfomers"]).output


def test_a_folder_that_cannot_be_named_is_a_mistake():
    ended = CliRunner().invoke(cli, ["results", "--results", "a" * 300])
    assert ended.exit_code == 2
    assert "File name too long" in ended.output


def test_options_are_listed_in_sections():
    @click.command(cls=SectionCommand)
    @option("Ends", "--good", help="Where it works.")
    @click.option("--plain", help="Without a section.")
    @settings_options(OptionGroup.QUESTION)
    def command(**_):
        pass

    lines = CliRunner().invoke(command, ["--help"]).output.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "Question:", "Ends:", "Environment:", "Execution:", "Output:"]


def test_the_options_of_bisect_are_in_groups():
    lines = CliRunner().invoke(cli, ["bisect", "--help"]).output.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Question:", "Ends:", "Project:", "Search:", "Environment:", "Execution:", "Output:"]


def completed(harness, *words: str) -> list[str]:
    """What a shell offers for the last of these words."""
    asked = {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(["harness", *words])}
    with harness.start(**asked, COMP_CWORD=str(len(words))) as process:
        out, err = process.communicate(timeout=300)
    assert err == ""
    return [line.partition(",")[2] for line in out.splitlines() if line]


def test_a_shell_completes_commands_options_and_values(harness):
    assert completed(harness, "bis") == ["bisect"]
    assert completed(harness, "bisect", "--find") == ["--find-fix"]
    assert completed(harness, "bisect", "x", "--device", "cu") == ["cuda"]


def test_a_shell_completes_repros_subjects_and_answers(harness, write_repro):
    write_repro("brittle")
    (harness.folder / "brittle_script.py").write_text("")
    assert completed(harness, "probe", "brittle") == ["brittle_step", "brittle_script.py"]
    assert completed(harness, "bisect", "--repro", "brittle_st") == ["brittle_step"]
    assert completed(harness, "bisect", "britt") == ["brittle"]
    assert completed(harness, "report", "") == []
    harness("bisect", "brittle", "--good", "1.5", "--bad", "1.6", "--depth", "release", "--confirm", "0")
    (answer,) = completed(harness, "report", "")
    assert completed(harness, "shell", "--answer", answer[:4]) == [answer]


def test_the_list_of_commands_is_in_groups_that_begin_with_bisect():
    lines = CliRunner().invoke(cli, ["--help"]).output.splitlines()
    first = lines.index("Find what broke it:")
    assert lines[first + 1].split()[0] == "bisect"
    assert all(line.split()[0] in cli.list_commands(None) for line in lines[first + 1 : lines.index("", first)])


def test_exit_codes_are_those_of_the_errors_and_of_the_answers():
    def codes(kind):
        return {kind.exit_code}.union(*map(codes, kind.__subclasses__()))

    listed = [int(code) for code in re.findall(r"^ +(\d+)  ", EXIT_CODES, re.MULTILINE)]
    assert sorted(listed) == sorted({*codes(HarnessError), *(status.exit_code for status in Status), 4})
    stream = json.loads(Path(showing.__file__).parents[1].joinpath("terminal/stream.schema.json").read_text("utf-8"))
    ends = [row["properties"]["exit_code"]["enum"] for row in stream["oneOf"] if "exit_code" in row["properties"]]
    assert sorted(code for codes in ends for code in codes) == sorted(listed)


def test_what_prints_for_people_prints_json_too():
    """The others write files, open a shell, or serve."""
    without = {"init", "job", "mcp", "new", "report", "results", "shell", "skill"}
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    flags = {name: {flag for param in command.params for flag in param.opts} for name, command in commands.items()}
    assert {name for name in commands if "--json" not in flags[name]} == without
    formats = {name: commands[name].params for name in ("report", "results")}
    assert all(any("json" in getattr(param.type, "choices", ()) for param in params) for params in formats.values())


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("bisect", "--json", "--godo"), 2, "No such option"),
        (("probe", "gone_repro", "--json"), 2, "gone_repro"),
        (("pin", "--json", "--results", "none"), 2, "no answers in "),
        (("repros", "--json", "no such thing"), 2, "no known regression"),
        (("matrix", "gone.toml", "--json"), 2, "gone.toml"),
        (("match", "gone.log", "--json"), 2, "can't read gone.log"),
    ],
)
def test_with_json_an_error_is_json(words, code, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(cli, words)
    record = json.loads(ended.stdout)
    assert record.keys() == {"error", "hint", "exit_code", "retry"}
    assert (ended.exit_code, record["exit_code"], record["retry"]) == (code, code, False)
    assert error in record["error"]
    assert error in ended.stderr
