"""What must not leave a machine is replaced in every text of a report: names, folders, tokens, private addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field, frozen

_SECRET = "<secret>"  # noqa: S105 - the word that stands in the place of one

# Every installed file is told by its place in site-packages, wherever an environment lay.
_INSTALLED = re.compile(r"(?<![\w.])/(?:[^\s\"'`()<>:,;]+/)?(?:site|dist)-packages(?=/)")
_STDLIB = re.compile(r"(?<![\w.])/(?:[^\s\"'`()<>:,;]+/)?lib/python3\.\d+(?=/)")
_HOME = re.compile(
    r"(?<![\w.-])(?:/(?:home|Users)/[^/\s\"'`:,;()<>]+|/root(?![\w-]))|[A-Za-z]:(?:\\+|/)Users(?:\\+|/)[^\\/\s\"'<>]+"
)
_CREDENTIALS = re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s/\\\"'`<>@]+@[^\s\\\"'`<>)\]]+", re.IGNORECASE)
# Tokens that say by their form what they are. A text cut short by an ellipsis may hold the begin of one.
_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{4,}(?=…)|gh[opsur]_[A-Za-z0-9]{16,}|gh[opsur]_[A-Za-z0-9]{4,}(?=…)"
    r"|github_pat_\w{16,}|glpat-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{12,}|sk-[A-Za-z0-9_-]{20,}|pypi-[\w-]{30,}"
    r"|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# A value with letters and digits, so that source such as `token=tokenizer.eos_token` is left alone.
_ASSIGNED = re.compile(
    r"((?:token|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|authorization)[\\\"']*\s*[=:]\s*[\\\"']*"
    r"(?:bearer\s+|basic\s+)?)(?=[^\s\\\"'&;,()]*\d)(?=[^\s\\\"'&;,()]*[A-Za-z])[^\s\\\"'&;,()]{10,}",
    re.IGNORECASE,
)


@frozen
class Private:
    """What is private here, beyond what can be told by its form.

    `replacements` maps literal texts (folders, addresses, secrets) to the words that take their place; `names` are
    whole words (users, hosts).
    """

    replacements: Mapping[str, str] = field(factory=dict, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)


def redact(text: str, private: Private = Private()) -> str:
    """The text without what is private. Addresses and known secrets go first, then forms, then folders, then
    names.
    """
    text = _CREDENTIALS.sub(r"\1<address with credentials>", text)
    known = sorted(private.replacements.items(), key=lambda pair: -len(pair[0]))
    for literal, label in known:
        if not literal.startswith("/"):
            text = text.replace(literal, label)
    text = _PRIVATE_KEY.sub(_SECRET, text)
    text = _TOKENS.sub(_SECRET, text)
    text = _ASSIGNED.sub(rf"\1{_SECRET}", text)
    text = _INSTALLED.sub("<site-packages>", text)
    for literal, label in known:
        if literal.startswith("/"):
            text = re.sub(rf"(?<![\w.-]){re.escape(literal)}(?![\w-])", label, text)
    text = _STDLIB.sub("<python>", text)
    text = _HOME.sub("<home>", text)
    for name in private.names:
        text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", "<name>", text)
    return text


def redacted(value: Any, private: Private) -> Any:
    """The same value with every text in it redacted: attrs values, mappings (keys too), tuples and lists."""
    if type(value) is str:
        return redact(value, private)
    if isinstance(value, Mapping):
        return {redacted(key, private): redacted(item, private) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(redacted(item, private) for item in value)
    if attrs.has(type(value)):
        parts = {part.name: redacted(getattr(value, part.name), private) for part in attrs.fields(type(value))}
        return attrs.evolve(value, **parts)
    return value
