"""What reads strangers' text, each as a function of bytes: it ends soon, and raises only errors of the harness.

`test_strangers_text.py` tries them with Hypothesis in every run of the tests, `coverage_guided.py` with atheris for as
long as one likes (`nox -s fuzz`). A new reader of strangers' text is one more function in `TARGETS`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.environment import Index, PipSettings
from harness.environment.pages import Page, parse_page
from harness.environment.uv import is_lasting, raise_surroundings
from harness.errors import HarnessError, UserMistake
from harness.matrix import read_matrix
from harness.model import Device, Lock, Target
from harness.model.repro import parse_repro
from harness.model.text import parse_size
from harness.probing.bundle import absorb
from harness.probing.job import SCHEMA, ProbeJob, Refused, Result
from harness.question.failed_tests import only_failed
from harness.question.lockfiles import read_pins
from harness.records import read_record
from harness.redact import hide_secrets, redact
from harness.run.result import Unreadable, read_metrics, read_report
from harness.store import Store, observation_key

URL = "https://host/simple/p/"
KEY = "ab12"


@functools.cache
def _folder() -> Path:
    """One folder for all that has to be a file."""
    return Path(tempfile.mkdtemp(prefix="harness-fuzz-", dir=os.environ.get("HARNESS_FUZZ_FOLDER")))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def repro(data: bytes) -> None:
    """A repro, whole and as the metadata of one."""
    text = _text(data)
    block = "".join(f"# {line}".rstrip() + "\n" for line in text.split("\n"))
    for source in (text, f"# /// script\n{block}# ///\n"):
        with contextlib.suppress(HarnessError):
            read = parse_repro(source, name="x")
            observation_key(Lock("3.11.7", "linux", ()), read, Device.CPU)
            for case in read.cases:
                read.with_params({"case": case})


def matrix(data: bytes) -> None:
    """A matrix file."""
    read_matrix(_file("matrix.toml", data))


def index_page_json(data: bytes) -> None:
    """A page of an index in the JSON form."""
    parse_page(data, "application/vnd.pypi.simple.v1+json", None, url=URL, name="p")


def index_page_html(data: bytes) -> None:
    """A page of an index in the HTML form."""
    parse_page(data, "text/html; charset=utf-8", "utf-8", url=URL, name="p")


def index_cache(data: bytes) -> None:
    """A page that was kept."""
    index = Index(PipSettings(no_index=True), _folder() / "pages", environ={})
    with contextlib.suppress(HarnessError):
        index.releases("p")
    name = "e" * 24
    page = read_record(_file(f"pages/{name}.json", data), Page)
    for release in page.releases if page is not None else ():
        assert release.version >= release.version
        release.left_out_because(Target("3.11.7", frozenset()))


def store_record(data: bytes) -> None:
    """A record of the store, its resolutions and its log."""
    store = Store(_folder() / "results")
    for name in (f"observations/{KEY[:2]}/{KEY}.json", f"locks/{KEY}.json"):
        _file(f"results/{name}", data)
    store.get_resolution(KEY)
    found = store.get(KEY)
    if found is not None:
        store.without_secrets(found)
        store.log(found)
        store.rows()


def store_log(data: bytes) -> None:
    """The compressed log of a run."""
    from harness.run.launch import read_log

    read_log(_file("log.gz", data))


def child_report(data: bytes) -> None:
    """What the child driver says of a run."""
    with contextlib.suppress(Unreadable):
        read_report(_file("report.json", data))


def metrics(data: bytes) -> None:
    """The numbers that a repro wrote."""
    json.dumps(read_metrics(_file("metrics.json", data)))


def bundle(data: bytes) -> None:
    """A bundle that comes back: its table of contents, a job, what came of it."""
    store = Store(_folder() / "absorbed")
    _file("bundle/bundle.json", json.dumps({"schema": SCHEMA, "jobs": [KEY]}).encode())
    _file(f"bundle/{KEY}/job.json", data)
    for name in ("result.json", "problem.json", "log.gz"):
        _file(f"bundle/{KEY}/{name}", data)
    absorb(_folder() / "bundle", store)
    for read in (ProbeJob.read, Result.read):
        with contextlib.suppress(Refused):
            read(_folder() / "bundle" / KEY)
    _file("bundle/bundle.json", data)
    absorb(_folder() / "bundle", store)


def lock_file(data: bytes) -> None:
    """A lock file, in each form that its name can say."""
    for name in (
        "pylock.toml",
        "uv.lock",
        "poetry.lock",
        "pdm.lock",
        "environment.yml",
        "pixi.lock",
        "requirements.txt",
    ):
        with contextlib.suppress(UserMistake):
            read_pins(_file(f"locks/{name}", data), "3.11.7")


def junit_report(data: bytes) -> None:
    """A JUnit report of CI."""
    only_failed(("pytest",), _file("report.xml", data), (_folder(),))


def installers_words(data: bytes) -> None:
    """What an installer printed."""
    text = _text(data)
    is_lasting(text)
    raise_surroundings(text)


def secrets(data: bytes) -> None:
    """A text from which secrets and all that is private are taken; what is hidden stays hidden."""
    text = _text(data)
    hidden = hide_secrets(text, {"hunter2-hunter2": "<secret>"})
    assert "hunter2-hunter2" not in hidden
    redact(text)


def size(data: bytes) -> None:
    """A size as people write it."""
    parse_size(_text(data))


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        repro,
        matrix,
        index_page_json,
        index_page_html,
        index_cache,
        store_record,
        store_log,
        child_report,
        metrics,
        bundle,
        lock_file,
        junit_report,
        installers_words,
        secrets,
        size,
    )
}


def check(name: str, data: bytes) -> None:
    """Let a target read these bytes. Raises whatever is not an error of the harness's own that has a sentence."""
    try:
        TARGETS[name](data)
    except HarnessError as error:
        if error.exit_code == HarnessError.exit_code:
            raise
