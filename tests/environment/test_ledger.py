"""The ledger saves reading files, and nothing else depends on it."""

from __future__ import annotations

import os

import pytest

from harness.environment.ledger import Ledger, content_of, files_below, signature, state_of


@pytest.fixture
def recorded(tmp_path):
    """A folder with two files, its ledger, and their states, not noted yet."""
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "one").write_text("1")
    (folder / "below" / "two").symlink_to("../one")
    found = files_below(folder)
    return folder, Ledger(tmp_path / "files.db"), {p: state_of(s, content_of(folder / p, s)) for p, s in found.items()}


def rewritten(path, text):
    """Write into a file in place, with its size and modification time as before."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_files_are_read_once_and_again_when_their_change_time_moved(recorded):
    folder, ledger, states = recorded
    assert ledger.compare(folder, states) == ([], [])
    found = files_below(folder)
    assert ledger.known(found.values()).keys() == {signature(one) for one in found.values()}
    os.link(folder / "one", folder.parent / "linked")
    assert signature((folder / "one").stat()) not in ledger.known(files_below(folder).values())
    assert ledger.compare(folder, states) == ([], [])
    assert signature((folder / "one").stat()) in ledger.known(files_below(folder).values())


def test_a_write_in_place_is_found(recorded):
    folder, ledger, states = recorded
    assert ledger.compare(folder, states) == ([], [])
    rewritten(folder / "one", "2")
    assert ledger.compare(folder, states) == (["one"], [])
    rewritten(folder / "one", "1")
    (folder / "three").write_text("")
    (folder / "below" / "two").unlink()
    assert ledger.compare(folder, states) == (["below/two"], ["three"])


def test_a_removed_link_leaves_its_file_known(recorded):
    folder, ledger, states = recorded
    link = folder.parent / "linked"
    os.link(folder / "one", link)
    ledger.compare(folder, states)
    ledger.unlink([(str(link), str(folder / "one"))])
    assert not link.exists()
    assert signature((folder / "one").stat()) in ledger.known([(folder / "one").stat()])


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_ledger_is_replaced(recorded, content):
    folder, ledger, states = recorded
    for _ in range(2):
        ledger.path.write_bytes(content)
        assert ledger.compare(folder, states) == ([], [])
        assert ledger.compare(folder, states) == ([], [])
        assert ledger.known(files_below(folder).values())
        rewritten(folder / "one", "2")
        assert ledger.compare(folder, states) == (["one"], [])
        rewritten(folder / "one", "1")


def test_a_ledger_that_cannot_be_written_costs_nothing_but_time(recorded, tmp_path):
    folder, _, states = recorded
    nowhere = Ledger(tmp_path / "missing" / "files.db")
    assert nowhere.compare(folder, states) == ([], [])
    rewritten(folder / "one", "2")
    assert nowhere.compare(folder, states) == (["one"], [])
