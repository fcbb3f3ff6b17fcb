"""Texts as they should be, from which fuzzing starts: what is read whole leads further into a reader than noise."""

from __future__ import annotations

import gzip
import json

from attrs import evolve

from harness.model import Combination, Device, Lock, Observation, Outcome, Pin, RaisedException, Repro, StackFrame
from harness.probing import Probe
from harness.probing.job import SCHEMA, MachineKind, ProbeJob, Result
from harness.records import as_record
from harness.run.runner import Terms

LOCK = Lock("3.11.7", "linux-x86_64", [Pin("p", "1.0", "p-1.0-py3-none-any.whl", "f" * 64, 12)])
RAISED = RaisedException(
    "builtins.ValueError", "x", ("builtins.Exception",), (StackFrame("a.py", 3, "f"),), RaisedException("a.B", "k")
)
OBSERVATION = Observation(
    "ab12", Outcome.RAISED, "step", "d", Device.CPU, "ValueError: x", RAISED, 1, {"loss": 1.5}, {"a": 1}, LOCK
)
JOB = ProbeJob(
    Probe(Repro("x", "d", path="x.py"), Combination("3.11.7", ("p",)), lock=LOCK), "ab12", "cpython-311", Terms("8.6")
)
RESULT = Result(OBSERVATION, MachineKind("1", "linux-x86_64", "3.11.7", "cpython-311", ()))
METADATA = """requires-python = ">=3.10"
dependencies = ["p"]
[tool.harness]
timeout = 30
memory = "1.5 GiB"
params = {layers = 2}
[tool.harness.subjects.p]
good = "1.0"
bad = "1.9"
as-of = "none"
hold = ["helper==1.0"]
[tool.harness.signature]
metric = "loss"
above = 1.5
output = "a+b"
[tool.harness.cases.small]
params = {layers = 1}
signature = {hang = true}
"""
PAGE = {
    "meta": {"api-version": "1.1"},
    "name": "p",
    "versions": ["1.0"],
    "files": [
        {
            "filename": "p-1.0-py3-none-any.whl",
            "url": "p.whl",
            "hashes": {"sha256": "f" * 64},
            "size": 5,
            "upload-time": "2024-01-01T00:00:00Z",
            "yanked": "why",
            "requires-python": ">=3.9",
        }
    ],
}
HTML = (
    '<!DOCTYPE html><html><head><title>Links for p</title></head><body><a href="p-1.0-py3-none-any.whl#sha256=ff" '
    'data-upload-time="2024-01-01T00:00:00Z" data-yanked="" data-requires-python="&gt;=3.9">p-1.0-py3-none-any.whl</a>'
)
REPORT = {
    "end": "raised",
    "stage": "script",
    "message": "x",
    "exception": {"type": "a.B", "message": "x", "bases": [], "frames": [], "cause": None},
    "chain": [["a.B", "x"]],
    "loaded": {"p": ["p.py"]},
    "installed": [["p", "1.0"]],
    "machine": {"cores": 2},
    "python": "3.11.7",
    "trace": {"called": {"p.py": {"f": 1}}, "lines": {"p.py": [1]}},
}
ROW = {"project": "p", "version": "1.0", "uploaded": None, "yanked": None, "requires_python": None}
MATRIX = '[axes]\nrepro = ["x"]\npackages.p = ["1.0", "every"]\n[[include]]\nrepro = "y"\n[[exclude]]\nrepro = "x"\n'
WORDS = """error: No solution found when resolving dependencies
  cause: Because q was not found in the package registry and only p<=1.0 is available, we can conclude that all fail.
Failed to download `p==1.0` Failed to fetch: https://u:p@host/p-1.0-py3-none-any.whl (403 Forbidden)
unexpected header (actual: 0x6d74683c, expected: 0x4034b50)
"""
PRIVATE = "https://user:hunter2@host/x hf_abcdefghijklmnopqrstuv token=abc123def456 /home/me/x"


JUNIT = b'<testsuites><testsuite><testcase classname="a.b" name="c[d]"><failure/></testcase></testsuite></testsuites>'
LOCK_TOML = b"""lock-version = "1.0"
version = 1
[[packages]]
name = "p"
version = "1.0"
marker = "python_version >= '3.9'"
[[package]]
name = "p"
version = "1.0"
source = { registry = "https://host/simple" }
dependencies = [{ name = "q", marker = "sys_platform == 'linux'" }]
[package.metadata]
requires-dist = [{ name = "q" }]
"""
CONDA = b"name: x\ndependencies:\n  - python=3.11\n  - numpy=1.26\n  - pip:\n    - p==1.0\n"
FREEZE = b"p==1.0 --hash=sha256:ff\n-e git+https://host/q@abc#egg=q\nr @ file:///x ; python_version > '3'\n"


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _record(observation: Observation) -> bytes:
    import cattrs

    return _json({"schema": 1, **cattrs.Converter().unstructure(observation)})


SEEDS: dict[str, tuple[bytes, ...]] = {
    "repro": (METADATA.encode(), b"# /// script\n# dependencies = []\n# ///\nprint(1)\n"),
    "matrix": (MATRIX.encode(),),
    "index_page_json": (_json(PAGE),),
    "index_page_html": (HTML.encode(),),
    "index_cache": (_json([{**ROW, "wheels": ["p-1.0-py3-none-any.whl"], "has_sdist": False, "size": 5}]),),
    "store_record": (
        _record(OBSERVATION),
        _record(evolve(OBSERVATION, lock=None, exception=None)),
        _json({"schema": 1, "lock": {"python": "3", "platform": "x", "pins": []}, "drift": ["a"]}),
    ),
    "store_log": (gzip.compress(b"printed\n" * 50, mtime=0),),
    "child_report": (_json(REPORT),),
    "metrics": (b'{"loss": 1.5, "worst": Infinity, "n": 3}',),
    "bundle": (
        _json(as_record(JOB, SCHEMA)),
        _json({"sha256": "", "result": as_record(RESULT, SCHEMA)}),
        _json({"schema": SCHEMA, "jobs": ["ab12"]}),
    ),
    "junit_report": (JUNIT,),
    "lock_file": (LOCK_TOML, CONDA, FREEZE),
    "installers_words": (WORDS.encode(),),
    "secrets": (PRIVATE.encode(),),
    "size": (b"8 GiB", b"1.5 KB"),
}
