"""A fault of the index is temporary: it is reported as such and never stored as an answer about releases."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from faulty_index import FaultyIndex
from support import step_source
from wheelhouse import Wheelhouse

from harness.environment import Index, PipSettings, Uv
from harness.environment.pages import download
from harness.environment.uv import is_lasting
from harness.errors import IndexFault, NoNetwork, UnknownProject, UserMistake

NO_PAGE = (
    "portal",
    "redirect to a portal",
    "redirect loop",
    "empty",
    "cut",
    "half",
    "a list",
    "null",
    "deep",
    "other types",
    "plain text",
)
STATUS = ("401", "403", "429", "500", "503")
PAGE_FAULTS = (*NO_PAGE, *STATUS, "404", "410", "wrong hash")
FILE_FAULTS = (
    "portal",
    "redirect to a portal",
    "redirect loop",
    "401",
    "403",
    "404",
    "503",
    "cut",
    "truncated",
    "another",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server for all these tests."""
    house = Wheelhouse(tmp_path_factory.mktemp("served"))
    house.add("subject", "1.0", requires=("needed",), files={"subject.py": step_source(0, broken=False)})
    house.add("needed", "1.0", files={"needed.py": f"TEXT = {'x' * 4000!r}\n"})
    house.add("needed", "2.0", files={"needed.py": f"TEXT = {'y' * 4000!r}\n"})
    with FaultyIndex(house).served() as served:
        yield served


@pytest.fixture
def index(served):
    """The server without a fault."""
    served.well()
    return served


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A cache whose environment the first test builds; it has no page of the index."""
    return tmp_path_factory.mktemp("built")


@pytest.fixture
def probe(harness, write_repro, index, tmp_path):
    """`harness probe` of the subject with caches for this test only."""
    path = write_repro("subject")
    own = harness.with_environ(
        UV_DEFAULT_INDEX=index.url,
        UV_CACHE_DIR=str(tmp_path / "uv"),
        HARNESS_CACHE_DIR=str(tmp_path / "cache"),
        UV_HTTP_RETRIES="0",
    )
    return lambda *words, **environ: own("probe", path, "--with", "subject==1.0", *words, **environ)


def kept(harness):
    """What the results hold of a failed probe: outcomes, and resolver answers without a lock."""
    results = harness.folder / "results"
    records = [json.loads(path.read_text()) for path in results.glob("observations/*/*.json")]
    locks = [json.loads(path.read_text()) for path in results.glob("locks/*.json")]
    return [record["outcome"] for record in records], [lock for lock in locks if not lock.get("lock")]


@pytest.mark.parametrize("fault", PAGE_FAULTS)
def test_a_wrong_page_gives_no_answer_about_releases(harness, probe, index, built, fault):
    shutil.rmtree(built / "index", ignore_errors=True)
    index.pages = fault
    ended = probe(HARNESS_CACHE_DIR=str(built))
    codes = (2,) if fault == "404" else (3, 5)  # so an index says that it has no such project
    assert ended.code in codes, (ended.stdout, ended.stderr)
    assert kept(harness) == ([], [])
    assert "Traceback" not in ended.stderr
    if fault in ("401", "403"):
        assert ended.code == 5
        assert "refuses access" in ended.stderr
        assert fault in ended.stderr
    index.well()
    ended = probe(HARNESS_CACHE_DIR=str(built))
    assert ended.code == 0, (ended.stdout, ended.stderr)
    assert kept(harness) == (["completed"], [])


@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_a_wrong_file_gives_no_answer_about_its_release(harness, probe, index, fault):
    index.files = fault
    ended = probe()
    assert ended.code in (3, 5), (ended.stdout, ended.stderr)
    assert kept(harness) == ([], [])
    index.well()
    ended = probe()
    assert ended.code == 0, (ended.stdout, ended.stderr)


def test_a_conflict_of_listed_releases_is_stored(harness, probe, index):
    index.house.add("strict", "1.0", requires=("needed>=2",))
    for _ in range(2):
        assert probe("--with", "strict==1.0", "--with", "needed==1.0").code == 3
    outcomes, (unresolved,) = kept(harness)
    assert outcomes == ["unresolvable"]
    assert "needed>=2" in unresolved["words"]


@pytest.mark.parametrize("fault", [*NO_PAGE, *STATUS, "future version"])
def test_a_page_lists_releases_or_is_a_fault(tmp_path, index, fault):
    index.pages = fault
    settings = PipSettings(index_url=index.url)
    with pytest.raises(IndexFault) if fault != "cut" else pytest.raises(Exception, match="cut off"):
        Index(settings, tmp_path / "pages", environ={}).releases("needed")
    index.well()
    found = Index(settings, tmp_path / "pages", environ={}).releases("needed")
    assert [str(release.version) for release in found] == ["1.0", "2.0"]


def test_a_project_published_later_is_found_at_once(tmp_path, index):
    settings = PipSettings(index_url=index.url)
    with pytest.raises(UnknownProject):
        Index(settings, tmp_path / "pages", environ={}).releases("later")
    index.house.add("later", "1.0")
    assert Index(settings, tmp_path / "pages", environ={}).release("later", "1.0") is not None


@pytest.fixture
def files(tmp_path):
    """A folder, and the address at which its files are served."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    folder = tmp_path / "files"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_file_may_be_larger_than_a_page(tmp_path, files):
    folder, address = files
    size = 257 * 2**20
    with (folder / "large.whl").open("wb") as file:
        file.truncate(size)
    download(PipSettings(), f"{address}/large.whl", tmp_path / "large.whl", "")
    assert (tmp_path / "large.whl").stat().st_size == size
    (tmp_path / "large.whl").unlink()


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_another_file_than_the_listed_one_is_not_left(tmp_path, files, scheme):
    folder, address = files
    (folder / "one.whl").write_bytes(b"one")
    url = f"{address}/one.whl" if scheme == "http" else (folder / "one.whl").as_uri()
    target = tmp_path / "one.whl"
    download(PipSettings(), url, target, hashlib.sha256(b"one").hexdigest())
    assert target.read_bytes() == b"one"
    other = tmp_path / "other.whl"
    with pytest.raises(IndexFault):
        download(PipSettings(), url, other, hashlib.sha256(b"two").hexdigest())
    assert not other.exists()
    assert not list(tmp_path.glob("*.part"))


def test_a_listed_file_that_is_missing_is_a_fault(tmp_path, files):
    _, address = files
    with pytest.raises(IndexFault):
        download(PipSettings(), f"{address}/one.whl", tmp_path / "one.whl", "")
    assert not (tmp_path / "one.whl").exists()


@pytest.mark.parametrize("name", ["", " ", "../secret", "a b", "-p", "name==1.0", "https://host/x"])
def test_an_invalid_project_name_is_never_requested(tmp_path, name):
    with pytest.raises(UserMistake, match="not the name of a project"):
        Index(PipSettings(index_url="http://127.0.0.1:9"), tmp_path, environ={}).releases(name)


@pytest.mark.parametrize(
    "text",
    ["{", "[[[" * 50_000, "[]", '[{"project": "p"}]', '[{"project":5,"version":"1"}]', "5", '"x"', "null"],
)
def test_a_damaged_cached_page_is_fetched_again(tmp_path, index, text):
    settings = PipSettings(index_url=index.url)
    Index(settings, tmp_path / "pages", environ={}).releases("needed")
    (page,) = (tmp_path / "pages").iterdir()
    page.write_text(text)
    assert len(Index(settings, tmp_path / "pages", environ={}).releases("needed")) == 2


def test_permanent_and_temporary_resolver_errors_are_distinguished():
    true = (
        "Because a==1 depends on b>=2 and you require b==1, we can conclude that your requirements are unsatisfiable."
    )
    assert is_lasting(true)
    assert is_lasting("Because a==1.0 has no wheels with a matching Python ABI tag, we can conclude that ...")
    assert not is_lasting("")
    assert not is_lasting("Because there is no version of b==9 and a==1 depends on b==9, we can conclude that ...")
    assert not is_lasting("Failed to download `a==1` Hash mismatch for `a==1`")


class _Sending(BaseHTTPRequestHandler):
    """A server whose answer does not end."""

    piece, pause = b"", 0.0

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        try:
            self.wfile.write(b"<!DOCTYPE html><title>Links for subject</title>")
            while True:
                self.wfile.write(self.piece)
                time.sleep(self.pause)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("piece", "pause", "limit", "words"),
    [
        (b"<a href='subject-1.0.tar.gz'>x</a>" * 2000, 0.0, ("_LARGEST_PAGE", 1 << 20), "more than 1 MiB"),
        (b"<", 0.05, ("_PATIENCE_S", 0.3), r"it sent \d+ bytes in \d+ s"),
        (b"<" * 2000, 0.05, ("_LONGEST_PAGE_S", 0.5), r"it sent \d+ bytes in \d+ s"),
    ],
)
def test_a_page_without_an_end_is_not_read_to_it(tmp_path, monkeypatch, piece, pause, limit, words):
    monkeypatch.setattr(f"harness.environment.pages.{limit[0]}", limit[1])
    handler = type("Handler", (_Sending,), {"piece": piece, "pause": pause})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = PipSettings(f"http://127.0.0.1:{server.server_port}/simple")
        with pytest.raises((IndexFault, NoNetwork), match=words):
            Index(settings, tmp_path, environ={}).releases("subject")
        server.shutdown()


def test_uv_does_not_fill_the_memory_with_a_page_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.environment.uv._MOST_MEMORY", 300 << 20)
    handler = type("Handler", (_Sending,), {"piece": b"<a href='subject-1.0-py3-none-any.whl'>x</a>" * 2000})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uv = Uv(
            PipSettings(f"http://127.0.0.1:{server.server_port}/simple"),
            extra_environment={"UV_CACHE_DIR": str(tmp_path / "uv"), "NO_PROXY": "127.0.0.1"},
        )
        with pytest.raises(NoNetwork, match="300 MiB of memory"):
            uv.compile(["subject"], python=Path(sys.executable))
        server.shutdown()
