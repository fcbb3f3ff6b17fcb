"""`harness matrix FILE --list`: today's cells, the excluded releases, and mistakes in one sentence."""

from __future__ import annotations

import json

import pytest
from wheelhouse import Wheelhouse

from harness.cli.probe import probe

TEXT = """
[axes]
repro = "step"
[axes.packages]
brittle = {versions}
"""


@pytest.fixture
def listed(harness, tmp_path):
    """List a matrix on its own index; further words go to the command."""
    house = Wheelhouse(tmp_path / "own")
    for month, version in enumerate(["1.0", "1.1", "1.2", "2.0", "2.1rc1"], start=1):
        yanked = "wrong" if version == "1.2" else None
        house.add("brittle", version, uploaded=f"2025-0{month}-01T12:00:00Z", yanked=yanked)

    def run(versions: str, *words: str, more: str = "", **environ: str):
        path = harness.folder / "small.toml"
        path.write_text(TEXT.format(versions=versions) + more, encoding="utf-8")
        return harness(
            "matrix", path, "--list", *words, **house.environ, HARNESS_CACHE_DIR=str(tmp_path / "cache"), **environ
        )

    return run


def test_words_are_looked_up_in_the_index(listed):
    ended = listed('["latest 3", "prereleases"]')
    assert ended.code == 0
    names = ["step-brittle-1.0", "step-brittle-1.1", "step-brittle-2.0", "step-brittle-2.1rc1"]
    assert ended.stdout.splitlines() == names
    assert ended.stderr.splitlines() == ["left out: brittle 1.2 (yanked: wrong)"]


def test_the_json_list_has_everything_needed_to_run_a_cell(listed):
    """The arguments are those of `harness probe`."""
    document = listed('[">=1.1,<2"]', "--json", more="\n[axes.parameters]\nlayers = 2\n").json
    assert document["matrix"] == "small"
    (cell,) = document["cells"]
    assert (cell["name"], cell["python"]) == ("step-brittle-1.1-layers=2", None)
    assert cell["tags"] == ["step", "brittle_1_1", "layers_2"]
    assert probe.make_context("probe", cell["arguments"]).params["with_"] == ("brittle==1.1",)
    assert document["left_out"] == [{"project": "brittle", "version": "1.2", "reason": "yanked: wrong"}]


def test_cells_of_a_missing_python_are_listed(listed):
    ended = listed('"latest"', more='\n[[include]]\nrepro = "step"\npython = "3.99"\n')
    assert ended.stdout.splitlines() == ["step-brittle-2.0", "step-brittle-2.0-py3.99"]


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [
        ('"newest"', "must be a version like 4.53.0, a range"),
        ('"latest >9"', "'latest >9' matches no release of brittle"),
    ],
)
def test_a_mistake_gives_one_sentence_on_stderr(listed, versions, sentence):
    ended = listed(versions, "--json")
    assert (ended.code, ended.json["exit_code"]) == (2, 2)
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_words_cannot_be_resolved_without_the_index(listed):
    """Plain versions need no index."""
    assert listed('"1.0"', UV_NO_INDEX="1").code == 0
    ended = listed('"latest"', UV_NO_INDEX="1")
    assert (ended.code, "no project named 'brittle'" in ended.stderr) == (2, True)
    assert json.loads(listed('"latest"', "--json").stdout)["cells"][0]["name"] == "step-brittle-2.0"
