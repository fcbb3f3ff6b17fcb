"""`harness skill`: a SKILL.md whose commands and exit codes are those of the harness."""

from __future__ import annotations

import re
import shlex

import click
import yaml

from harness.cli.main import cli


def commands_in(text):
    """The commands of the harness in code blocks and code spans."""
    spans = re.findall(r"`(harness [^`]+)`", text) + re.findall(r"^\$ (harness [^#\n]+)", text, re.MULTILINE)
    return [shlex.split(span) for span in spans]


def test_the_skill_names_commands_and_options_that_exist(harness):
    text = harness("skill").stdout
    _, head, body = text.split("---\n", 2)
    about = yaml.safe_load(head)
    assert re.fullmatch(r"[a-z-]{1,64}", about["name"])
    assert 100 < len(about["description"]) <= 1024
    commands = commands_in(body)
    assert len(commands) > 8
    context = click.Context(cli)
    for _, name, *words in commands:
        command = cli.get_command(context, name)
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, (name, words)
    for option in re.findall(r"`(--[a-z-]+)", body):
        assert any(option in parameter.opts for parameter in cli.get_command(context, "bisect").params), option


def test_every_exit_code_of_the_help_is_in_the_skill(harness):
    codes = re.findall(r"^ +(\d+)  ", harness("--help").stdout, re.MULTILINE)
    rows = re.findall(r"^\| ([\d, ]+) \|", harness("skill").stdout, re.MULTILINE)
    assert set(codes) == {code for row in rows for code in row.split(", ")}


def test_the_skill_is_installed_where_the_project_has_its_skills(harness):
    (harness.folder / ".claude" / "skills").mkdir(parents=True)
    ended = harness("skill", "--install")
    path = harness.folder / ".claude/skills/find-the-breaking-release/SKILL.md"
    assert path.read_text("utf-8") == harness("skill").stdout, ended.stderr
    path.write_text("mine", encoding="utf-8")
    ended = harness("skill", "--install")
    assert (ended.code, path.read_text("utf-8")) == (2, "mine")
    assert "--force" in ended.stderr
    assert harness("skill", "--install", "--force").code == 0
    assert path.read_text("utf-8") != "mine"
