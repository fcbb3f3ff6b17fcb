"""`--index` gives the package in question an index of its own, such as one of nightly builds without upload times."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from attrs import evolve
from git_project import new_project
from wheelhouse import Wheel, Wheelhouse

from harness.errors import UserMistake
from harness.settings import Settings

REPRO = """
# /// script
# dependencies = ["torch", "vision"]
# [tool.harness.signature]
# exception = "RuntimeError"
# ///
import torch, vision, helper
torch.step()
"""
GOOD, BAD = "return 1", "raise RuntimeError('the step is broken')"
DAYS = ["20250801", "20250802", "20250804", "20250805", "20250806"]  # none was built on the third
CUDA = ("--torch-backend", "cu128")
SOURCE = "https://github.com/pytorch/pytorch"


class Files(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *words):
        """Say nothing."""


@contextlib.contextmanager
def served(root):
    """Serve a folder by HTTP; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def nightly(tmp_path, harness):
    """The address of PyTorch's layout of nightly builds, and a stable index that has another torch."""
    stable, builds = Wheelhouse(tmp_path / "stable"), Wheelhouse(tmp_path / "nightly")
    stable.add("torch", "2.0", files={"torch/__init__.py": "def step(): pass\n"})
    stable.add("vision", "1.0", files={"vision.py": ""}, requires=("torch",))
    stable.add("helper", "1.0", files={"helper.py": ""})
    for number, day in enumerate(DAYS):
        body = BAD if day >= "20250805" else GOOD
        files = {
            "torch/__init__.py": f"from torch.version import git_version\ndef step():\n    {body}\n",
            "torch/version.py": f"__version__ = '2.1'\ngit_version = '{number}{'ab12cd34' * 5}'\n"[:-4] + "'\n",
        }
        named = {"requires": ("helper",), "uploaded": None, "source_url": SOURCE}
        builds.add("torch", f"2.1.0.dev{day}+cpu", files=files, **named)
        with_cuda = {**files, "torch/__init__.py": "raise ImportError('libcudart.so.12: cannot open')\n"}
        builds.add("torch", f"2.1.0.dev{day}+cu128", files=with_cuda, **named)
        beside = {"files": {"audio.py": ""}, "requires": (f"torch==2.1.0.dev{day}",), "uploaded": None}
        builds.add("audio", f"2.2.0.dev{day}+cpu", **beside)
    for name in ("helper", "vision"):  # an index of nightlies has copies of other packages
        builds.add(name, "9.0", files={f"{name}.py": "raise ImportError('not from here')\n"}, uploaded=None)
    (harness.folder / "step.py").write_text(REPRO, encoding="utf-8")
    with served(builds.root) as address:
        yield harness.with_environ(**stable.environ), f"{address}/simple"


@pytest.mark.parametrize("more", [(), ("--as-of", "era")])
def test_the_first_bad_nightly_is_found_between_two_days(nightly, more):
    run, url = nightly
    command = ["bisect", "torch", "--repro", "step.py", "--index", url, "--depth", "release", "--confirm", "1", *more]
    ended = run(*command, "--good", "2025-08-01", "--bad", "2025-08-07", "--json")
    assert ended.code == 0, ended.stderr + ended.stdout
    answer = json.loads(ended.stdout)
    assert {"2.1.0.dev20250801", "2.1.0.dev20250806"} <= {step["release"] for step in answer["steps"]}
    culprit = answer["failures"][0]["culprits"][0]
    assert (culprit["last_good"], culprit["first_bad"]) == ("2.1.0.dev20250804", "2.1.0.dev20250805")
    (commits,) = [piece["text"] for piece in culprit["evidence"] if piece["kind"] == "commits"]
    assert re.search(rf"{SOURCE}/compare/2ab12\w+\.\.\.3ab12\w+$", commits)


def test_only_the_package_in_question_comes_from_its_index(nightly):
    run, url = nightly
    ended = run("probe", "step.py", "--with", "torch==2.1.0.dev20250801", "--index", f"torch={url}")
    assert ended.code == 0, ended.stderr + ended.stdout
    assert "torch 2.1.0.dev20250801+cpu" in ended.stdout
    cuda = run("probe", "step.py", "--with", "torch==2.1.0.dev20250801", "--index", f"torch={url}", *CUDA)
    assert "torch 2.1.0.dev20250801+cu128" in cuda.stdout, cuda.stderr + cuda.stdout
    missing = run("probe", "step.py", "--index", url)
    assert (missing.code, "--index takes PROJECT=URL" in missing.stderr) == (2, True)
    early = run("bisect", "torch", "--repro", "step.py", "--index", url, "--good", "2025-07-01")
    assert (early.code, "torch has no build up to 2025-07-01" in early.stderr) == (2, True)


@pytest.mark.parametrize("more", [(), ("--as-of", "era")])
def test_a_companion_of_the_same_index_is_that_of_the_same_day(nightly, more, tmp_path):
    run, url = nightly
    (run.folder / "both.py").write_text(REPRO.replace("vision", "audio"), encoding="utf-8")
    command = ["bisect", "torch", "--repro", "both.py", "--index", url, "--index", f"audio={url}", *more]
    ended = run(*command, "--depth", "release", "--confirm", "1", "--json")
    assert ended.code == 0, ended.stderr + ended.stdout
    culprit = json.loads(ended.stdout)["failures"][0]["culprits"][0]
    assert (culprit["last_good"], culprit["first_bad"]) == ("2.1.0.dev20250804", "2.1.0.dev20250805")


def test_the_commit_between_two_builds_without_tags_is_found(nightly, tmp_path):
    """As the wheels of vLLM: each names its commit in its version, and none has a tag."""
    run, _ = nightly
    project, builds = new_project(tmp_path / "project"), Wheelhouse(tmp_path / "builds")
    commits = []
    for number, body in enumerate([GOOD, "return 2", "return 3", BAD, f"{BAD}  # again"]):
        text = f"def step():\n    {body}\n"
        commits.append(project.commit(f"Step {number}", {"torch/__init__.py": text}))
        if number in (0, 4):
            version = f"2.1.dev{number}+g{commits[-1][:7]}"
            builds.add("torch", version, files={"torch/__init__.py": text}, requires=("helper",), uploaded=None)
    command = ["bisect", "torch", "--repro", "step.py", "--index", builds.url, "--git", str(project.folder)]
    ended = run(*command, "--good", "2.1.dev0", "--bad", "2.1.dev4", "--depth", "commit", "--confirm", "1", "--json")
    assert ended.code == 0, ended.stderr + ended.stdout
    found = {level["level"]: level for level in json.loads(ended.stdout)["culprit"]}
    assert found["commit"]["commits"][0]["sha"] == commits[3]


@pytest.fixture
def by_commit(tmp_path, harness):
    """An index with a folder for each commit of a repository but the second one: its address, and the commits."""
    project, root = new_project(tmp_path / "project"), tmp_path / "builds"
    commits = []
    for number, body in enumerate([GOOD, "return 2", "return 3", BAD, f"{BAD}  # again"]):
        text = f"def step():\n    {body}\n"
        commits.append(project.commit(f"Step {number}", {"torch/__init__.py": text}))
        if number == 1:
            continue
        version = f"2.1.dev{number}+g{commits[-1][:9]}"
        wheel = Wheel("torch", version, {"torch/__init__.py": text}, ("helper",)).write(root / commits[-1])
        page = root / commits[-1] / "torch" / "index.html"
        page.parent.mkdir()
        link = f'<a href="../{quote(wheel.name)}">{wheel.name}</a>'
        page.write_text(f"<!DOCTYPE html>\n<html>\n  <body>\n    {link}<br/>\n  </body>\n</html>\n")
    stable = Wheelhouse(tmp_path / "stable")
    stable.add("vision", "1.0", files={"vision.py": ""}, requires=("torch",))
    stable.add("helper", "1.0", files={"helper.py": ""})
    (harness.folder / "step.py").write_text(REPRO, encoding="utf-8")
    with served(root) as address:
        yield harness.with_environ(**stable.environ), f"{address}/{{commit}}", project.folder, commits


def test_the_first_bad_build_of_an_index_with_a_folder_for_each_commit(by_commit):
    run, url, clone, commits = by_commit
    command = ["bisect", "torch", "--repro", "step.py", "--index", url, "--depth", "release", "--confirm", "1"]
    ended = run(*command, "--git", str(clone), "--good", commits[0][:10], "--bad", "main", "--json")
    assert ended.code == 0, ended.stderr + ended.stdout
    culprit = json.loads(ended.stdout)["failures"][0]["culprits"][0]
    assert (culprit["last_good"], culprit["first_bad"]) == ("2.1.dev2", "2.1.dev3")
    (built,) = [piece["text"] for piece in culprit["evidence"] if piece["kind"] == "commits"]
    assert built.startswith(f"built from the commits {commits[2][:9]} and {commits[3][:9]}")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--good", "today"), "needs the repository of the commits"),
        (("--git", "<clone>"), "needs a good end"),
        (("--git", "<clone>", "--good", "main"), "is not before"),
        (("--git", "<clone>", "--good", "2020-01-01"), "has no commit up to 2020-01-01"),
        (("--git", "<clone>", "--good", "nothing"), "has no commit 'nothing'"),
        (("--git", "<clone>", "--good", "main~1", "--bad", "main~2"), "is not before"),
        (("--git", "<clone>", "--good", "main~4", "--bad", "main~3"), "has builds of 1 of the 2 commits"),
    ],
)
def test_ends_without_builds_between_them_are_a_mistake(by_commit, more, words):
    run, url, clone, _ = by_commit
    typed = [word.replace("<clone>", str(clone)) for word in more]
    ended = run("bisect", "torch", "--repro", "step.py", "--index", url, *typed)
    assert (ended.code, words in ended.stderr) == (2, True), ended.stderr


def test_nightly_names_the_known_indexes():
    nightly = Settings(nightly=True)
    torch = nightly.with_index_of("torch")
    assert dict(torch.own_indexes)["torchvision"] == "https://download.pytorch.org/whl/nightly/cpu"
    assert not torch.nightly
    assert dict(evolve(nightly, torch_backend="cu130").with_index_of("torch").own_indexes)["torch"].endswith("/cu130")
    (science,) = nightly.with_index_of("SciPy").own_indexes
    assert science == ("scipy", "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple")
    assert nightly.with_index_of("vllm").own_indexes == (("vllm", "https://wheels.vllm.ai/{commit}"),)
    for subject, settings in (("requests", nightly), (None, nightly), ("torch", evolve(nightly, device="cuda"))):
        with pytest.raises(UserMistake):
            settings.with_index_of(subject)
    with pytest.raises(UserMistake, match="--nightly does not apply with --scheduler"):
        evolve(nightly, scheduler="x").with_index_of("torch")


def test_builds_that_differ_only_in_the_local_part_are_releases(harness, tmp_path):
    """As the nightly wheels of scientific Python: one version, whose local part has the day and the commit."""
    stable, builds = Wheelhouse(tmp_path / "stable"), Wheelhouse(tmp_path / "nightly")
    stable.add("torch", "2.0", files={"torch/__init__.py": "def step(): pass\n"})
    stable.add("vision", "1.0", files={"vision.py": ""}, requires=("torch>=2",))
    stable.add("helper", "1.0", files={"helper.py": ""})
    for number, day in enumerate(DAYS):
        text = f"def step():\n    {BAD if day >= '20250805' else GOOD}\n"
        version = f"2.1.0.dev0+git{day}.{number}ab12cd"
        named = {"requires": ("helper",), "uploaded": None, "source_url": SOURCE}
        builds.add("torch", version, files={"torch/__init__.py": text}, **named)
    (harness.folder / "step.py").write_text(REPRO, encoding="utf-8")
    with served(builds.root) as address:
        run = harness.with_environ(**stable.environ)
        command = ["bisect", "torch", "--repro", "step.py", "--index", f"{address}/simple", "--confirm", "1", "--json"]
        for ends in (
            ("--good", "2025-08-01", "--bad", "2025-08-06"),
            ("--good", "2.1.0.dev0+git20250801.0ab12cd", "--bad", "2.1.0.dev0+git20250806.4ab12cd"),
        ):
            ended = run(*command, *ends, "--depth", "release")
            assert ended.code == 0, ended.stderr + ended.stdout
            culprit = json.loads(ended.stdout)["failures"][0]["culprits"][0]
            assert (culprit["last_good"], culprit["first_bad"]) == ("2.1.0.dev20250804", "2.1.0.dev20250805")
            (built,) = [piece["text"] for piece in culprit["evidence"] if piece["kind"] == "commits"]
            assert built.endswith(f"{SOURCE}/compare/2ab12cd...3ab12cd")
