"""The page of a matrix in a browser: a click opens a log, in both colour schemes, whatever the log contains."""

from __future__ import annotations

import re

import pytest
from attrs import evolve
from standing_matrices import SMALL, cell_of, large, matrix_of, run_of
from test_render import HOSTILE

from harness.matrix.running import Standing
from harness.model import Judgement, Verdict
from harness.report.matrix.building import make_matrix_content
from harness.report.templating import filled

LOG = f"{HOSTILE}\nthe last line"


def text_of(matrix) -> str:
    content = make_matrix_content(matrix, lambda observation: f"{LOG} of {observation.key}")
    return filled("matrix.html.j2", r=content)


def hostile():
    """A matrix in which every text tries to break out."""
    cell = evolve(cell_of(shop="1.0", case=HOSTILE), name=f'"{HOSTILE}')
    run = run_of(cell, Verdict.BAD, drift=(HOSTILE,))
    run = evolve(run, judgement=Judgement(Verdict.BAD, HOSTILE))
    other = evolve(cell_of(shop="1.1", case=HOSTILE), name=f'"{HOSTILE}!')
    return matrix_of(
        (Standing(cell, run), Standing(other, hindered=HOSTILE)),
        name=HOSTILE,
        command=HOSTILE,
        left_out=((HOSTILE, HOSTILE),),
    )


def test_the_page_asks_for_nothing_from_outside():
    text = filled("matrix.html.j2", r=make_matrix_content(SMALL, lambda observation: "a log"))
    found = re.findall(r"""\s(?:src|href)=["']?([^"'\s>]+)""", text)
    assert [address for address in found if not address.startswith("#")] == ["data:,"]
    assert "@import" not in text
    assert "url(" not in text


@pytest.mark.parametrize("matrix", [SMALL, hostile()], ids=["small", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_clicking_a_cell_opens_its_log(open_page, matrix, scheme):
    opened, said = open_page(text_of(matrix), color_scheme=scheme, viewport={"width": 1200, "height": 900})
    assert opened.locator("dialog[open]").count() == 0
    opened.locator(".chip.bad").first.click()
    panel = opened.locator("dialog[open]")
    assert panel.count() == 1
    log = panel.locator(".log pre")
    assert log.is_visible()
    assert log.inner_text().startswith(f"{HOSTILE}\nthe last line of key of ")
    assert "harness probe sale" in panel.inner_text()
    opened.keyboard.press("Escape")
    assert opened.locator("dialog[open]").count() == 0
    assert [line for line in said if not line.startswith("data:")] == []
    assert opened.evaluate("document.images.length + document.scripts.length") == 1


def test_each_cell_opens_its_own_panel(open_page):
    opened, _ = open_page(text_of(SMALL))
    for chip in opened.locator(".chip").all():
        chip.click()
        panel = opened.locator("dialog[open]")
        assert f"#{panel.get_attribute('id')}" == chip.get_attribute("href")
        label, _, _ = chip.get_attribute("title").partition(":")
        assert panel.locator("h2").inner_text().split() == [*chip.inner_text().split(), *label.split()]
        panel.locator(".close").click()


def test_verdicts_do_not_rely_on_colour(open_page):
    """No two verdicts look the same in either scheme, and colour alone never tells them apart."""
    for scheme in ("light", "dark"):
        opened, _ = open_page(text_of(SMALL), color_scheme=scheme)
        chips = opened.locator(".chip").all()
        assert [chip.inner_text() for chip in chips] == ["good", "bad", "bad", "skipped", "not run"]
        style = "e => { const s = getComputedStyle(e); return s.backgroundColor + s.borderStyle; }"
        assert len({chip.evaluate(style) for chip in chips}) == 4


def test_a_panel_links_to_the_older_and_newer_cell(open_page):
    opened, _ = open_page(text_of(SMALL))
    opened.locator(".chip.bad").first.click()
    title = opened.locator("dialog[open] h2")
    opened.locator("dialog[open] a[rel=prev]").click()
    assert "shop 1.9, case=whole" in title.inner_text()
    opened.keyboard.press("ArrowRight")
    assert "shop 1.10, case=whole" in title.inner_text()


def test_an_address_with_a_cell_opens_it(open_page):
    (panel, *_) = make_matrix_content(SMALL, lambda observation: "").panels
    opened, _ = open_page(text_of(SMALL), fragment=f"#{panel.id}")
    assert opened.locator("dialog[open]").get_attribute("id") == panel.id


def test_logs_open_without_javascript(open_page):
    opened, _ = open_page(text_of(SMALL), java_script_enabled=False)
    log = opened.locator("dialog .log pre").nth(1)
    assert not log.is_visible()
    opened.locator(".chip.bad").first.click()
    assert log.is_visible()


@pytest.mark.parametrize("matrix", [large(6), hostile()], ids=["large", "hostile"])
def test_a_phone_does_not_scroll_sideways(open_page, matrix):
    """Wide content scrolls inside its own box."""
    opened, _ = open_page(text_of(matrix), viewport={"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    opened.locator(".chip.bad").first.click()
    assert opened.locator("dialog[open]").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_cells_can_be_filtered_by_verdict_and_text(open_page):
    opened, _ = open_page(text_of(SMALL))

    def shown():
        return [
            row.locator("td").nth(1).inner_text() for row in opened.locator("table.filtered tbody tr:visible").all()
        ]

    assert shown() == ["good", "bad", "bad", "skipped", "not run"]
    opened.click("button[value=not-run]")
    assert shown() == ["not run"]
    opened.click("button[value=all]")
    opened.fill(".filter input", "1.10")
    assert shown() == ["bad", "bad"]


def test_clicking_a_point_opens_its_cell(open_page):
    opened, said = open_page(text_of(SMALL))
    opened.locator(".chart .dot.good").first.click()
    assert "shop 1.9" in opened.locator("dialog[open] h2").inner_text()
    assert [line for line in said if not line.startswith("data:")] == []
