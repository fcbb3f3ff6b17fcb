"""What `harness init` writes runs as it stands, and replaces nothing unless it is told to."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support import Harness
from wheelhouse import Wheelhouse

from harness.model.repro import parse_repro

PARSE = """
class InvalidVersion(ValueError): pass
class Old(str): pass
def parse(text):
    if " " in text and {strict}: raise InvalidVersion(text)
    return Old(text if " " not in text else "")
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    """A package like packaging, which became strict in 22.0."""
    house = Wheelhouse(tmp_path_factory.mktemp("init"))
    for version in ("20.9", "21.3", "22.0", "23.0"):
        text = PARSE.format(strict=version >= "22")
        house.add("packaging", version, files={"packaging/__init__.py": "", "packaging/version.py": text})
    return house


@pytest.fixture
def here(harness: Harness, index: Wheelhouse) -> Harness:
    return harness.with_environ(**index.environ)


def test_a_repro_runs_as_it_stands(here: Harness) -> None:
    ended = here("init", "repro")
    assert (ended.code, ended.stderr) == (0, "")
    *_, line = ended.stdout.splitlines()
    answer = here(*line.removeprefix("next: harness ").split(), "--depth", "release", "--json")
    assert answer.code == 0, answer.stderr
    assert (answer.json["last_good"], answer.json["first_bad"]) == ("21.3", "22.0")


def test_a_matrix_comes_with_its_repro(here: Harness) -> None:
    *_, line = here("init", "matrix", "mine").stdout.splitlines()
    ended = here(*line.removeprefix("next: harness ").split())
    assert ended.code == 0, ended.stderr
    assert "| 21.3 | works |\n| 22.0 | **fails** |" in ended.stdout


@pytest.mark.parametrize("model", ["llama", "whisper"])
def test_a_repro_of_a_tiny_model_has_valid_metadata(here: Harness, model: str) -> None:
    ended = here("init", "repro", "--model", model)
    assert ended.stdout == f"wrote repros/{model}.py\nnext: harness probe repros/{model}.py\n"
    source = (here.folder / "repros" / f"{model}.py").read_text(encoding="utf-8")
    repro = parse_repro(source, name=model)
    assert (repro.dependencies, list(repro.subjects)) == (("torch", "transformers"), ["transformers"])
    compile(source, model, "exec")


def test_a_workflow_follows_the_schema(here: Harness) -> None:
    assert here("init", "workflow").code == 0
    path = here.folder / ".github" / "workflows" / "newest-packages.yml"
    words = ["--builtin-schema", "vendor.github-workflows", str(path)]
    ended = subprocess.run([sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    assert "uses: OWNER/regression-harness/.github/workflows/newest-packages.yml@COMMIT" in path.read_text()


def test_nothing_is_replaced_unless_told(here: Harness) -> None:
    path = here.folder / "repros" / "example.py"
    path.parent.mkdir()
    path.write_text("mine", encoding="utf-8")
    refused = here("init", "repro")
    assert (refused.code, "is there already" in refused.stderr) == (2, True)
    assert path.read_text(encoding="utf-8") == "mine"
    assert here("init", "repro", "--force").code == 0
    assert "[tool.harness]" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("repo",), "'repo' is not one of 'repro', 'matrix', 'workflow'"),
        (("repro", "../up"), "can't be the name of a file"),
        (("matrix", "--model", "llama"), "--model is for a repro, not for a matrix"),
    ],
)
def test_mistakes_are_one_sentence(here: Harness, words: tuple[str, ...], said: str) -> None:
    ended = here("init", *words)
    assert (ended.code, said in ended.stderr) == (2, True), ended.stderr
