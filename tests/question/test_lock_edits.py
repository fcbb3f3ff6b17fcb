"""Packages go back to the entries of an older file, and everything else stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Change
from harness.question.lock_edits import command_of, diff_of, with_versions

VERSIONS = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["1", "2"]))
REQUIREMENT = "{name}=={version} \\\n    --hash=sha256:{name}{version} \\\n    --hash=sha256:x\n    # via mine\n"
TABLE = '[[package]]\nname = "{name}"\nversion = "{version}"\n\n[package.extra]\nfiles = [\n    "{name}",\n]\n\n'


def requirements(versions: dict[str, str]) -> str:
    entries = "".join(REQUIREMENT.format(name=name, version=versions[name]) for name in sorted(versions))
    return f"# compiled\n--index-url https://example.org\n{entries}"


def lock(versions: dict[str, str]) -> str:
    entries = "".join(TABLE.format(name=name, version=versions[name]) for name in sorted(versions))
    return f'version = 1\n\n{entries}[metadata]\ncontent-hash = "x"\n'


@pytest.mark.parametrize(("render", "file"), [(requirements, "requirements.txt"), (lock, "poetry.lock")])
@given(VERSIONS, VERSIONS, st.sets(st.sampled_from("abcde")))
def test_the_edited_file_is_the_one_that_would_have_been_written(render, file, head, base, held):
    wanted = {name: base.get(name) for name in held if head.get(name) != base.get(name)}
    versions = {name: version for name, version in {**head, **wanted}.items() if version is not None}
    edited = with_versions(render(head), render(base), wanted, file)
    if file != "poetry.lock" or {*head} & {*base}:  # without an entry that stays, none says where others belong
        assert edited == render(versions) or not versions
    assert (diff_of(render(head), edited, file) == "") is (edited == render(head))


@pytest.mark.parametrize(
    ("text", "older", "versions", "file", "edited"),
    [
        ("a==2", "a==1\nb==1", {"a": "1", "b": "1"}, "requirements.txt", "a==1\nb==1"),
        ("a==2\n", "", {"a": "1"}, "requirements.txt", "a==1\n"),
        ("A_b==2 ; python_version<'3'\n", "a-b==1\n", {"a-b": "1"}, "requirements.txt", "a-b==1\n"),
        ("A==2\nA==3\n", "a==1\n", {"a": "1"}, "requirements.txt", "a==1\n"),
        (lock({"a": "2"}), lock({}), {"a": "1"}, "uv.lock", None),
        (lock({"a": "2"}) + 'needs = [{ name = "a" }]', lock({}), {"a": None}, "uv.lock", None),
        ("{}", "{}", {"a": "1"}, "Pipfile.lock", None),
        ("dependencies:\n", "", {"a": "1"}, "environment.yml", None),
    ],
)
def test_what_a_file_has_no_entry_for(text, older, versions, file, edited):
    assert with_versions(text, older, versions, file) == edited


def test_a_diff_says_where_a_file_ends_without_a_line_end():
    assert diff_of("a==2", "a==1\n", "x").endswith("-a==2\n\\ No newline at end of file\n+a==1\n")


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("uv.lock", "uv remove b\nuv lock --upgrade-package a==1"),
        ("poetry.lock", "poetry remove --lock b\npoetry add --lock a==1"),
        ("requirements.txt", ""),
    ],
)
def test_the_command_of_the_tool(file, command):
    assert command_of(file, (Change("a", "1", "2"), Change("b", None, "2"))) == command
