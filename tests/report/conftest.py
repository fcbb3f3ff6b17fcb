"""A browser for the tests of pages."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium: Debian's package through Playwright's client."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright's Python client is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium (Debian's package of that name has it)")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()
