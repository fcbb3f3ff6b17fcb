"""Whatever the input, every parser ends quickly, with one sentence for what it cannot read."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seeds import SEEDS
from targets import TARGETS, check

SOON_S = 20.0
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
DEEP = [b"[" * 200_000, b'{"a":' * 100_000, b"a = " + b"[" * 100_000, b"<a>" * 20_000, b"9" * 10_000]
LONG = [
    b"- " * 100_000,
    b"a:\n" * 3_000,
    b"a-" * 300_000,
    b"eyJ-" * 100_000,
    b"token=" * 100_000,
    b"://" * 200_000,
    b"only " * 100_000,
    b"there is no version of " * 20_000,
    gzip.compress(bytes(200 << 20)),
]


@st.composite
def damaged(draw, seed: bytes):
    """A valid text with one part replaced, or one value of another type."""
    try:
        document = json.loads(seed)
    except ValueError:
        document = None
    if document is not None and draw(st.booleans()):
        return json.dumps(_changed(draw, document)).encode()
    begin = draw(st.integers(0, len(seed)))
    end = draw(st.integers(begin, len(seed)))
    return seed[:begin] + draw(st.binary(max_size=12) | st.text(max_size=6).map(str.encode)) + seed[end:]


def _changed(draw, value):
    """The same document with one part replaced by arbitrary JSON."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _changed(draw, value[at]), *value[at + 1 :]]
    return draw(JSON)


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nearly_valid_input_is_read_or_refused(name, data):
    check(name, data.draw(st.sampled_from(SEEDS[name]).flatmap(damaged)))


@pytest.mark.parametrize("name", TARGETS)
@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | JSON.map(json.dumps).map(str.encode))
def test_noise_is_refused(name, data):
    check(name, data)


@pytest.mark.parametrize("name", TARGETS)
def test_deep_or_long_input_is_refused_quickly(name):
    for data in (*DEEP, *LONG):
        begun = time.process_time()
        check(name, data)
        assert time.process_time() - begun < SOON_S, data[:20]


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_valid(name):
    assert SEEDS[name]
    for seed in SEEDS[name]:
        check(name, seed)
