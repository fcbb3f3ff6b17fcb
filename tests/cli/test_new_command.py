"""`harness new` writes a repro from an issue in a file, in GitHub's JSON, on standard input, or behind `gh`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.catalogue.blocks import parse_report, read_report
from harness.cli import cli
from harness.errors import NoNetwork, UserMistake

BODY = """
transformers 4.53.0, torch 2.7.1

```python
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2")
model.to("cuda")
```

```
Traceback (most recent call last):
  File "a.py", line 3, in <module>
    model.to("cuda")
  File "/e/lib/python3.11/site-packages/transformers/modeling_utils.py", line 40, in to
    raise ValueError("no such device today")
ValueError: no such device today
```
"""
GH = """#!{python}
import json, sys
if sys.argv[3] == "404":
    sys.exit("GraphQL: Could not resolve to an issue")
assert sys.argv[1:6] == ["issue", "view", "12", "--repo", "some/transformers"], sys.argv
print(json.dumps({{"title": "A title", "body": {body!r}, "comments": [{{"body": "4.52.4 works for me"}}],
                   "number": 12, "url": "https://github.com/some/transformers/issues/12"}}))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "programs"
    folder.mkdir()
    gh = folder / "gh"
    gh.write_text(GH.format(python=sys.executable, body=BODY), encoding="utf-8")
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return tmp_path


def run(*words, text=None):
    return CliRunner().invoke(cli, ["new", *words], input=text)


def test_a_file_becomes_a_repro_that_is_shown(here):
    (here / "an-issue.md").write_text(BODY, encoding="utf-8")
    ended = run("an-issue.md")
    assert ended.exit_code == 0, ended.output
    source = (here / "an_issue.py").read_text("utf-8")
    assert all(line in ended.output for line in source.splitlines()[-5:])
    assert "run it in the sandbox" in ended.output
    assert "harness bisect transformers --repro an_issue.py --bad 4.53.0" in ended.output
    assert 'model.to("cuda")' in source
    assert run("an-issue.md").exit_code == 2
    assert run("an-issue.md", "--force").exit_code == 0


@pytest.mark.parametrize("name", ["some/transformers#12", "https://github.com/some/transformers/issues/12"])
def test_gh_fetches_an_issue(here, name):
    report = read_report(name)
    assert (report.title, report.repository, report.number) == ("A title", "some/transformers", 12)
    assert "wrote transformers_12.py" in run(name).output
    text = Path("transformers_12.py").read_text("utf-8")
    assert '"transformers==4.53.0",' in text
    assert "From https://github.com/some/transformers/issues/12\n" in text


def test_an_issue_that_gh_cannot_reach_is_one_sentence(here):
    with pytest.raises(NoNetwork, match="some/transformers#404"):
        read_report("some/transformers#404")
    (here / "programs" / "gh").unlink()
    with pytest.raises(UserMistake, match="gh is not installed"):
        read_report("some/transformers#12")
    with pytest.raises(UserMistake, match="not an issue on GitHub"):
        read_report("https://example.org/a")


def test_the_json_of_gh_is_read():
    report = parse_report(json.dumps({"title": "T", "body": BODY, "url": "https://github.com/a/peft/issues/7"}))
    assert (report.title, report.repository, report.number) == ("T", "a/peft", 7)


def test_standard_input_and_what_is_no_issue(here):
    assert run("-", text=BODY).exit_code == 0
    for text, words in (("", "is empty"), ("Nothing works, please help me out of this!", "found no code")):
        ended = run("-", text=text)
        assert (ended.exit_code, words in ended.output) == (2, True), ended.output
    (here / "picture.png").write_bytes(b"\x89PNG\0\0")
    assert "not a text file" in run("picture.png").output
    assert "can't read" in run("missing.md").output
    assert run("-", text='{"a": 1}').exit_code == 2
