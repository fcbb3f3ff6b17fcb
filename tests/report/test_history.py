"""The page of a history, and its record."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from markdown_it import MarkdownIt

from harness.bisection.answer import Effort, QuestionRecord
from harness.bisection.history import History, ReleaseRow, RowState
from harness.model import Change, Device, Observation, Outcome, Repro, Signature, Verdict
from harness.model.boundary import Boundary
from harness.model.verdict import Step
from harness.redact import Private
from harness.report.history import history_id, history_page

HOSTILE = "</script><script>throw 1</script> ```\n~~~ <img src=x onerror=alert(1)> {{ 7*7 }} | `a` </details>"
REPRO = Repro(name="sale", digest="d", source="import shop\n", summary="Sells a thing.")


RUN = Observation("key", Outcome.COMPLETED, "sale", "digest", Device.CPU)


def step(release, verdict, reason="ran to its end", *, cached=False):
    altered = ("lib/python3.11/site-packages/till/data.py",) if verdict is Verdict.BAD else ()
    seconds = 0.0 if cached else 2.0
    return Step(release, verdict, reason, f"key-{release}", cached=cached, seconds=seconds, altered=altered)


STEPS = (
    step("1.5", Verdict.GOOD),
    step("1.0", Verdict.GOOD, cached=True),
    step("1.2", Verdict.BAD, "ValueError: no price"),
    step("1.3", Verdict.SKIP, "does not import"),
    step("1.7", Verdict.GOOD),
)


def row(release, state, reason="", **measured):
    judged = release in {step.release for step in STEPS}
    return ReleaseRow(release, RowState(state), reason, "2025-01-01", f"key-{release}" if judged else "", measured)


def boundary(older, newer, *, is_fix=False):
    return Boundary(Change("shop", older, newer, is_fix=is_fix), sides=(RUN, RUN))


HISTORY = History(
    QuestionRecord("shop", REPRO, python="3.11.7", requirements=("till",), holds=("coin<2",)),
    Signature(exception="ValueError"),
    (boundary("1.0", "1.2"), boundary("1.2", "1.5", is_fix=True)),
    (
        row("1.0", "good", "ran to its end", loss=1.0),
        row("1.1", "left-out", "yanked: it burns"),
        row("1.2", "bad", "ValueError: no price", loss=float("nan")),
        row("1.3", "skip", "does not import"),
        row("1.5", "good", "ran to its end", loss=1.5),
        row("1.6", "between-good", "not run: it lies between 1.5 and 1.7"),
        row("1.7", "good", "ran to its end"),
    ),
    STEPS,
    platform="linux-x86_64",
    effort=Effort(3),
)


def hostile():
    """A history in which every text tries to break out."""
    rows = tuple(evolve(row, reason=HOSTILE, measured={HOSTILE: 1.0}) for row in HISTORY.rows)
    steps = tuple(evolve(step, reason=HOSTILE, drift=(HOSTILE,)) for step in HISTORY.steps)
    asked = evolve(HISTORY.question, subject=HOSTILE, typed=(HOSTILE,))
    return evolve(HISTORY, question=asked, rows=rows, steps=steps)


@pytest.fixture
def content():
    """The content of the page."""

    def of(history=HISTORY, log="the log", private=Private()):  # noqa: B008 - a frozen value
        logs = {f"key-{release}": f"{log} of {release}" for release in ("1.0", "1.2")}
        return history_page(history, time="2026-01-02T03:04", logs=logs, private=private)

    return of


@pytest.fixture
def page(open_page, content):
    """Open the page of a history; also return console messages and requests."""
    return lambda history=HISTORY, **options: open_page(content(history).html(), **options)


def test_markdown_has_windows_picture_and_reasons(content):
    text = content().markdown()
    assert text.startswith("**shop with sale: broken in 1.2 only, good from 1.5. Not sure where it ended")
    assert "[GxBSGgG]  1.0 to 1.7" in text
    assert "`1.2`: `till/data.py`" in text
    assert "| `1.0` | `1.2` | `1.2` | `1.5` | 1.3 may be broken too, and could not be judged |" in text
    assert "| 3 | `1.3` | skipped | `does not import` | 2.0 s | `key-1.3` |" in text
    assert "`1.1`: yanked: it burns" in text
    assert "- Held: coin&lt;2" in text
    assert "known already" in text


def test_the_command_that_goes_on_is_code(content):
    rows = tuple(row for row in HISTORY.rows if row.release != "1.3")
    asked = evolve(HISTORY.question, typed=("--run", "'pytest -m \"a < b\"'"))
    text = content(evolve(HISTORY, question=asked, rows=rows)).markdown()
    assert "`harness bisect shop --run 'pytest -m \"a < b\"' --good 1.0 --bad 1.2`" in text


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        ({"1.1", "1.3"}, "certain: its neighbours were run"),
        ({"1.3"}, "certain among the releases that were tried"),
        ({"1.0", "1.1", "1.3"}, "certain in this range, which has no good run before it"),
        ({"1.0", "1.1", "1.3", "1.5", "1.6", "1.7"}, "certain in this range, which has no good run before or after it"),
        (set(), "1.3 may be broken too, and could not be judged"),
    ],
)
def test_a_window_says_how_sure_it_is(content, dropped, words):
    rows = tuple(row for row in HISTORY.rows if row.release not in dropped)
    boundaries = tuple(one for one in HISTORY.boundaries if not dropped.intersection(one.ends))
    made = content(evolve(HISTORY, rows=rows, boundaries=boundaries))
    assert made.content["windows"][0][1].startswith(words)


def test_text_cannot_break_out_in_markdown(content):
    text = content(hostile()).markdown()
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    raw = [token.content for token in tokens if token.type == "html_block"]
    raw += [part.content for token in tokens if token.children for part in token.children if part.type == "html_inline"]
    assert [part for part in raw if "script" in part or "img" in part] == []
    assert sum(part.count("<details>") for part in raw) == sum(part.count("</details>") for part in raw) > 0


def test_private_data_is_in_no_text(content):
    made = content(
        evolve(HISTORY, question=evolve(HISTORY.question, subject="secret-word")),
        "secret-word",
        Private({"secret-word": "<secret>"}),
    )
    assert "secret-word" not in made.html() + made.markdown()


@pytest.mark.parametrize("history", [HISTORY, hostile()], ids=["whole", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_reports_no_errors(page, history, scheme):
    opened, said = page(history, color_scheme=scheme, viewport={"width": 1200, "height": 900})
    assert [line for line in said if not line.startswith("data:")] == []
    assert opened.evaluate("document.images.length + document.scripts.length") == 1


@pytest.mark.parametrize("history", [HISTORY, hostile()], ids=["whole", "hostile"])
def test_a_phone_does_not_scroll_sideways(page, history):
    opened, _ = page(history, viewport={"width": 360, "height": 700})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360


def test_each_release_has_a_cell_that_opens_its_log(page):
    opened, _ = page()
    cells = opened.query_selector_all(".range .cell")
    assert [cell.inner_text().split() for cell in cells] == [
        ["G", "1.0"],
        ["x", "1.1"],
        ["B", "1.2"],
        ["S", "1.3"],
        ["G", "1.5"],
        ["g", "1.6"],
        ["G", "1.7"],
    ]
    assert cells[5].get_attribute("title") == "1.6, 2025-01-01: not run: it lies between 1.5 and 1.7"
    assert "left out (yanked: it burns)" in cells[1].get_attribute("title")
    assert [cell.get_attribute("href") is not None for cell in cells] == [True, False, True, True, True, False, True]
    log = opened.get_by_text("the log of 1.2")
    assert not log.is_visible()
    cells[2].click()
    assert log.is_visible()


def test_charts_use_the_colours_of_the_page(page):
    def colour(scheme):
        opened, _ = page(color_scheme=scheme)
        return opened.evaluate("getComputedStyle(document.querySelector('.chart .dot.good')).fill")

    assert colour("light") != colour("dark")


def test_an_undrawable_value_is_named(page):
    opened, _ = page()
    assert opened.locator(".chart .missing").inner_text() == "1.2: nan"
    assert opened.locator(".chart circle").count() == 2


def test_a_record_is_the_json_of_the_history_with_its_question():
    private = Private({"no price": "<secret>"})
    text = history_page(HISTORY, time="2026-01-02", logs={}, private=private).json()
    kept = json.loads(text, parse_constant=pytest.fail)
    asked = (kept["schema"], kept["id"], kept["kept"], kept["requirements"])
    assert asked == (1, history_id(HISTORY), "2026-01-02", ["till"])
    assert (kept["windows"][0]["first_bad"], kept["windows"][0]["certain"]) == ("1.2", False)
    rows = {row["release"]: row for row in kept["releases"]}
    assert rows["1.2"]["measured"] == {"loss": None}
    assert rows["1.2"]["reason"] == "ValueError: <secret>"
    assert rows["1.6"]["observation"] is None


def test_a_finer_scan_replaces_the_record():
    assert history_id(evolve(HISTORY, stride=1)) == history_id(HISTORY)
    shorter = evolve(HISTORY, rows=HISTORY.rows[:-1])
    assert history_id(shorter) != history_id(HISTORY)
    assert history_id(evolve(HISTORY, question=evolve(HISTORY.question, as_of="era"))) != history_id(HISTORY)
