"""A fake `gh` that keeps the issues of some-one/project in a file."""

from __future__ import annotations

import sys
from pathlib import Path

# Keeps its issues in a file, as GitHub would: closed ones too, and bodies without their last line end.
GH = """#!{python}
import json, pathlib, sys

place = pathlib.Path({folder!r})
words = sys.argv[1:]
with (place / "calls.txt").open("a") as calls:
    calls.write(" ".join(words) + "\\n")
if (place / "offline").exists():
    sys.exit("error connecting to api.github.com\\ncheck your internet connection")
issues = json.loads((place / "issues.json").read_text())


def option(name):
    return words[words.index(name) + 1]


kind, deed, *rest = words
if deed == "view":
    sys.exit(print((place / "view.json").read_text()))
assert option("--repo") == "some-one/project", words
if (kind, deed) == ("issue", "list"):
    assert option("--state") == "all"
    print(json.dumps([issue for issue in issues if option("--label") in issue["labels"]]))
elif (kind, deed) == ("label", "create"):
    (place / "label").write_text(rest[0])
elif deed == "create":
    assert (place / "label").read_text() == option("--label")
    issues.append({{"number": len(issues) + 1, "title": option("--title"), "body": sys.stdin.read().strip(),
                   "state": "OPEN", "labels": [option("--label")]}})
else:
    issue = issues[int(rest[0]) - 1]
    if deed == "edit":
        issue.update(title=option("--title"), body=sys.stdin.read().strip())
    else:
        issue["state"] = {{"close": "CLOSED", "reopen": "OPEN"}}[deed]
(place / "issues.json").write_text(json.dumps(issues))
"""


def write_fake_gh(folder: Path) -> Path:
    """Write it to a folder on PATH; `issues.json` there has the issues, `calls.txt` the arguments of each call."""
    folder.mkdir()
    (folder / "issues.json").write_text("[]", encoding="utf-8")
    gh = folder / "gh"
    gh.write_text(GH.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
    gh.chmod(0o755)
    return folder
