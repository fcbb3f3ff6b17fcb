"""A compressed log is read up to its damage and up to the maximum length."""

from __future__ import annotations

import gzip
import random

import pytest

from harness.run.launch import LOG_KEPT
from harness.run.logs import read_log, read_tail

WHOLE = gzip.compress(random.Random(0).randbytes(200_000).hex().encode())


def damaged(position):
    data = bytearray(WHOLE)
    for i in range(position, min(position + 40, len(data))):
        data[i] ^= 0x5A
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", WHOLE[:30_000], damaged(0), damaged(12), damaged(60_000), damaged(len(WHOLE) - 8), WHOLE + b"x"],
)
def test_a_damaged_log_is_read_up_to_the_damage(tmp_path, data):
    path = tmp_path / "log.gz"
    path.write_bytes(data)
    text = gzip.decompress(WHOLE).decode()
    assert read_log(path)[:1000] in (text[:1000], "")
    assert len(read_log(path)) <= len(text)


def test_a_missing_log_is_empty(tmp_path):
    assert read_log(tmp_path / "none") == ""
    assert read_log(tmp_path) == ""


def test_a_decompression_bomb_is_read_in_part(tmp_path):
    path = tmp_path / "log.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert LOG_KEPT <= len(read_log(path)) < LOG_KEPT + (1 << 20)
    assert len(read_tail(path)) == 64 * 1024
