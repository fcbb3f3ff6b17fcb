"""The workflow or the git remote names this repository."""

from __future__ import annotations

import subprocess

import pytest

from harness.errors import UserMistake
from harness.watch.tracker import this_repository


@pytest.fixture
def checkout(tmp_path):
    """A git repository whose origin has this address."""

    def make(address: str):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", address], check=True)
        return tmp_path

    return make


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:some-one/a.project.git",
        "https://github.com/some-one/a.project",
        "https://github.com/some-one/a.project.git",
        "ssh://git@github.com/some-one/a.project.git",
    ],
)
def test_the_remote_names_the_repository(checkout, address):
    assert this_repository({}, checkout(address)) == "some-one/a.project"


def test_the_workflow_takes_precedence(checkout):
    folder = checkout("git@github.com:some-one/fork.git")
    assert this_repository({"GITHUB_REPOSITORY": "some-one/project"}, folder) == "some-one/project"


def test_without_either_no_repository_is_known(tmp_path):
    with pytest.raises(UserMistake, match="can't tell which repository"):
        this_repository({}, tmp_path)
