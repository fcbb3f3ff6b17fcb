"""What a removed name needs is put back with it."""

from __future__ import annotations

from harness.culprit.put_back import restored


def test_what_is_put_back_has_only_what_the_newer_text_lacks() -> None:
    """The definition comes with the names that it needs, and without those that are still there."""
    old = "import os\n_SAFE = 1\n\n\ndef other():\n    pass\n\n\ndef quote():\n    return os, _SAFE\n"
    assert restored(("quote",), old, "import os\n") == (
        "import os\n\n_SAFE = 1\n\ndef quote():\n    return os, _SAFE\n"
    )
    assert restored(("Cart", "pay"), old, "import os\n") is None
    assert restored(("missing",), old, "import os\n") is None
