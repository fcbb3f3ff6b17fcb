"""Repros of two steps: what one release wrote, another reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from carried import run_there
from support import repro_text

# From 1.2 on a box is written in another form; 1.0 can read only the old form, 1.3 only the new one.
OLD, NEW = "old", "new"
BOX = """
FORM = {form!r}
READS = {reads!r}

def write(path):
    {fault}
    path.write_text(FORM)

def read(path):
    if path.read_text() not in READS:
        raise ValueError("unknown form of box")
"""
TOOL = """
[tool.harness.signature]
exception = "ValueError"
message = "unknown form of box"
[tool.harness.subjects.box]
good = "1.0"
bad = "1.3"
[tool.harness.made]
with = ["box==1.0"]
[tool.harness.made.subjects.box]
good = "1.0"
bad = "1.3"
"""
BODY = """
import os
import tempfile
from pathlib import Path

import box

step = os.environ.get("HARNESS_STEP")
file = Path(os.environ.get("HARNESS_ARTIFACTS") or tempfile.mkdtemp()) / "box"
if step != "use":
    box.write(file)
if step != "make":
    box.read(file)
"""


ONCE = ("--confirm", "1")


@pytest.fixture(scope="module", autouse=True)
def boxes(house):
    for version, form, reads in (
        ("1.0", OLD, (OLD,)),
        ("1.1", OLD, (OLD, NEW)),
        ("1.2", NEW, (OLD, NEW)),
        ("1.3", NEW, (NEW,)),
    ):
        house.add("box", version, files={"box.py": BOX.format(form=form, reads=reads, fault="pass")})
    broken = BOX.format(form=NEW, reads=(NEW,), fault="raise OSError('no ink')")
    house.add("box", "0.9", files={"box.py": broken})
    house.add("box", "0.8", files={"box.py": "def write(path): pass\n"})


@pytest.fixture
def repro(harness):
    path = harness.folder / "repros" / "kept_box.py"
    path.parent.mkdir()
    path.write_text(repro_text("box", tool=TOOL, body=BODY), encoding="utf-8")
    return path


def test_the_readers_are_searched_and_the_answer_names_what_wrote(harness, repro):
    ended = harness("bisect", "box", "--repro", repro, *ONCE, "--json")
    assert ended.code == 0
    answer = ended.json
    assert (answer["last_good"], answer["first_bad"]) == ("1.2", "1.3")
    assert answer["files"]["written_by"] == "box 1.0"
    assert "Each release read what box 1.0 wrote." in answer["sentence"]
    report = (harness.folder / "results" / "reports").glob("*.html")
    texts = [page.read_text() for page in report]
    assert any("what box 1.0 wrote" in text and "Written by" in text for text in texts)


def test_with_made_the_writers_are_searched_down_to_their_lines(harness, repro):
    ended = harness("bisect", "box", "--repro", repro, "--made", "--with", "box==1.0", *ONCE, "--json")
    answer = ended.json
    assert (answer["last_good"], answer["first_bad"]) == ("1.1", "1.2")
    assert answer["files"]["read_by"] == "box 1.0"
    assert "Each release wrote what box 1.0 read." in answer["sentence"]
    finest = answer["culprit"][-1]
    assert finest["files"] == ["box.py"]
    assert finest["proved"]


def test_a_release_that_does_not_write_is_skipped_with_the_reason(harness, repro):
    ended = harness("bisect", "box", "--repro", repro, "--made", "--with", "box==1.0", "--good", "0.8", *ONCE, "--json")
    steps = {step["release"]: step for step in ended.json["steps"]}
    assert steps["0.8"]["verdict"] == "skip"
    assert "box 0.8 did not write the files" in steps["0.8"]["reason"]
    assert "nothing was written" in steps["0.8"]["reason"]


def test_a_first_step_that_fails_is_one_sentence(harness, repro):
    ended = harness("probe", repro, "--made-with", "box==0.9")
    assert ended.code == 2
    assert "box 0.9 did not write the files" in ended.stderr
    assert "no ink" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_was_written_is_kept_checked_and_made_again(harness, repro, tmp_path):
    own = harness.with_environ(HARNESS_CACHE_DIR=str(tmp_path / "cache"))
    first = own("probe", repro, "--with", "box==1.3", "--json").json
    made = first["given"]["HARNESS_ARTIFACTS"]
    assert made["by"] == "box 1.0"
    (written,) = (tmp_path / "cache" / "trees").iterdir()
    assert written.name == made["tree"]
    again = own("probe", repro, "--again", first["key"], "--json").json
    assert again["given"] == first["given"]
    written.chmod(0o755)
    (written / "box").chmod(0o644)
    (written / "box").write_text("something else")
    assert own("probe", repro, "--with", "box==1.3", "--json").json["given"] == first["given"]
    assert (written / "box").read_text() == OLD
    shutil.rmtree(written)
    ended = own("probe", repro, "--again", first["key"])
    assert ended.code == 2
    assert "no longer in the cache" in ended.stderr


def test_a_run_cannot_be_taken_for_one_that_read_something_else(harness, repro):
    read = {
        harness("probe", repro, "--with", "box==1.1", "--made-with", f"box=={by}", "--json").json["key"]
        for by in ("1.0", "1.2")
    }
    assert len(read) == 2


def test_the_file_alone_does_both_steps(repro, house, tmp_path):
    wheel = next(Path(house.root).rglob("box-1.1*.whl"))
    env = {**os.environ, "PYTHONPATH": str(wheel)}
    env.pop("HARNESS_STEP", None)
    assert subprocess.run([sys.executable, str(repro)], env=env, check=False, cwd=tmp_path).returncode == 0


def test_a_matrix_of_both_is_the_table_of_compatibility(harness, repro):
    file = harness.folder / "boxes.toml"
    axes = f'repro = "{repro.stem}"\npackages.box = ["1.0", "1.3"]\nmade.box = ["0.9", "1.0", "1.2"]\n'
    file.write_text(f"[axes]\n{axes}")
    table = harness("matrix", file, "--table").stdout
    assert "| made with box | box=1.0 | box=1.3 |" in table
    assert "| 0.9 | ? | ? |" in table
    assert "| 1.0 | works | **fails** |" in table
    assert "| 1.2 | **fails** | works |" in table
    assert "--made-with" in harness("matrix", file, "--list", "--json").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bisect", "brittle", "--repro", "plain", "--made"), "--made needs a repro with a first step"),
        (("probe", "plain", "--made-with", "box==1.0"), "plain has no first step"),
        (("history", "brittle", "--repro", "plain", "--made"), "--made needs a repro with a first step"),
    ],
)
def test_a_repro_without_a_first_step_refuses_its_options(harness, write_repro, words, said):
    write_repro("brittle", name="plain")
    ended = harness(*words)
    assert ended.code == 2
    assert said in ended.stderr


def test_history_goes_over_either(harness, repro):
    asked = ("history", "box", "--repro", repro, "--json", "--from", "1.0")
    readers, writers = harness(*asked).json, harness(*asked, "--made", "--with", "box==1.0").json
    assert [window["first_bad"] for window in readers["windows"]] == ["1.3"]
    assert [window["first_bad"] for window in writers["windows"]] == ["1.2"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("with = []", "needs with ="),
        ('with = ["box =="]', "is not a requirement"),
        ('with = ["box"]\nstep = 1', "unknown keys: step"),
    ],
)
def test_a_mistake_in_the_metadata_is_one_sentence(harness, repro, made, said):
    tool = TOOL.split("[tool.harness.made]")[0] + f"[tool.harness.made]\n{made}\n"
    repro.write_text(repro_text("box", tool=tool, body=BODY), encoding="utf-8")
    ended = harness("probe", repro)
    assert ended.code == 2
    assert said in ended.stderr


def test_a_bundle_carries_what_its_first_step_wrote(harness, repro):
    over = ("--over", "box==1.2", "--over", "box==1.3")
    packed = harness("bundle", repro, *over, "--output", "carry")
    assert packed.code == 0, packed.stderr
    bundle = harness.folder / "carry"
    ended = run_there(bundle)
    assert ended.code == 0, ended.stdout + ended.stderr
    taken = harness("absorb", bundle)
    assert taken.code == 0, taken.stdout
    assert "\ngood ran to its end" in taken.stdout
    assert "\nbad ValueError: unknown form of box" in taken.stdout
    before = sorted((harness.folder / "results" / "observations").glob("*/*.json"))
    probed = harness("probe", repro, "--with", "box==1.3", "--json")
    assert (probed.code, probed.json["given"]["HARNESS_ARTIFACTS"]["by"]) == (1, "box 1.0")
    assert sorted((harness.folder / "results" / "observations").glob("*/*.json")) == before


def test_a_bundle_carries_inputs(harness):
    path = harness.folder / "repros" / "read_box.py"
    path.parent.mkdir()
    (path.parent / "kept").mkdir()
    (path.parent / "kept" / "box").write_text(NEW, encoding="utf-8")
    tool = TOOL.partition("[tool.harness.made]")[0] + '[tool.harness.inputs.boxes]\nfolder = "kept"\n'
    body = "import os, pathlib, box\nbox.read(pathlib.Path(os.environ['HARNESS_INPUTS'], 'boxes', 'box'))\n"
    path.write_text(repro_text("box", tool=tool, body=body), encoding="utf-8")
    assert harness("bundle", path, "--over", "box==1.0", "--output", "carry").code == 0
    assert run_there(harness.folder / "carry").code == 0
    assert "bad ValueError: unknown form of box" in harness("absorb", harness.folder / "carry").stdout
