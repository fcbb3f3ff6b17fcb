"""`harness bundle` and `harness absorb`: the round trip, and what each prints."""

from __future__ import annotations

import json
import shutil

from carried import run_there


def test_a_run_on_another_machine_answers_a_later_probe_here(harness, write_repro):
    write_repro("brittle")
    packed = harness("bundle", "brittle_step", "--over", "brittle==1.2", "--over", "brittle==1.6", "--output", "carry")
    assert packed.code == 0
    assert "packed brittle==1.6 (1 wheel)" in packed.stdout
    assert "2 of 2  brittle==1.6: fetching 1 wheel" in packed.stderr
    bundle = shutil.copytree(harness.folder / "carry", harness.folder / "node" / "carry")
    assert harness("absorb", bundle).code == 3
    assert run_there(bundle).code == 0
    taken = harness("absorb", bundle)
    assert taken.code == 0
    assert "\ngood ran to its end" in taken.stdout
    assert "\nbad RuntimeError: the step is broken" in taken.stdout
    assert "2 observations taken, 0 known already, 0 missing, 0 refused" in taken.stdout
    assert "0 observations taken, 2 known already" in harness("absorb", bundle).stdout
    before = records(harness.folder / "results")
    probed = harness("probe", "brittle_step", "--with", "brittle==1.6", "--json")
    assert (probed.code, probed.json["key"] in before) == (1, True)
    assert records(harness.folder / "results") == before
    here = harness("probe", "brittle_step", "--with", "brittle==1.6", "--json", "--results", "others").json
    assert {name: here[name] for name in ("key", "outcome", "exception", "lock", "loaded", "machine")} == {
        name: probed.json[name] for name in ("key", "outcome", "exception", "lock", "loaded", "machine")
    }
    known = harness("bundle", "brittle_step", "--over", "brittle==1.6", "--output", "again")
    assert (known.code, "known already brittle==1.6: bad, RuntimeError" in known.stdout) == (0, True)
    fresh = harness("bundle", "brittle_step", "--over", "brittle==1.6", "--output", "again", "--fresh")
    assert "packed brittle==1.6" in fresh.stdout
    (key,) = json.loads((harness.folder / "again" / "bundle.json").read_text())["jobs"]
    assert key not in before
    (bundle / probed.json["key"] / "job.json").write_text("{}")
    refused = harness("absorb", bundle)
    assert (refused.code, f"refused {probed.json['key']}" in refused.stdout) == (2, True)


def records(folder):
    return {path.stem: path.read_bytes() for path in folder.glob("observations/*/*.json")}


def test_a_mistake_gives_one_sentence_and_leaves_no_files(harness, write_repro):
    write_repro("brittle")
    ask = ("bundle", "brittle_step", "--output", "carry")
    for code, words, arguments in (
        (2, "--build", (*ask, "--build", "brittle")),
        (2, "has no job", ("job", "run", "repros")),
        (2, "no repro named", ("bundle", "brittle_stop", "--output", "carry")),
        (2, "needs a release", (*ask, "--as-of", "era")),
        (2, "takes era, none or a date", (*ask, "--as-of", "noon")),
        (2, "is not a bundle", ("absorb", "repros")),
        (6, "can't write to", ("bundle", "brittle_step", "--output", "repros/brittle_step.py/carry")),
    ):
        ended = harness(*arguments)
        assert (ended.code, words in ended.stderr) == (code, True), (arguments, ended)
    assert not (harness.folder / "carry").exists()


def test_an_unpackable_probe_makes_the_exit_code_unsure(harness, write_repro):
    write_repro("damaged")
    ended = harness("bundle", "damaged_step", "--over", "damaged==1.3", "--output", "carry")
    assert (ended.code, "not packed damaged==1.3:" in ended.stdout) == (3, True)
    assert not (harness.folder / "carry").exists()
