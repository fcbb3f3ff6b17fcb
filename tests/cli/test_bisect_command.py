"""`harness bisect` asked again, and the command to type next."""

from __future__ import annotations

import itertools
import shlex


def bisect_once(harness, *arguments):
    """Levels below the release have tests of their own, and so have repetitions."""
    return harness("bisect", *arguments, "--depth", "release", "--confirm", "1")


def test_asking_again_works_without_network(harness, write_repro, house, tmp_path):
    write_repro("brittle")
    command = ["brittle", "--good", "1.4", "--bad", "1.7", "--json"]
    with house.served() as url:
        online = harness.with_environ(UV_DEFAULT_INDEX=url, HARNESS_CACHE_DIR=str(tmp_path / "cache"))
        first = bisect_once(online, *command)
    again = bisect_once(online, *command)
    assert first.json["probes"] == len(first.json["steps"])
    assert (again.code, again.json["probes"], again.json["first_bad"]) == (0, 0, "1.6")


def test_the_command_to_type_next_asks_under_the_same_settings(harness, write_repro, tmp_path):
    """What it installs beside the subject, such as a folder, would else be lost."""
    write_repro("brittle")
    folder = tmp_path / "my steady"
    folder.mkdir()
    (folder / "steady.py").write_text("", encoding="utf-8")
    words = ["--with", f"steady @ {folder}", "--hold", "none", "--device", "cpu", "--param", "a=1"]
    ended = harness(
        "bisect", "brittle", "--good", "1.5", "--bad", "1.6", *words, "--depth", "release", "--confirm", "1", "--json"
    )
    typed = shlex.split(ended.json["advice"].partition(": ")[2])
    assert typed[:3] == ["harness", "bisect", "brittle"]
    given = list(itertools.pairwise(typed))
    assert all(pair in given for pair in zip(words[::2], words[1::2], strict=True))
