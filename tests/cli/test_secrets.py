"""A password in an address and the value of a passed variable are stored nowhere."""

from __future__ import annotations

import base64
import gzip
import html
import json
import shlex
import sys
from urllib.parse import quote, quote_plus

import pytest
from faulty_index import FaultyIndex
from support import step_source
from wheelhouse import Wheelhouse, free_port_url

from harness.redact import Private, hide_secrets, known_secrets, passed_secrets, redact

PASSWORD = "open-sesame-77"
VALUE = 'c0ffee "quoted" value'
LEAK = """
import json, os, sys
value = os.environ["MY_LICENSE"]
print("out", value)
print("err", value, file=sys.stderr)
with open(os.environ["HARNESS_METRICS"], "w") as file:
    json.dump({value: 1.0, "loss": 2.0}, file)
raise RuntimeError(f"the step is broken for {value}")
"""


def texts_of(folder):
    """Everything that is stored, as text: files and unpacked logs."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path, gzip.decompress(content) if path.suffix == ".gz" else content


def assert_nowhere(harness, secret, *ended):
    for one in ended:
        assert secret not in one.stdout
        assert secret not in one.stderr
    for path, content in texts_of(harness.folder / "results"):
        assert secret.encode() not in content, path


def test_the_value_of_a_passed_variable_is_kept_nowhere(harness, write_repro):
    write_repro("brittle", body=LEAK)
    words = ("--pass-env", "MY_LICENSE")
    probed = harness("probe", "brittle_step", "--with", "brittle==1.2", *words, MY_LICENSE=VALUE)
    assert probed.code == 1, probed.stderr
    assert "broken for <secret>" in probed.stdout
    as_json = harness("probe", "brittle_step", "--with", "brittle==1.2", "--json", *words, MY_LICENSE=VALUE)
    assert as_json.json["metrics"]["loss"] == 2.0
    shown = [harness("results", *style, COLUMNS="300") for style in ((), ("--format", "csv"))]
    assert "<secret>" in shown[1].stdout
    for form in (VALUE, "c0ffee"):
        assert_nowhere(harness, form, probed, as_json, *shown)
    (log,) = [content for path, content in texts_of(harness.folder / "results") if path.suffix == ".gz"]
    assert b"out <secret>" in log


def test_reports_of_a_bisection_have_no_secret(harness, write_repro):
    body = 'import os, brittle\nprint(os.environ["MY_LICENSE"])\nassert brittle.LOSS < 2, os.environ["MY_LICENSE"]\n'
    write_repro("brittle", body=body, tool="")
    words = ("bisect", "brittle", "--good", "1.4", "--bad", "1.7", "--depth", "release", "--confirm", "1")
    words += ("--pass-env", "MY_LICENSE")
    with_address = ("--with", f"helper @ https://someone:{PASSWORD}@127.0.0.1:9/helper-1.0-py3-none-any.whl")
    found = harness(*words, MY_LICENSE=VALUE)
    assert found.code == 0, found.stderr
    refused = harness(*words, *with_address, MY_LICENSE=VALUE, UV_HTTP_RETRIES="0")
    reports = [harness("report", "--format", style) for style in ("markdown", "html", "json")]
    for secret in ("c0ffee", PASSWORD):
        assert_nowhere(harness, secret, found, refused, *reports)


def test_a_password_in_a_requirement_is_kept_nowhere(harness, write_repro, tmp_path):
    write_repro("brittle")
    house = Wheelhouse(tmp_path / "served")
    house.add("linked", "1.0", files={"linked.py": step_source(0, broken=False)})
    with FaultyIndex(house).served() as index:
        host = index.url.removeprefix("http://").removesuffix("/simple")
        for name in ("linked-1.0-py3-none-any.whl", "linked-9.9-py3-none-any.whl", "linked"):
            asked = f"linked @ http://someone:{PASSWORD}@{host}/files/{name}"
            ended = harness("probe", "brittle_step", "--with", "brittle==1.2", "--with", asked)
            assert_nowhere(harness, PASSWORD, ended)
            assert "Traceback" not in ended.stderr
    ended = harness("probe", "brittle_step", "--no-such-option", asked)
    assert ended.code == 2
    assert_nowhere(harness, PASSWORD, ended)
    ended = harness("probe", "brittle_step", asked)
    assert_nowhere(harness, PASSWORD, ended)


@pytest.mark.parametrize("fault", ["", "portal", "401", "503", "null"])
def test_a_password_in_an_index_address_appears_nowhere(harness, write_repro, tmp_path, fault):
    write_repro("brittle")
    house = Wheelhouse(tmp_path / "served")
    with FaultyIndex(house, pages=fault).served() as index:
        url = index.url if fault else free_port_url()
        settings = {
            "UV_DEFAULT_INDEX": url.replace("http://", f"http://someone:{PASSWORD}@"),
            "UV_CACHE_DIR": str(tmp_path / "uv"),
            "HARNESS_CACHE_DIR": str(tmp_path / "cache"),
            "UV_HTTP_RETRIES": "0",
        }
        for words in (("bisect", "brittle"), ("probe", "brittle_step", "--with", "brittle==1.2"), ("doctor",)):
            ended = harness(*words, **settings)
            assert ended.code != 0
            assert_nowhere(harness, PASSWORD, ended)


def test_the_file_of_an_internal_error_hides_secrets(harness, write_repro, monkeypatch, tmp_path):
    write_repro("brittle")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # A module that the command imports late fails with the address in its words.
    failing = type(sys)("harness.cli.probe")

    def fail(name):
        raise RuntimeError(f"no {name} at https://someone:{PASSWORD}@host/simple for {VALUE}")

    failing.__getattr__ = fail
    monkeypatch.setitem(sys.modules, "harness.cli.probe", failing)
    ended = harness("probe", "brittle_step", "--pass-env", "MY_LICENSE", MY_LICENSE=VALUE)
    assert ended.code == 70
    (kept,) = tmp_path.glob("harness-fault-*.txt")
    for text in (ended.stderr, kept.read_text()):
        assert PASSWORD not in text
        assert "c0ffee" not in text
        assert "<secret>@host" in text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://a:b@host/x", "https://<secret>@host/x"),
        ("https://a:p@ss@host/x", "https://<secret>@host/x"),
        ("git+https://tok3n@host/x and ftp://u:p@h", "git+https://<secret>@host/x and ftp://<secret>@h"),
        ("git+ssh://git@host/x", "git+ssh://git@host/x"),
        ("https://host/@scope/x", "https://host/@scope/x"),
        ("a hf_" + "A1b2" * 8, "a <secret>"),
    ],
)
def test_secrets_are_recognised_by_their_form(text, hidden):
    assert hide_secrets(text) == hidden
    assert hide_secrets(hidden) == hidden


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAA+line/1\nZq7secretX9AAAB3Nz=\n"
ODD = "pa'ss\"wo\\rd\nZq7secretX9é\U0001f511 end"
FORMS = {
    "plain": str,
    "repr": repr,
    "ascii": ascii,
    "json": json.dumps,
    "json of a repr": lambda text: json.dumps(repr([text])),
    "repr of a repr": lambda text: repr({"a": repr(text)}),
    "bytes": lambda text: repr(text.encode()),
    "escaped": lambda text: text.encode("unicode_escape").decode(),
    "address": quote,
    "form": quote_plus,
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "shell": shlex.quote,
    "one line": lambda text: " ".join(text.split()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_whatever_form_it_is_printed(form):
    for secret in (KEY, ODD, 'c0ffee "it\'s" quoted', "plain-and-simple"):
        secrets = passed_secrets({"MINE": secret}, ["MINE"])
        printed = FORMS[form](secret)
        for hidden in (hide_secrets(f"<{printed}>", secrets), redact(f"<{printed}>", Private(secrets))):
            assert "<secret>" in hidden
            assert len(hidden) < len("<{'a': \"'<secret>'\"}> and more"), hidden


@pytest.mark.parametrize("end", ["", "…", "… (cut)"])
def test_the_beginning_of_a_secret_that_was_cut_off_is_hidden(end):
    secrets = passed_secrets({"MINE": "c0ffee-and-more"}, ["MINE"])
    assert hide_secrets(f"it is c0ffee-and{end}", secrets) == f"it is <secret>{end}"
    assert hide_secrets("it is c0ffee-and no secret", secrets) == "it is c0ffee-and no secret"


def test_parts_of_a_secret_are_hidden():
    environ = {
        "KEY_FILE": KEY,
        "DATABASE_URL": "postgres://me:s3%2Fcret@db.example/x",
        "CLOUD_CREDENTIALS": json.dumps({"project": "of-everybody", "access_key": "A1B2C3D4E5"}),
        "HOME": "/root",
    }
    secrets = known_secrets(environ, ["KEY_FILE"])
    text = f"{KEY.splitlines()[2]!r} password s3/cret, s3%2Fcret; A1B2C3D4E5 of-everybody /root"
    assert hide_secrets(text, secrets) == "'<secret>' password <secret>, <secret>; <secret> of-everybody /root"
