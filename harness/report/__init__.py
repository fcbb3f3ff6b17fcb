"""Turns an answer into a report that others can read, check and reproduce: Markdown, HTML, JSON."""

from harness.redact import Private, passed_secrets, redact, redacted
from harness.report.answer import make_content
from harness.report.archive import Archive, KeptAnswer, kept_answer
from harness.report.content import RENDERERS, ReportContent, render_html, render_issue, render_json, render_markdown
from harness.report.privacy import private_here

__all__ = [
    "RENDERERS",
    "Archive",
    "KeptAnswer",
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
]
