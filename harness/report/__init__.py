"""Turns an answer into a report that others can read, check and reproduce: Markdown, HTML, JSON."""

from harness.redact import Private, passed_secrets, redact, redacted
from harness.report.answer import report_page
from harness.report.archive import Archive, KeptAnswer, kept_answer
from harness.report.content import RENDERERS, render_issue, render_markdown
from harness.report.privacy import private_here

__all__ = [
    "RENDERERS",
    "Archive",
    "KeptAnswer",
    "Private",
    "kept_answer",
    "passed_secrets",
    "private_here",
    "redact",
    "redacted",
    "render_issue",
    "render_markdown",
    "report_page",
]
