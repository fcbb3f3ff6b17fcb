"""`harness probe`: one run, its exit code, and repeating the same run."""

from __future__ import annotations

import json
import subprocess
import sys
import venv

import pytest
from support import MESSAGE, step_source
from wheelhouse import Wheelhouse


def observed(harness, *arguments):
    return harness("probe", *arguments, "--json").json


def test_a_given_requirement_replaces_the_one_in_the_repro(harness, write_repro):
    write_repro("brittle", dependencies='["brittle==1.0"]')
    assert observed(harness, "brittle_step", "--with", "brittle==1.6")["requirements"] == ["brittle==1.6"]


def test_without_a_signature_only_the_outcome_counts(harness, write_repro):
    write_repro("brittle", tool="")
    assert harness("probe", "brittle_step", "--with", "brittle==1.2").code == 0
    failed = harness("probe", "brittle_step", "--with", "brittle==1.6")
    assert failed.code == 1
    assert failed.stdout.startswith(f"raised: RuntimeError: {MESSAGE}")


def test_a_parameter_reaches_the_repro(harness, write_repro):
    body = """
    import json, os
    params = json.loads(os.environ["HARNESS_PARAMS"])
    json.dump({"got": params["layers"] + len(params["name"])}, open(os.environ["HARNESS_METRICS"], "w"))
    """
    write_repro("brittle", body=body)
    seen = observed(harness, "brittle_step", "--param", "layers=3", "--param", "name=tiny")
    assert seen["metrics"] == {"got": 7.0}
    assert seen["params"] == {"layers": 3, "name": "tiny"}


def test_stored_runs_are_reused_unless_fresh(harness, write_repro):
    write_repro("brittle")
    first, second = (observed(harness, "brittle_step", "--with", "brittle==1.2") for _ in range(2))
    assert first == second
    fresh = observed(harness, "brittle_step", "--with", "brittle==1.2", "--fresh")
    assert (fresh["attempt"], fresh["lock"]) == (1, first["lock"])
    assert fresh["key"] != first["key"]


def test_each_attempt_has_another_hash_seed_and_again_repeats_it(harness, write_repro):
    write_repro("brittle")
    first, second = (observed(harness, "brittle_step", "--with", "brittle==1.2", "--fresh") for _ in range(2))
    again = [observed(harness, "--again", one["key"]) for one in (first, second)]
    assert [one["attempt"] for one in (first, second, *again)] == [0, 1, 2, 3]
    seeds = [one["machine"]["hash_seed"] for one in (first, second, *again)]
    assert seeds[:2] == seeds[2:]
    assert seeds[0] != seeds[1]


def test_again_runs_the_same_lock_even_with_newer_releases(harness, write_repro):
    write_repro("brittle")
    first = observed(harness, "brittle_step", "--with", "brittle==1.6")
    ended = harness("probe", "--again", first["key"][:12], "--json")
    again = json.loads(ended.stdout)
    assert ended.code == 1
    assert (again["lock"], again["attempt"], again["outcome"]) == (first["lock"], 1, "raised")
    assert harness("probe", "--again", first["key"], "--json").json["attempt"] == 2


def test_again_needs_the_repro_to_be_named_where_the_results_lack_it(harness, write_repro):
    write_repro("brittle").rename(harness.folder / "elsewhere.py")
    key = observed(harness, "./elsewhere.py", "--with", "brittle==1.2")["key"]
    for record in harness.folder.glob("results/repros/*.json"):
        record.unlink()
    ended = harness("probe", "--again", key)
    assert (ended.code, f"harness probe --again {key} REPRO" in ended.stderr) == (2, True)
    assert harness("probe", "./elsewhere.py", "--again", key).code == 0


def test_again_runs_with_the_folder_as_it_was(harness, write_repro, tmp_path):
    write_repro("brittle")
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "brittle"\nversion = "2"\n')
    (folder / "brittle.py").write_text(step_source(2, broken=True))
    named = f"brittle @ {folder}"
    first = observed(harness, "brittle_step", "--with", named)
    assert first["outcome"] == "raised"
    again = observed(harness, "--again", first["key"], "--with", named)
    assert (again["outcome"], again["attempt"], again["repro_digest"]) == ("raised", 1, first["repro_digest"])
    assert observed(harness, "--again", first["key"])["outcome"] == "raised"
    (folder / "brittle.py").write_text(step_source(2, broken=False))
    assert observed(harness, "--again", first["key"])["outcome"] == "raised"
    assert harness("probe", "--again", first["key"], "--with", named).code == 2
    assert harness("probe", "--again", first["key"], "--with", "brittle==1.2").code == 2


def test_again_refuses_a_repro_that_is_named_and_has_changed(harness, write_repro):
    write_repro("brittle")
    key = observed(harness, "brittle_step", "--with", "brittle==1.2")["key"]
    write_repro("brittle", body="import brittle")
    named = harness("probe", "brittle_step", "--again", key)
    assert (named.code, "brittle_step has changed since" in named.stderr) == (2, True)


def test_again_prefers_the_whole_id_and_refuses_files_of_two_releases(harness, write_repro):
    """The forked run of a mixture has the id of the fresh one, followed by "+fork"."""
    write_repro("brittle")
    key = observed(harness, "brittle_step", "--with", "brittle==1.2")["key"]
    record = next((harness.folder / "results" / "observations").glob(f"*/{key}.json"))
    told = json.loads(record.read_text()) | {"key": f"{key}+fork", "mixture": "brittle.py as in brittle 1.1"}
    record.with_name(f"{key}+fork.json").write_text(json.dumps(told))
    assert observed(harness, "--again", key)["attempt"] == 1
    refused = harness("probe", "--again", f"{key}+fork")
    assert (refused.code, "with files of two releases (brittle.py as in brittle 1.1)" in refused.stderr) == (2, True)


def test_a_repro_runs_in_an_existing_environment(harness, write_repro, tmp_path):
    write_repro("brittle")
    venv.create(tmp_path / "own", with_pip=False)
    packages = next((tmp_path / "own").glob("lib/python*/site-packages"))
    (packages / "brittle.py").write_text("def step(): pass\n")
    info = packages / "brittle-0.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brittle\nVersion: 0.7\n")
    before = sorted(path.relative_to(packages) for path in packages.rglob("*"))
    python = tmp_path / "own" / "bin" / "python"
    ended = harness("probe", "brittle_step", "--python", python, "--json")
    assert ended.code == 0
    pins = {pin["name"]: pin["version"] for pin in ended.json["lock"]["pins"]}
    assert pins["brittle"] == "0.7"
    assert [
        p for p in packages.rglob("*") if p.relative_to(packages) not in before and "__pycache__" not in str(p)
    ] == []
    refused = harness("probe", "brittle_step", "--python", python, "--with", "brittle==1.2")
    assert (refused.code, "--with and --hold can't change it" in refused.stderr) == (2, True)


def pins(python) -> str:
    """The packages of an interpreter started by hand."""
    names = "[f'{d.name} {d.version}' for d in importlib.metadata.distributions()]"
    words = [python, "-c", f"import importlib.metadata; print(*sorted({names}))"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_the_environment_stays_in_the_requested_folder(harness, write_repro, tmp_path):
    """It can be used afterwards; only another lock rebuilds it."""
    write_repro("brittle")
    folder = tmp_path / "look here"
    asked = ("probe", "brittle_step", "--environment", folder, "--with")
    assert harness(*asked, "brittle==1.2", "--json").code == 0
    assert pins(folder / "bin" / "python") == "brittle 1.2"
    made = (folder / "pyvenv.cfg").stat().st_ino
    assert harness(*asked, "brittle==1.2").code == 0
    assert (folder / "pyvenv.cfg").stat().st_ino == made
    assert harness(*asked, "brittle==1.6").code == 1
    assert pins(folder / "bin" / "python") == "brittle 1.6"
    assert sorted(path.name for path in tmp_path.iterdir() if "building" in path.name) == []


def test_a_stored_run_still_leaves_its_environment(harness, write_repro, tmp_path):
    """The store answers, and the environment is still built."""
    write_repro("brittle")
    first = observed(harness, "brittle_step", "--with", "brittle==1.2")
    assert observed(harness, "brittle_step", "--with", "brittle==1.2", "--environment", tmp_path / "new") == first
    assert pins(tmp_path / "new" / "bin" / "python") == "brittle 1.2"


def test_a_folder_with_other_files_is_not_replaced(harness, write_repro, tmp_path):
    write_repro("brittle")
    kept = tmp_path / "mine"
    kept.mkdir()
    (kept / "thesis.txt").write_text("years of work")
    refused = harness("probe", "brittle_step", "--with", "brittle==1.2", "--environment", kept)
    assert (refused.code, "was not created by the harness" in refused.stderr) == (2, True)
    assert (kept / "thesis.txt").read_text() == "years of work"
    both = harness("probe", "brittle_step", "--environment", kept, "--python", sys.executable)
    assert (both.code, "give one of them" in both.stderr) == (2, True)


def test_an_era_is_the_day_of_the_newest_release_that_is_pinned(harness, write_repro):
    """`brittle` has one release a month from January 2023 on."""
    write_repro("brittle")
    seen = observed(harness, "brittle_step", "--with", "brittle==1.2", "--as-of", "era")
    assert seen["as_of"] == "2023-03-01T13:00:00+00:00"
    unpinned = harness("probe", "brittle_step", "--as-of", "era")
    assert (unpinned.code, "needs a release to take the day from" in unpinned.stderr) == (2, True)


HELD = """
[tool.harness.subjects.brittle]
hold = ["steady==1.0"]
[tool.harness.subjects.steady]
hold = ["brittle==1.2"]
"""


@pytest.mark.parametrize(
    ("words", "versions"),
    [
        (("--with", "brittle==1.4"), {"brittle": "1.4", "steady": "1.0"}),
        (("--with", "steady==2.0"), {"brittle": "1.2", "steady": "2.0"}),
        ((), {"brittle": "1.7", "steady": "1.0"}),
        (("--with", "brittle==1.4", "--hold", "none"), {"brittle": "1.4", "steady": "2.0"}),
        (("--with", "brittle==1.4", "--hold", "steady==1.5"), {"brittle": "1.4", "steady": "1.5"}),
        (("--with", "brittle==1.4", "--with", "steady>1"), {"brittle": "1.4", "steady": "2.0"}),
    ],
)
def test_the_holds_of_a_repro_count_for_the_subject_that_is_named(tmp_path, harness, write_repro, words, versions):
    """As in a bisection: for its default subject where none is named; --hold and --with change them."""
    house = Wheelhouse(tmp_path / "index")
    for version in ("1.2", "1.4", "1.7"):
        house.add("brittle", version, files={"brittle.py": ""})
    for version in ("1.0", "1.5", "2.0"):
        house.add("steady", version, files={"steady.py": ""})
    write_repro("brittle", dependencies='["brittle", "steady"]', tool=HELD, body="import brittle, steady\n")
    seen = observed(harness.with_environ(**house.environ), "brittle_step", *words)
    assert {pin["name"]: pin["version"] for pin in seen["lock"]["pins"]} == versions
