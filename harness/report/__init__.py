"""Turns an answer into a report that others can read, check and reproduce: Markdown, HTML, JSON."""

from harness.redact import Private, passed_secrets, redact, redacted
from harness.report.answer.archive import Archive, KeptAnswer, KeptRelease, kept_answer
from harness.report.answer.building import make_content
from harness.report.answer.content import ReportContent
from harness.report.links import repositories_in
from harness.report.render import RENDERERS, render_html, render_issue, render_json, render_markdown
from harness.report.surroundings import private_here

__all__ = [
    "RENDERERS",
    "Archive",
    "KeptAnswer",
    "KeptRelease",
    "Private",
    "ReportContent",
    "kept_answer",
    "make_content",
    "passed_secrets",
    "private_here",
    "redact",
    "redacted",
    "render_html",
    "render_issue",
    "render_json",
    "render_markdown",
    "repositories_in",
]
