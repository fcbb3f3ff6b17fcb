"""A packed probe is the same probe on both machines, or is refused."""

from __future__ import annotations

import json

import pytest
from carried import asked

from harness.bundle.packing import as_requirements, read_packed
from harness.bundle.wheels import PackedWheel
from harness.errors import UserMistake


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


def test_another_schema_or_none_is_refused(back):
    folder = next((back / "probes").iterdir())
    packed = json.loads((folder / "probe.json").read_text())
    (folder / "probe.json").write_text(json.dumps({**packed, "schema": 3}))
    with pytest.raises(UserMistake, match="schema 3"):
        read_packed(folder)
    for text in ("{", "[]", "{}"):
        (folder / "probe.json").write_text(text)
        with pytest.raises(UserMistake, match="can't be read"):
            read_packed(folder)


def test_requirements_name_the_packed_file():
    wheel = PackedWheel("brittle", "1.2", "brittle-1.2-py3-none-any.whl", "ab" * 32)
    assert as_requirements([wheel]) == f"brittle==1.2 --hash=sha256:{'ab' * 32}\n"
