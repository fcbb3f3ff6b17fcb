"""A file of constraints is replaced only if the harness wrote it and nobody changed it since."""

from __future__ import annotations

import pytest

from harness.cli.output import constraints_text, is_replaceable

TEXT = constraints_text("dep 1.3 broke the tests", ["dep<1.3", "low!=2"])


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        (TEXT, True),
        ("", True),
        (TEXT.replace("dep<1.3", "dep<1.4"), False),
        (f"{TEXT}mine==1\n", False),
        (f"# mine\n{TEXT}", False),
        (TEXT.replace("low!=2\n", ""), False),
        (TEXT + TEXT, False),
        ("dep<1.3\n", False),
    ],
)
def test_a_changed_file_stays(tmp_path, text, replaced):
    path = tmp_path / "constraints.txt"
    path.write_text(text, encoding="utf-8")
    assert is_replaceable(path) is replaced
    assert is_replaceable(tmp_path / "missing")
