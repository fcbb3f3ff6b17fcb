"""The packages of a machine are read from any list that its pip writes, and compared as versions."""

from __future__ import annotations

import json

import pytest

from harness.bundle import Installed, read_installed
from harness.errors import UserMistake

FREEZE = """\
numpy==2.2.6
Typing_Extensions==4.12.2  # a remark
conda-built @ file:///croot/conda-built
-e git+ssh://somewhere/mine#egg=mine
"""


@pytest.mark.parametrize(
    "text",
    [
        FREEZE,
        json.dumps([{"name": "numpy", "version": "2.2.6"}, {"name": "Typing_Extensions", "version": "4.12.2"}]),
        json.dumps({"python": "", "installed": {"numpy": "2.2.6", "typing.extensions": "4.12.2"}}),
    ],
)
def test_every_list_written_by_pip_or_the_run_script_is_read(tmp_path, text):
    (tmp_path / "there").write_text(text)
    assert read_installed(tmp_path / "there").versions == {"numpy": "2.2.6", "typing-extensions": "4.12.2"}


def test_versions_are_compared_as_versions_with_their_local_labels():
    node = Installed({"torch": "2.13.0+cu130", "attrs": "25.1", "odd": "2004d"})
    assert node.has("attrs", "25.1.0")
    assert node.has("odd", "2004d")
    assert not node.has("torch", "2.13.0")
    assert not node.has("absent", "1.0")


@pytest.mark.parametrize("text", ["", "nothing at all", "{", "[1]", '{"other": 1}'])
def test_another_file_is_refused_with_the_command_to_run(tmp_path, text):
    (tmp_path / "there").write_text(text)
    with pytest.raises(UserMistake) as caught:
        read_installed(tmp_path / "there")
    assert "pip list --format=freeze" in caught.value.hint


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserMistake, match="can't read what is installed"):
        read_installed(tmp_path / "there")


def test_a_list_for_another_python_or_platform_is_refused(interpreter):
    Installed(python=interpreter.version, platform=interpreter.platform).check(interpreter)
    with pytest.raises(UserMistake) as caught:
        Installed(python="3.99.1").check(interpreter)
    assert "--python 3.99" in caught.value.hint
    with pytest.raises(UserMistake, match="wheels packed here are for"):
        Installed(platform="linux-s390x").check(interpreter)
