"""Turns an answer into a report that others can read, check and reproduce: Markdown, HTML, JSON."""
