"""A browser for pages."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
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


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens a page and gives it, with what its console said and what it asked for; it is closed after the test."""
    pages = []

    def opening(text: str, *, fragment: str = "", **options):
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        opened = browser.new_page(**options)
        pages.append(opened)
        said = []
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda request: said.append(request.url))
        opened.goto(path.as_uri() + fragment)
        said.remove(path.as_uri())
        return opened, said

    yield opening
    for opened in pages:
        opened.close()
