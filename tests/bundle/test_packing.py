"""A bundle has exactly what its probes need; a packed probe is the same probe on both machines, or is refused."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from carried import asked, pack
from support import repro_text

from harness.bundle.packing import as_requirements, read_packed
from harness.errors import NoSpace, UserMistake
from harness.model import Pin
from harness.model.repro import parse_repro


def test_a_bundle_names_no_index(back, house):
    texts = [path for path in back.rglob("*") if path.suffix in (".json", ".txt") and "installer" not in path.parts]
    assert len(texts) > 6
    assert not [path for path in texts if "://" in path.read_text() or str(house.root) in path.read_text()]
    assert json.loads((back / "bundle.json").read_text())["schema"] == 5


def test_a_folder_in_use_is_left_alone(parts, tmp_path, back):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserMistake, match="is not an empty folder"):
        pack(parts, tmp_path / "mine", asked(parts, "1.2"))
    with pytest.raises(UserMistake, match="is not an empty folder"):
        pack(parts, tmp_path / "mine" / "thesis.txt", asked(parts, "1.2"))
    with pytest.raises(UserMistake, match="is not an empty folder"):
        pack(parts, back, asked(parts, "1.2"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_created_is_reported(parts, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NoSpace, match="can't write to"):
        pack(parts, tmp_path / "file" / "carry", asked(parts, "1.2"))


def test_an_unpackable_probe_is_reported_and_the_rest_is_packed(parts, tmp_path, run_once):
    one = asked(parts, "1.2")
    damaged = evolve(one, label="damaged", probe=of(one, "damaged==1.3"))
    unmet = evolve(one, label="unmet", probe=of(one, "unmet==1.3"))
    again = evolve(one, label="again")
    packed = pack(parts, tmp_path / "carry", unmet, damaged, one, again, like=run_once)
    assert [probe.label for probe in packed.probes] == ["brittle 1.2"]
    assert [label for label, _ in packed.failed] == ["damaged", "again"]
    assert "is not the file that the index lists" in packed.failed[0][1]
    assert "same as brittle 1.2" in packed.failed[1][1]
    assert [(known.label, seen.outcome.value) for known, seen in packed.known] == [("unmet", "unresolvable")]
    assert not list((tmp_path / "carry").rglob("*.pyc"))
    assert [path.name for path in (tmp_path / "carry" / "wheels").iterdir()] == ["brittle-1.2-py3-none-any.whl"]


def of(one, requirement):
    repro = parse_repro(repro_text(requirement.split("==")[0]), name="other", path="other.py")
    return evolve(one.probe, repro=repro, combination=evolve(one.probe.combination, requirements=(requirement,)))


def test_no_folder_is_left_if_everything_is_known(parts, tmp_path):
    parts.prober.execute(parts.prober.prepare(asked(parts, "1.2").probe))
    packed = pack(parts, tmp_path / "carry", asked(parts, "1.2"))
    assert (packed.probes, [one.label for one, _ in packed.known]) == ((), ["brittle 1.2"])
    assert not (tmp_path / "carry").exists()


def test_a_packed_probe_is_read_back_unchanged(back, parts):
    folder = next(
        path for path in (back / "probes").iterdir() if "brittle==1.6" in (path / "requirements.txt").read_text()
    )
    packed, probe = read_packed(folder)
    was = asked(parts, "1.6").probe
    assert (probe.repro.digest, probe.combination) == (was.repro.digest, was.combination)
    assert (packed.label, packed.probe.key, packed.from_node, packed.probe.lock.python) == (
        "brittle 1.6",
        folder.name,
        {},
        was.combination.python,
    )


def test_a_probe_that_is_none_is_refused(back):
    folder = next((back / "probes").iterdir())
    for text in ("{", "[]", "{}"):
        (folder / "probe.json").write_text(text)
        with pytest.raises(UserMistake, match="can't be read"):
            read_packed(folder)


def test_requirements_name_the_packed_file():
    wheel = Pin("brittle", "1.2", "brittle-1.2-py3-none-any.whl", "ab" * 32)
    assert as_requirements([wheel]) == f"brittle==1.2 --hash=sha256:{'ab' * 32}\n"
