"""No private data leaves in any text of a report, and ordinary source is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from answers import ANSWER, BAD_RUN, GOOD_RUN, KEPT, found, kept
from attrs import evolve

from harness.model import Change, RaisedException, StackFrame, Verdict
from harness.model.culprit import Proof
from harness.model.verdict import Step
from harness.redact import Private, redact
from harness.report.answer import report_page
from harness.report.page import RENDERERS
from harness.report.privacy import private_in

HOME = "/srv/people/jane.doe"
TOKENS = {
    "hub": "hf_" + "aB3dE6gH9jK2mN5pQ8sT",
    "forge": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "cloud": "AKIA" + "IOSFODNN7EXAMPLE",
    "plain": "token=" + "q7w8e9r0t1y2u3i4",
    "header": "Authorization: Bearer " + "z9y8x7w6v5u4t3s2",
    "word": '"password": "' + 'c0rrecth0rsebattery"',
    "address": "https://jane:pa55@mirror.corp.example/simple/shop/",
    "variable": "a value of no known form",
}
SECRETS = [
    "aB3dE6gH9jK2mN5pQ8sT",
    "a1B2c3D4e5F6g7H8i9J0k1L2",
    "IOSFODNN7EXAMPLE",
    "q7w8e9r0t1y2u3i4",
    "z9y8x7w6v5u4t3s2",
    "c0rrecth0rsebattery",
    "pa55",
    "mirror.corp.example",
    "a value of no known form",
    "/srv/people",
    "/var/tmp/probes",
    "/home/other",
    "/opt/envs",
]
PLANT = " ; ".join(
    [
        *TOKENS.values(),
        f"{HOME}/thing.py",
        "/home/other/x",
        "/var/tmp/probes/run-1/work",
        "/opt/envs/e1/lib/python3.11/site-packages/shop/money.py",
    ]
)
HERE = {"HOME": HOME, "MY_TOKEN": TOKENS["variable"]}

ROOT = "/" + "root"  # the home folder of the user of that name


@pytest.fixture
def private():
    return private_in(HERE, {Path("/var/tmp/probes"): "<scratch>"}, addresses=["https://mirror.corp.example/simple"])


def planted():
    """An answer with private data in every text."""
    frame = StackFrame(f"{HOME}/lib.py", 1, "run", "shop", PLANT)
    raised = RaisedException("builtins.ValueError", PLANT, frames=(frame,))
    bad = evolve(BAD_RUN, exception=evolve(raised, cause=raised), detail=PLANT)
    proof = Proof(PLANT, Verdict.BAD, Verdict.SKIP, PLANT)
    culprit = found(proof)
    region = evolve(culprit[-1].regions[0], diff=f"@@\n+{PLANT}\n")
    finest = evolve(culprit[-1], regions=(region,), notes=(PLANT,))
    repro = evolve(KEPT.repro, source=f"{KEPT.repro.source}\n# {PLANT}\n", summary=PLANT, params={"path": PLANT})
    return kept(
        repro=repro,
        holds=(PLANT,),
        sentence=PLANT,
        steps=(*ANSWER.steps, Step("1.5", Verdict.SKIP, PLANT, "o5", cached=False, seconds=1.0, drift=(PLANT,))),
        left_out={"1.3.1": PLANT},
        sides=(evolve(GOOD_RUN, detail=PLANT), bad),
        findings=(finest,),
    )


@pytest.mark.parametrize("style", RENDERERS)
def test_planted_private_data_is_found_nowhere(style, private):
    logs = {GOOD_RUN.key: PLANT, BAD_RUN.key: f"{PLANT}\n{PLANT}"}
    text = RENDERERS[style](report_page(planted(), logs=logs, private=private))
    assert [secret for secret in SECRETS if secret in text] == []
    assert "secret" in text


@pytest.mark.parametrize("style", RENDERERS)
def test_without_redaction_the_report_shows_the_planted_data(style):
    """The private data is in every format, so the test above can fail."""
    text = RENDERERS[style](report_page(planted(), logs={GOOD_RUN.key: PLANT}))
    assert "/srv/people" in text


@pytest.mark.parametrize(
    "text",
    [
        "tokenizer(text, pad_token=tokenizer.eos_token)",
        "from huggingface_hub import hf_hub_download",
        "token: Optional[str] = None",
        f"the root cause is in the root module of transformers{ROOT}/home.py",
        "shop==1.2 --hash=sha256:" + "0a1b" * 16,
        "https://github.com/a/b/compare/v1...v2",
        "user@example.com wrote to @decorator",
    ],
)
def test_ordinary_text_is_left_alone(text, private):
    assert redact(text, private) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /a/b/lib/python3.11/site-packages/x.py", "in <site-packages>/x.py"),
        ('File "/usr/lib/python3.12/json/__init__.py"', 'File "<python>/json/__init__.py"'),
        (f"{ROOT}/x and {ROOT}fs/x", f"<home>/x and {ROOT}fs/x"),
        (r"C:\Users\Jane\x", r"<home>\x"),
        ("hf_abcde…", "<secret>…"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "<secret>"),
    ],
)
def test_secrets_are_recognised_by_their_form(text, shown):
    assert redact(text).endswith(shown)


def test_the_longest_matching_folder_wins():
    private = Private({"/data": "<cache>", "/data/scratch": "<scratch>"})
    assert redact("/data/scratch/x /data/y /database", private) == "<scratch>/x <cache>/y /database"


def test_passed_variables_are_secret_whatever_their_name():
    private = private_in({"HOME": "/h", "PLACE": "a-long-value"}, {}, secrets={"a-long-value": "<secret>"})
    assert redact("at a-long-value", private) == "at <secret>"


def test_the_value_of_a_mapping_and_its_key_are_redacted():
    page = report_page(kept(left_out={"1.3.1": f"{ROOT}/x"}, changes=(Change(f"{ROOT}/y", None, "1"),)))
    text = page.markdown()
    assert "**1.3.1**: &lt;home&gt;/x" in text
    assert "&lt;home&gt;/y (absent) -&gt; 1" in text
