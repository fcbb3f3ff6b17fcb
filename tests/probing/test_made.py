"""Repros of two steps: what one release wrote, another reads."""

from __future__ import annotations

import shutil

import pytest
from carried import run_there
from support import repro_text

# From 1.2 on a box is written in another form; 1.0 can read only the old form, 1.3 only the new one.
OLD, NEW = "old", "new"
BOX = """
FORM = {form!r}
READS = {reads!r}

def write(path):
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


@pytest.fixture(scope="module", autouse=True)
def boxes(house):
    for version, form, reads in (
        ("1.0", OLD, (OLD,)),
        ("1.1", OLD, (OLD, NEW)),
        ("1.2", NEW, (OLD, NEW)),
        ("1.3", NEW, (NEW,)),
    ):
        house.add("box", version, files={"box.py": BOX.format(form=form, reads=reads)})


@pytest.fixture
def repro(harness):
    path = harness.folder / "repros" / "kept_box.py"
    path.parent.mkdir()
    path.write_text(repro_text("box", tool=TOOL, body=BODY), encoding="utf-8")
    return path


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
    tool = 'inputs = "kept"\n' + TOOL.partition("[tool.harness.made]")[0]
    body = "import os, pathlib, box\nbox.read(pathlib.Path(os.environ['HARNESS_INPUTS'], 'box'))\n"
    path.write_text(repro_text("box", tool=tool, body=body), encoding="utf-8")
    assert harness("bundle", path, "--over", "box==1.0", "--output", "carry").code == 0
    assert run_there(harness.folder / "carry").code == 0
    assert "bad ValueError: unknown form of box" in harness("absorb", harness.folder / "carry").stdout


@pytest.mark.parametrize("where", ["../private", "{private}", "~/private", "link", ".", ".ssh", "data/../../private"])
def test_a_header_opens_no_folder_outside_its_own(harness, where):
    """What a stranger wrote into a repro is no reason to show a folder of the user to its runs, or to pack it."""
    own, private = harness.folder / "from-a-stranger", harness.folder / "private"
    for folder in (own / ".ssh", own / "data", private):
        folder.mkdir(parents=True)
        (folder / "key").write_text("do not read")
    (own / "link").symlink_to(private)
    path = own / "opens.py"
    tool = f"inputs = {where.format(private=private)!r}\n" + TOOL.partition("[tool.harness.made]")[0]
    path.write_text(repro_text("box", tool=tool, body="import box\n"), encoding="utf-8")
    ended = harness.with_environ(HOME=str(harness.folder))(
        "bundle", path, "--over", "box==1.3", "--output", harness.folder / "carry"
    )
    assert ended.code == 2
    assert "inputs: " in ended.stderr
    assert not (harness.folder / "carry" / "folders").exists()
