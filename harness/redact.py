"""Redacts private text: secrets in everything that is stored, all private data in reports.

`hide_secrets` is for what stays on this machine: records, logs, messages. `redact` is for what others read: it also
replaces folders and addresses of this machine.
"""

from __future__ import annotations

import base64
import contextlib
import html
import itertools
import json
import re
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote

import attrs
from attrs import field, frozen

T = TypeVar("T")

_SECRET = "<secret>"  # noqa: S105 - the placeholder for a secret

SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|AUTH", re.IGNORECASE)
_LETTERS = {"\n": "n", "\r": "r", "\t": "t"}  # of their escapes
_SHORTEST_SECRET, _SHORTEST_PASSWORD = 8, 6

# Installed files are shown relative to site-packages, wherever the environment is.
_INSTALLED = re.compile(r"(?<![\w.])/(?:[^\s\"'`()<>:,;]+/)?(?:site|dist)-packages(?=/)")
_STDLIB = re.compile(r"(?<![\w.])/(?:[^\s\"'`()<>:,;]+/)?lib/python3\.\d+(?=/)")
_HOME = re.compile(
    r"(?<![\w.-])(?:/(?:home|Users)/[^/\s\"'`:,;()<>]+|/root(?![\w-]))|[A-Za-z]:(?:\\+|/)Users(?:\\+|/)[^\\/\s\"'<>]+"
)
# All repetitions are bounded: a log may be a single word of many megabytes.
_SCHEME = r"\b([a-z][a-z0-9+.-]{0,30}://)"
_USER = r"(?!git@)[^\s/\\\"'`<>]{1,4000}@"
_PASSWORD_IN_URL = re.compile(r"://[^\s:/@]{0,4000}:([^\s/@]{1,4000})@")
_USER_IN_URL = re.compile(_SCHEME + _USER, re.IGNORECASE)
_CREDENTIALS = re.compile(rf"{_SCHEME}(?:<secret>@|{_USER})[^\s\\\"'`<>)\]]+", re.IGNORECASE)
# Tokens with a recognisable format. A text cut short by an ellipsis may contain the start of one.
_TOKENS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{4,}(?=…)|gh[opsur]_[A-Za-z0-9]{16,}|gh[opsur]_[A-Za-z0-9]{4,}(?=…)"
    r"|github_pat_\w{16,}|glpat-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{12,}|sk-[A-Za-z0-9_-]{20,}|pypi-[\w-]{30,}"
    r"|xox[abprs]-[\w-]{10,}|(?<!-)eyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]{5,2000})"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# A value with letters and digits, so that source code like `token=tokenizer.eos_token` is kept.
_ASSIGNED = re.compile(
    r"((?:token|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|authorization)[\\\"']*\s*[=:]\s*[\\\"']*"
    r"(?:bearer\s+|basic\s+)?)(?=[^\s\\\"'&;,()=]{0,400}\d)(?=[^\s\\\"'&;,()=]{0,400}[A-Za-z])[^\s\\\"'&;,()]{10,}",
    re.IGNORECASE,
)


@frozen
class Private:
    """Private data of this machine that has no recognisable format.

    `replacements` maps literal texts (folders, addresses, secrets) to placeholders.
    """

    replacements: Mapping[str, str] = field(factory=dict, repr=False)


def passed_secrets(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Map the values of these variables to placeholders, also their lines, and the passwords in their addresses.

    Short values (0, true) are not secrets.
    """
    values = [environ.get(name, "") for name in names]
    secrets = dict.fromkeys(value for value in values if len(value) >= _SHORTEST_SECRET)
    for value in values:
        secrets |= dict.fromkeys(_parts(value))
    return dict.fromkeys(secrets, _SECRET)


def known_secrets(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Map to placeholders what is secret in all variables.

    These are the values of those with secret-sounding names and of those passed to runs, and passwords in addresses.
    """
    passwords = {password for value in environ.values() for password in _passwords(value)}
    named = {name for name in environ if SECRET_NAME.search(name)}
    return dict.fromkeys(passwords, _SECRET) | passed_secrets(environ, named | set(pass_env))


def _parts(value: str) -> Iterator[str]:
    """Yield the parts of a secret that are secret alone (lines, passwords, texts of JSON), and its encodings."""
    if len(value) >= _SHORTEST_SECRET:
        content = value.encode(errors="replace")
        yield from (base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode(), content.hex())
    lines = [line.strip() for line in value.splitlines()]
    for line in lines if len(lines) > 1 else [value.strip()]:
        if len(line) >= _SHORTEST_SECRET and not line.startswith("-----"):
            yield line
    yield from _passwords(value)
    if value.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            texts = {name: text for name, text in json.loads(value).items() if isinstance(text, str)}
            yield from passed_secrets(texts, filter(SECRET_NAME.search, texts))


def _passwords(value: str) -> Iterator[str]:
    """Yield the passwords of the addresses in a text, as written and decoded."""
    for match in _PASSWORD_IN_URL.finditer(value):
        if len(match[1]) >= _SHORTEST_PASSWORD:
            yield match[1]
            yield unquote(match[1])


def write_traceback(error: BaseException, known: Mapping[str, str]) -> str:
    """Write the traceback of an internal error to a new file, without secrets, and return the file's path."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="harness-fault-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(hide_secrets("".join(traceback.format_exception(error)), known))
    return file.name


def hide_secrets(text: str, known: Mapping[str, str] | None = None) -> str:
    """Replace credentials in URLs, the values in `known`, private keys, and tokens with a recognisable format."""
    text = _USER_IN_URL.sub(rf"\1{_SECRET}@", text)
    for literal, label in sorted((known or {}).items(), key=lambda pair: -len(pair[0])):
        text = _without(literal, label, text)
    return _without_tokens(text)


def _without(literal: str, label: str, text: str) -> str:
    """Replace a text in all its forms: as it is, quoted by Python, JSON or a shell, once or more, or in an address."""
    if literal.isascii() and literal.isalnum():
        text = text.replace(literal, label)
    elif _longest_word(literal) in text:  # no form changes letters; a pattern takes a hundred times as long
        text = _forms(literal).sub(lambda _: label, text)
    return _without_begun(literal, label, text)


def _without_begun(literal: str, label: str, text: str) -> str:
    """Replace the beginning of a secret where a message was cut: before an ellipsis, or at its end."""
    begin = literal[: _SHORTEST_SECRET if any(map(str.isdigit, literal[:_SHORTEST_SECRET])) else 2 * _SHORTEST_SECRET]
    at = text.find(begin)
    while at >= 0:
        pairs = zip(literal, text[at:], strict=False)
        end = at + sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        if text[end : end + 1] in ("", "…"):
            text = f"{text[:at]}{label}{text[end:]}"
        at = text.find(begin, at + 1)
    return text


@lru_cache(maxsize=1024)
def _longest_word(literal: str) -> str:
    return max(re.findall(r"[A-Za-z0-9]+", literal), key=len, default="")


@lru_cache(maxsize=1024)
def _forms(literal: str) -> re.Pattern[str]:
    return re.compile("".join(map(_forms_of, literal)))


@lru_cache(maxsize=4096)
def _forms_of(character: str) -> str:
    """A pattern of the ways in which quoting writes a character."""
    if character.isascii() and character.isalnum():
        return character
    encoded = character.encode("utf-8", "replace")
    forms = [rf"\\{{0,8}}{re.escape(character)}", "".join(f"%(?i:{byte:02x})" for byte in encoded)]
    forms += ["".join(rf"\\{{1,8}}x(?i:{byte:02x})" for byte in encoded)]
    if character in _LETTERS:
        forms += [rf"\\{{1,8}}{_LETTERS[character]}", " "]  # a message on one line
    elif character == "\\":
        forms.append(r"\\{1,16}")
    elif character == " ":
        forms.append(r"\+")
    if not character.isascii():
        code = ord(character)
        forms += [rf"\\{{1,8}}(?i:x{code:02x}|u{code:04x}|U{code:08x})"]
        units = character.encode("utf-16-be", "replace").hex()
        forms += ["".join(rf"\\{{1,8}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))]
    elif html.escape(character) != character:
        forms += [html.escape(character), f"&#{ord(character)};"]
        forms += [r"""'(?:"'"|\\')'"""] if character == "'" else []  # as a shell quotes it
    return f"(?:{'|'.join(forms)})"


def _without_tokens(text: str) -> str:
    """Replace what looks like a secret wherever it is."""
    text = _PRIVATE_KEY.sub(_SECRET, text)
    text = _TOKENS.sub(_SECRET, text)
    return _ASSIGNED.sub(rf"\1{_SECRET}", text)


def redact(text: str, private: Private = Private()) -> str:
    """Replace private data in a text: first URLs and known secrets, then token formats and folders."""
    text = _CREDENTIALS.sub(r"\1<address with credentials>", text)
    known = sorted(private.replacements.items(), key=lambda pair: -len(pair[0]))
    for literal, label in known:
        if label == _SECRET or not literal.startswith("/"):
            text = _without(literal, label, text)
    text = _without_tokens(text)
    text = _INSTALLED.sub("<site-packages>", text)
    for literal, label in known:
        if literal.startswith("/") and label != _SECRET:
            text = re.sub(rf"(?<![\w.-]){re.escape(literal)}(?![\w-])", label, text)
    text = _STDLIB.sub("<python>", text)
    return _HOME.sub("<home>", text)


def redacted(value: Any, private: Private) -> Any:
    """Redact every text in a value made of attrs classes, mappings (keys, too), tuples and lists."""
    return everywhere(value, str, cache(lambda text: redact(text, private)))  # many texts of an answer are the same


def everywhere(value: Any, kind: type[T], change: Callable[[T], T]) -> Any:
    """Apply `change` to every part of one kind in a value of attrs classes, mappings (keys, too), tuples and lists."""
    if type(value) is kind:
        return change(value)
    if isinstance(value, Mapping):
        return {everywhere(key, kind, change): everywhere(item, kind, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(everywhere(item, kind, change) for item in value)
    if attrs.has(type(value)):
        parts = attrs.fields(type(value))
        return attrs.evolve(value, **{part.name: everywhere(getattr(value, part.name), kind, change) for part in parts})
    return value
