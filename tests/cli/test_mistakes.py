"""Every mistake of a user gives one sentence and the matching exit code."""

from __future__ import annotations

import re

import click
import pytest
from at_a_terminal import Terminal
from wheelhouse import free_port_url

from harness.cli import cli


def mistake(ended):
    """The sentence and the hint of a refused command."""
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    first, *rest = ended.stderr.splitlines()
    assert first.startswith("error: ")
    assert len(rest) <= 1
    return first.removeprefix("error: "), "".join(rest).strip()


def refused(harness, *arguments, code=2, **environ):
    ended = harness(*arguments, **environ)
    assert ended.code == code, ended.stderr
    return mistake(ended)


def test_an_unknown_project(harness, write_repro):
    path = write_repro("brittle")
    told, hint = refused(harness, "bisect", "britle", "--repro", path)
    assert told == "no project named 'britle' on the configured package index"
    assert hint == "did you mean brittle?"


def test_an_unknown_project_that_resembles_none(harness, write_repro):
    path = write_repro("brittle")
    _, hint = refused(harness, "bisect", "no-such-project-anywhere", "--repro", path)
    assert "spelling" in hint


@pytest.mark.parametrize("end", ["--good", "--bad"])
def test_an_unknown_release_suggests_a_similar_one(harness, write_repro, end):
    write_repro("brittle")
    told, hint = refused(harness, "bisect", "brittle", end, "1.77")
    assert told == "brittle 1.77: no such release"
    assert "1.7" in re.split(r", | or ", hint.removeprefix("did you mean ").rstrip("?"))


def test_an_end_that_is_not_a_version(harness, write_repro):
    write_repro("brittle")
    assert refused(harness, "bisect", "brittle", "--good", "newest")[0] == "'newest' is not a version, a day or a file"


def test_an_end_that_cannot_be_installed(harness, write_repro):
    write_repro("mixed")
    told, _ = refused(harness, "bisect", "mixed", "--good", "1.2", "--bad", "1.6")
    assert told.startswith("mixed 1.2: requires Python >=3.99")


def test_reversed_bounds(harness, write_repro):
    write_repro("brittle")
    told, hint = refused(harness, "bisect", "brittle", "--good", "1.8", "--bad", "1.2")
    assert told == "--good 1.8 is newer than --bad 1.2"
    assert "--find-fix" in hint
    told, hint = refused(harness, "bisect", "brittle", "--good", "1.2", "--bad", "1.8", "--find-fix")
    assert told.startswith("--good 1.2 is older than --bad 1.8")
    assert "--find-fix" in hint


def test_equal_bounds(harness, write_repro):
    write_repro("brittle")
    told, _ = refused(harness, "bisect", "brittle", "--good", "1.2", "--bad", "1.2")
    assert told == "--good and --bad are both 1.2; there is nothing between them"


def test_a_repro_without_metadata(harness):
    (harness.folder / "plain.py").write_text("import brittle\n")
    told, hint = refused(harness, "bisect", "brittle", "--repro", "plain.py")
    assert told == "plain.py has no inline script metadata"
    assert "# /// script" in hint


def test_a_repro_with_broken_toml(harness, write_repro):
    path = write_repro("brittle", tool="timeout = \n")
    assert "its script metadata is not valid TOML" in refused(harness, "bisect", "brittle", "--repro", path)[0]


def test_a_repro_with_unknown_keys(harness, write_repro):
    path = write_repro("brittle", tool="timeuot = 3\n")
    told, _ = refused(harness, "bisect", "brittle", "--repro", path)
    assert "unknown keys: timeuot" in told


def test_an_unknown_repro_suggests_a_similar_one(harness, write_repro):
    write_repro("brittle")
    told, hint = refused(harness, "bisect", "brittle", "--repro", "britle_step")
    assert told == "no repro named 'britle_step'; did you mean 'brittle_step'?"
    assert "harness repros lists them" in hint


def test_a_package_without_a_repro(harness):
    told, hint = refused(harness, "bisect", "helper")
    assert told == "no repro names helper as its subject"
    assert "--run" in hint


def test_a_missing_repro(harness):
    told, _ = refused(harness, "bisect", "brittle", "--repro", "nowhere/x.py")
    assert told == "can't read the repro nowhere/x.py: No such file or directory"


def test_repro_and_run_together(harness, write_repro):
    path = write_repro("brittle")
    told, _ = refused(harness, "bisect", "brittle", "--repro", path, "--run", "true")
    assert told == "give either --repro or --run"


def test_an_unparsable_command(harness):
    assert "can't be parsed" in refused(harness, "bisect", "brittle", "--run", "echo 'x")[0]


def test_a_parameter_without_a_value(harness, write_repro):
    write_repro("brittle")
    told, _ = refused(harness, "bisect", "brittle", "--param", "layers")
    assert told == "--param takes NAME=VALUE, not 'layers'"


def test_an_invalid_date(harness, write_repro):
    write_repro("brittle")
    told, _ = refused(harness, "bisect", "brittle", "--as-of", "yesterday")
    assert told == "--as-of takes era, none or a date like 2025-06-27, not 'yesterday'"
    told, _ = refused(harness, "probe", "brittle_step", "--as-of", "yesterday")
    assert told == "--as-of takes era, none or a date like 2025-06-27, not 'yesterday'"


@pytest.mark.parametrize("option", ["--with", "--hold"])
@pytest.mark.parametrize("command", [["bisect", "brittle"], ["probe", "brittle_step"]])
def test_an_invalid_requirement(harness, write_repro, command, option):
    write_repro("brittle")
    told, hint = refused(harness, *command, option, "helper=1")
    assert told.startswith("'helper=1' is not a requirement")
    assert "==" in hint


def test_a_missing_python(harness, write_repro):
    write_repro("brittle")
    assert refused(harness, "bisect", "brittle", "--python", "3.1")[0] == "no Python 3.1 on this machine"
    told, _ = refused(harness, "bisect", "brittle", "--python", "no/such/python")
    assert told == "no/such/python is not a Python that can be run"


def test_no_network(harness, write_repro, tmp_path):
    write_repro("brittle")
    told, hint = refused(
        harness,
        "bisect",
        "brittle",
        code=5,
        UV_DEFAULT_INDEX=free_port_url(),
        HARNESS_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert told.startswith("the package index can't be reached (127.0.0.1:")
    assert "same command" in hint


def test_no_network_while_resolving(harness, write_repro, tmp_path):
    write_repro("brittle")
    told, _ = refused(
        harness, "probe", "brittle_step", code=5, UV_DEFAULT_INDEX=free_port_url(), UV_HTTP_RETRIES="0",
        HARNESS_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip
    assert told.startswith("the package index can't be reached (127.0.0.1:")


def test_an_unwritable_results_folder(harness, write_repro):
    write_repro("brittle")
    (harness.folder / "file").write_text("")
    told, hint = refused(
        harness, "bisect", "brittle", "--good", "1.4", "--bad", "1.6", "--results", "file/results", code=6
    )
    assert told.startswith("can't write to ")
    assert "--results" in hint


def test_a_cache_folder_that_cannot_be_created(harness, write_repro):
    write_repro("brittle")
    (harness.folder / "file").write_text("")
    told, hint = refused(harness, "bisect", "brittle", code=6, HARNESS_CACHE_DIR=str(harness.folder / "file" / "cache"))
    assert told.startswith("can't create the cache folder ")
    assert "HARNESS_CACHE_DIR" in hint


def test_an_unknown_option_is_named(harness):
    ended = harness("bisect", "brittle", "--godo", "1.0")
    assert ended.code == 2
    assert "--godo" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", [[], *([name] for name in cli.list_commands(click.Context(cli)))])
def test_every_command_has_help(harness, command):
    ended = harness(*command, "--help")
    assert ended.code == 0
    assert ended.stdout.startswith("Usage: harness")


def test_a_misspelled_command_gives_one_sentence(harness):
    ended = harness("bisekt")
    assert ended.code == 2
    assert "No such command 'bisekt'" in ended.stderr


@pytest.mark.parametrize("words", [("probe", "brittle_step"), ("results",), ("bisect", "brittle")])
def test_an_empty_results_folder_name(harness, write_repro, words):
    write_repro("brittle")
    ended = harness(*words, "--results", "")
    assert ended.code == 2
    assert "--results" in ended.stderr
    assert sorted(path.name for path in harness.folder.iterdir()) == ["repros"]


@pytest.mark.parametrize("subject", ["", "../x", "a b"])
def test_an_invalid_package_name(harness, write_repro, subject):
    path = write_repro("brittle")
    for words in ((), ("--repro", path)):
        assert "is not the name of a project" in refused(harness, "bisect", subject, *words)[0]


def test_metadata_of_the_wrong_type(harness, write_repro):
    path = write_repro("brittle")
    path.write_text("# /// script\n# tool = 5\n# ///\n")
    assert "must be a table" in refused(harness, "probe", path)[0]


def test_no_word_of_a_mistake_is_broken_at_the_edge_of_a_terminal(harness):
    terminal = Terminal(harness, "bisect", "shop", "--run", "tox -e py311", columns=60)
    assert terminal.end() == 2
    lines = [line.rstrip("\r") for line in re.sub(r"\x1b\[[\d;]*m", "", terminal.screen).splitlines()]
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).startswith(
        "error: tox makes its own environments, so 'tox -e py311' can't run"
    )
