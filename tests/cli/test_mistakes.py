"""Mistakes that need no run: one sentence and its exit code. `tests/scenarios/mistakes.toml` has the others."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys

import pytest
from at_a_terminal import Terminal
from support import outer_environ
from wheelhouse import free_port_url

# What is typed, a part of the sentence, and a part of the hint.
MISTAKES = [
    ("bisect no-such-project-anywhere --repro REPRO", "no project named", "spelling"),
    ("bisect britle --repro REPRO", "no project named 'britle'", "did you mean brittle?"),
    ("bisect erly --run 'python x.py' --with early --good 1.0", "no project named 'erly'", "did you mean early?"),
    (
        "bisect brittle --repro britle_step",
        "no repro named 'britle_step'; did you mean 'brittle_step'?",
        "harness repros",
    ),
    ("bisect brittle --param layers", "--param takes NAME=VALUE, not 'layers'", ""),
    ("probe brittle_step --as-of yesterday", "--as-of takes era, none or a date like 2025-06-27, not 'yesterday'", ""),
    ("bisect brittle --hold helper=1", "'helper=1' is not a requirement", "=="),
    ("probe brittle_step --with helper=1", "'helper=1' is not a requirement", "=="),
    ("probe brittle_step --hold helper=1", "'helper=1' is not a requirement", "=="),
    ("bisect brittle --python no/such/python", "no/such/python is not a Python that can be run", ""),
    ("bisect ''", "is not the name of a project", ""),
    ("bisect ../x", "is not the name of a project", ""),
    ("bisect 'a b' --repro REPRO", "is not the name of a project", ""),
    ("probe", "nothing to run", ""),
    ("probe --run x --timeout nan", "is between 1 and 604800, not nan", ""),
    ("probe --again feedbeef", "no observation id starts with 'feedbeef'", ""),
    ("match quiet.log", "no exception in quiet.log", ""),
    ("match gone.log", "can't read gone.log", ""),
    ("repros numpy quaternion", "no known regression with 'numpy quaternion'", ""),
    ("pin", "no answers in", "harness bisect makes them"),
    ("pin --good 2024-01-01", "say what has to pass", ""),
    ("pin --run 'python check.py' --constraints c.txt", "", "--format constraints -o c.txt"),
    ("matrix none.toml --table --list", "give one of them", ""),
]


def refused(harness, words, *, code=2, **environ):
    """The sentence and the hint of a refused command."""
    ended = harness(*words, **environ)
    assert (ended.code, ended.stdout) == (code, ""), ended.stderr
    sentence, *hint = ended.stderr.splitlines()
    assert sentence.startswith("error: ")
    assert len(hint) <= 1
    return sentence, "".join(hint)


@pytest.mark.parametrize(("typed", "sentence", "hint"), MISTAKES, ids=[typed for typed, *_ in MISTAKES])
def test_a_mistake_is_one_sentence(harness, write_repro, typed, sentence, hint):
    path = write_repro("brittle")
    (harness.folder / "quiet.log").write_text("epoch 1: loss 0.5\n", encoding="utf-8")
    told = refused(harness, [str(path) if word == "REPRO" else word for word in shlex.split(typed)])
    assert sentence in told[0]
    assert hint in told[1]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("# [tool.harness]\n# timeout =\n", "its script metadata is not valid TOML"),
        ("# [tool.harness]\n# timeuot = 3\n", "unknown keys: timeuot"),
        ("# tool = 5\n", "must be a table"),
    ],
)
def test_wrong_metadata_of_a_repro(harness, header, sentence):
    (harness.folder / "wrong.py").write_text(f"# /// script\n{header}# ///\n", encoding="utf-8")
    for command in (("bisect", "brittle", "--repro"), ("probe",)):
        assert sentence in refused(harness, [*command, "wrong.py"])[0]


def test_an_index_out_of_reach_while_resolving(harness, write_repro, tmp_path):
    write_repro("brittle")
    environ = {"UV_HTTP_RETRIES": "0", "HARNESS_CACHE_DIR": str(tmp_path / "cache")}
    told = refused(harness, ["probe", "brittle_step"], code=5, UV_DEFAULT_INDEX=free_port_url(), **environ)
    assert "the package index can't be reached (127.0.0.1:" in told[0]
    assert "same command" in told[1]


def test_a_cache_folder_that_cannot_be_created(harness, write_repro):
    cache = write_repro("brittle") / "cache"
    sentence, hint = refused(harness, ["bisect", "brittle"], code=6, HARNESS_CACHE_DIR=str(cache))
    assert "can't write to the cache folder " in sentence
    assert "HARNESS_CACHE_DIR" in hint


@pytest.mark.parametrize("words", [("probe", "brittle_step"), ("results",), ("bisect", "brittle")])
def test_an_empty_results_folder_name(harness, write_repro, words):
    write_repro("brittle")
    ended = harness(*words, "--results", "")
    assert ended.code == 2
    assert "--results" in ended.stderr
    assert sorted(path.name for path in harness.folder.iterdir()) == ["repros"]


def test_no_word_of_a_mistake_is_broken_at_the_edge_of_a_terminal(harness):
    terminal = Terminal(harness, "bisect", "shop", "--run", "tox -e py311", columns=60)
    assert terminal.end() == 2
    lines = [line.rstrip("\r") for line in re.sub(r"\x1b\[[\d;]*m", "", terminal.screen).splitlines()]
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).startswith(
        "error: tox makes its own environments, so 'tox -e py311' can't run"
    )


@pytest.mark.parametrize("words", [("repros",), ("repros", "--json"), ("--help",), ("bisect", "a b", "--json")])
def test_a_command_whose_output_nobody_reads_ends_quietly(words):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "harness", *words], stdout=writing, stderr=subprocess.PIPE, env=outer_environ()
    )
    os.close(writing)
    assert (ended.returncode, b"internal error" in ended.stderr) == (128 + signal.SIGPIPE, False)
