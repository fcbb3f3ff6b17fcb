"""A report as Markdown, HTML and JSON, whatever the text; long ones are shortened for an issue."""

from __future__ import annotations

import json
import re

import pytest
from answers import ADVANCED, GOOD_RUN, KEPT, REVERTED, UNPROVED, altering, found, kept, lock_of
from attrs import evolve
from markdown_it import MarkdownIt

from harness.bisection.answer import Status
from harness.model import Change, Verdict
from harness.model.verdict import Step
from harness.report.answer import report_page
from harness.report.page import RENDERERS, Page

HOSTILE = "</script><script>throw 1</script> ```\n~~~ <img src=x onerror=alert(1)> {{ 7*7 }} | `a` </details>"
BARE = kept(status=Status.NO_FAILURE, sides=(), findings=(), steps=(), left_out={})


def hostile():
    """An answer in which every text tries to break out."""
    culprit = found(REVERTED, evolve(ADVANCED, sentence=HOSTILE, reason=HOSTILE))
    region = evolve(culprit[-1].regions[0], diff=f"@@ -1 +1 @@\n-{HOSTILE}\n", function=HOSTILE)
    culprit = (evolve(culprit[-1], regions=(region,), notes=(HOSTILE,)),)
    steps = (*KEPT.answer.steps, Step("1.5", Verdict.SKIP, HOSTILE, "o5", cached=False, seconds=1.0))
    repro = evolve(KEPT.repro, source=f"x = '''{HOSTILE}'''\n", summary=HOSTILE)
    return kept(sentence=HOSTILE, findings=culprit, steps=steps, left_out={"1.3.1": HOSTILE}, repro=repro)


@pytest.mark.parametrize("style", RENDERERS)
@pytest.mark.parametrize("answer", [KEPT, BARE, hostile()], ids=["whole", "bare", "hostile"])
def test_every_answer_can_be_rendered(style, answer):
    text = RENDERERS[style](report_page(answer, logs={GOOD_RUN.key: HOSTILE}))
    assert answer.answer.subject in text


def test_the_report_names_what_changed_beside_the_culprit_and_what_was_left_out():
    text = Page.markdown(report_page(KEPT))
    assert "- **also installed differently**: coin 0.9 -&gt; 1.0" in text
    assert "- **also changed with 1.1**: coin 1.0 -&gt; 0.9 (not held)" in text
    assert "- **1.3.1**: yanked: it burns" in text
    assert KEPT.repro.source in text


@pytest.mark.parametrize("style", ["html", "markdown"])
def test_files_changed_by_a_run_are_listed(style):
    text = RENDERERS[style](report_page(altering({"1.2": ("lib/python3.11/site-packages/till/data.py",)})))
    assert "till/data.py" in text
    assert "till/data.py" not in RENDERERS[style](report_page(KEPT))


def test_markdown_names_its_recipient_first():
    elsewhere = kept(findings=found(REVERTED, ADVANCED, package=Change("coin", "0.9", "1.0")))
    assert Page.markdown(report_page(elsewhere)).startswith("> **This is for the maintainers of coin, not of shop")


def test_text_cannot_break_out_in_markdown():
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(Page.markdown(report_page(hostile())))
    blocks = [token for token in tokens if token.type == "fence"]
    assert any(HOSTILE in block.content for block in blocks)
    raw = [token.content for token in tokens if token.type == "html_block"]
    raw += [part.content for token in tokens if token.children for part in token.children if part.type == "html_inline"]
    assert [text for text in raw if "script" in text or "img" in text] == []
    opened = sum(text.count("<details>") for text in raw)
    assert opened == sum(text.count("</details>") for text in raw) > 0
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings[-1] == "Not tried"


def test_markdown_stays_below_the_limit_of_an_issue():
    many = lock_of(**{f"package_{n}": "1.0" for n in range(700)})
    sides = tuple(evolve(side, lock=evolve(many, pins=(*many.pins, *side.lock.pins))) for side in KEPT.answer.sides)
    content = report_page(kept(sides=sides))
    text = Page.markdown(content)
    assert len(text) < 65_536
    assert text.endswith("Left out for length: details, which the HTML report has.\n")
    assert "--hash=sha256:" not in text
    assert "package_699==1.0 --hash" in Page.html(content)


def test_json_has_both_sides():
    record = json.loads(Page.json(report_page(KEPT)))
    good, bad = record["culprits"][0]["sides"]
    assert (record["schema"], record["id"], record["status"]) == (4, "ab12cd34ef", "found")
    assert good["versions"] == {"coin": "0.9", "shop": "1.1", "tail": "7", "till": "3.0"}
    assert bad["frames"][-1] == {
        "file": "tail/end.py",
        "line": 9,
        "function": "stop",
        "package": "tail",
        "text": "raise ValueError",
    }
    assert good["metrics"] == {"loss": 1.5}


def test_json_has_no_nan():
    run = evolve(GOOD_RUN, metrics={"loss": float("nan")})
    text = Page.json(report_page(kept(sides=(run, run))))
    assert json.loads(text, parse_constant=pytest.fail)["culprits"][0]["sides"][0]["metrics"] == {"loss": None}


def test_html_asks_for_nothing_from_outside():
    text = Page.html(report_page(KEPT))
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", text) == ["data:,"]
    assert "@import" not in text


@pytest.fixture
def page(open_page):
    """Open the report of an answer; also return console messages and requests."""

    def opening(answer, **options):
        content = report_page(answer, logs={GOOD_RUN.key: f"{HOSTILE}\nthe last line"})
        return open_page(Page.html(content), **options)

    return opening


@pytest.mark.parametrize(
    ("answer", "scheme"),
    [(KEPT, "light"), (BARE, "light"), (hostile(), "dark")],
    ids=["whole", "bare", "hostile"],
)
def test_a_browser_reports_no_errors(page, answer, scheme):
    opened, said = page(answer, color_scheme=scheme, viewport={"width": 1200, "height": 900})
    assert [line for line in said if not line.startswith("data:")] == []
    assert opened.evaluate("document.images.length + document.scripts.length") == 1


def test_light_and_dark_differ(page):
    colours = {
        page(KEPT, color_scheme=scheme)[0].evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    }
    assert len(colours) == 2


@pytest.mark.parametrize("answer", [KEPT, hostile()], ids=["whole", "hostile"])
def test_a_phone_does_not_scroll_sideways(page, answer):
    opened, _ = page(answer, viewport={"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


def test_steps_can_be_filtered_by_verdict_and_text(page):
    opened, said = page(KEPT)

    def shown():
        rows = opened.query_selector_all(".steps tbody tr")
        return [row.query_selector_all("td")[1].inner_text() for row in rows if row.is_visible()]

    assert shown() == ["1.4", "1.0", "1.2", "1.1", "1.3"]
    opened.click("button[value=bad]")
    assert shown() == ["1.4", "1.2"]
    opened.fill(".filter input", "1.2")
    assert shown() == ["1.2"]
    opened.click("button[value=all]")
    opened.fill(".filter input", "DIFFERENTLY")
    assert shown() == ["1.3"]
    assert [line for line in said if not line.startswith("data:")] == []


def test_a_click_opens_a_log(page):
    opened, _ = page(KEPT)
    log = opened.locator("details", has_text="Log of shop 1.1 (good)").last
    assert not log.locator("pre").is_visible()
    log.locator("summary").click()
    assert log.locator("pre").inner_text() == f"{HOSTILE}\nthe last line"


def test_each_release_is_a_cell_with_letter_and_title(page):
    opened, _ = page(kept(findings=found(REVERTED, UNPROVED)))
    cells = opened.query_selector_all(".range li")
    assert [cell.inner_text().split() for cell in cells] == [
        ["G", "1.0"],
        ["G", "1.1"],
        ["B", "1.2"],
        ["S", "1.3"],
        ["B", "1.4"],
    ]
    assert "failed differently" in cells[3].get_attribute("title")


CONTENT = report_page(KEPT)


def test_a_short_report_stays_as_it_is():
    assert "Left out for length" not in Page.markdown(CONTENT)


def test_the_longest_details_go_first_and_it_says_so():
    (part,) = CONTENT.content["parts"]
    long = evolve(CONTENT, content={**CONTENT.content, "parts": [{**part, "traceback": f"the end\n{'x' * 60_000}"}]})
    text = Page.markdown(long)
    assert len(text) <= 65_536
    assert text.endswith("Left out for length: details, which the HTML report has.\n")
    assert "### Traceback" not in text
    assert "Range and steps" in text


def test_answer_proofs_and_repro_are_never_dropped():
    """Whatever the limit."""
    text = Page.markdown(CONTENT, limit=10)
    assert CONTENT.content["sentence"] in text
    assert CONTENT.content["repro_source"] in text
    assert all(proof.sentence in text for finding in KEPT.answer.findings for proof in finding.proofs)
    assert "### Traceback" not in text
    assert "### What made the difference" not in text
