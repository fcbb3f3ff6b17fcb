"""The emulated cards are plausible, and an unknown capability is refused."""

from __future__ import annotations

import pytest

from harness.run.inside.emulation.card import CARDS, card


@pytest.mark.parametrize("capability", CARDS)
def test_a_card_has_the_requested_capability(capability):
    found = card(capability)
    assert f"{found.major}.{found.minor}" == capability
    assert found.capability == (found.major, found.minor)
    assert found.arch == int(capability.replace(".", ""))
    assert found.shared_memory_per_block <= found.shared_memory_per_block_optin
    assert found.shared_memory_per_block_optin <= found.shared_memory_per_multiprocessor
    assert found.total_memory > 8 * 2**30


def test_an_unknown_capability_is_refused_with_a_list():
    with pytest.raises(ValueError, match=r"'6\.1'; there are 7\.0, 7\.5, 8\.0"):
        card("6.1")
