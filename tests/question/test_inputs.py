"""Inputs of a repro: a folder, an archive with its hash, and files of a hub, fetched by the hub's own client."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support import repro_text

SHA = "1" * 40
FILES = {"config.json": b'{"layers": 2}', "data/weights.bin": b"\1" * 100}
BODY = """
import os
from pathlib import Path

folder = Path(os.environ["HARNESS_INPUTS"])
for path in sorted(folder.rglob("*")):
    if path.is_file():
        print(path.relative_to(folder), path.read_bytes()[:20])
print("offline" if os.environ.get("HF_HUB_OFFLINE") == "1" else "online")
"""


class Hub(BaseHTTPRequestHandler):
    """The few addresses of a hub that its client asks for."""

    def log_message(self, *_):
        """Remember what was asked for."""
        self.server.asked.append(self.path)

    def do_HEAD(self):
        """Answer without the content."""
        self.answer()

    def do_GET(self):
        """Answer with the content."""
        self.answer()

    def answer(self):
        """Answer as a hub does."""
        path = self.path.partition("?")[0].strip("/").split("/")
        path = path[2:] if path[:2] == ["api", "models"] else path
        name, (where, revision, *file) = "/".join(path[:2]), path[2:]
        file = "/".join(file)
        if name == "own/silent":
            return  # the connection is closed without an answer
        if name == "own/gated":
            self.send(403, b"", {"X-Error-Code": "GatedRepo"})
        elif name != "own/tiny":
            self.send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif revision != SHA:
            self.send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif where == "revision":
            siblings = [{"rfilename": path} for path in FILES]
            self.send(200, json.dumps({"id": name, "sha": SHA, "siblings": siblings}).encode(), {})
        elif where == "tree":
            listed = [{"type": "file", "oid": "1", "size": len(text), "path": path} for path, text in FILES.items()]
            self.send(200, json.dumps(listed).encode(), {})
        elif file not in FILES:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound"})
        else:
            etag = hashlib.sha1(FILES[file]).hexdigest()
            self.send(200, FILES[file], {"X-Repo-Commit": SHA, "ETag": f'"{etag}"'})

    def send(self, status, content, headers):
        """Send an answer."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def write(harness):
    def write(inputs):
        path = harness.folder / "reads.py"
        path.write_text(repro_text("x", tool=inputs, body=BODY, dependencies="[]"), encoding="utf-8")
        return path

    return write


def printed(harness, ended):
    from harness.store import Store

    store = Store.opened(harness.folder / "results")
    return store.log(store.get(ended.json["key"]))


def test_a_folder_is_read_as_it_is_now(harness, write, tmp_path):
    (harness.folder / "data").mkdir()
    (harness.folder / "data" / "a.txt").write_text("one")
    repro = write('[tool.harness.inputs.texts]\nfolder = "data"\n')
    first = harness("probe", repro, "--json")
    assert "texts/a.txt b'one'" in printed(harness, first)
    assert "online" in printed(harness, first)
    assert harness("probe", repro, "--json").json["key"] == first.json["key"]
    (harness.folder / "data" / "a.txt").write_text("two")
    again = harness("probe", repro, "--json")
    assert again.json["key"] != first.json["key"]
    assert "texts/a.txt b'two'" in printed(harness, again)


def test_an_archive_is_checked_by_its_hash(harness, write):
    with zipfile.ZipFile(harness.folder / "kept.zip", "w") as packed:
        packed.writestr("inside/a.txt", "packed")
    digest = hashlib.sha256((harness.folder / "kept.zip").read_bytes()).hexdigest()
    inputs = '[tool.harness.inputs.kept]\narchive = "kept.zip"\nsha256 = "{}"\n'
    assert "kept/inside/a.txt b'packed'" in printed(harness, harness("probe", write(inputs.format(digest)), "--json"))
    ended = harness("probe", write(inputs.format("0" * 64)))
    assert ended.code == 2
    assert f"its hash is {digest}, not {'0' * 64}" in ended.stderr


@pytest.mark.network
def test_files_of_a_hub_are_fetched_once_and_runs_are_offline(harness, write, hub, tmp_path):
    inputs = f'[tool.harness.inputs.model]\nhub = "own/tiny@{SHA}"\nfiles = ["config.json", "data/*"]\n'
    told = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_address[1]}",
        "HARNESS_CACHE_DIR": str(tmp_path / "cache"),
        **dict.fromkeys(("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_CACHE_DIR")),
    }
    repro = write(inputs)
    first = harness("probe", repro, "--json", **told)
    assert first.code == 0, first.stderr
    text = printed(harness, first)
    assert "model/data/weights.bin" in text
    assert "offline" in text
    asked = len(hub.asked)
    assert harness("probe", repro, "--fresh", "--json", **told).code == 0
    assert len(hub.asked) == asked
    for wrong, said in (
        (inputs.replace("own/tiny", "own/gated"), "own/gated is gated"),
        (inputs.replace("own/tiny", "own/none"), "has no own/none, or it is private"),
        (inputs.replace(SHA, "v9"), "own/tiny has no revision v9"),
        (inputs.replace("data/*", "more.bin"), "own/tiny has no file more.bin"),
        # The client tries a refused connection again for 23 seconds, but not one that ends like this.
        (inputs.replace("own/tiny", "own/silent"), "can't be reached"),
    ):
        ended = harness("probe", write(wrong), **told)
        assert ended.code == 2
        assert said in ended.stderr


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("[tool.harness.inputs.a]\n", "inputs.a must name one of folder, archive and hub"),
        ('[tool.harness.inputs.a]\nfolder = "x"\nhub = "a/b@c"\n', "one of folder, archive and hub"),
        ('[tool.harness.inputs.a]\nhub = "a/b"\nfiles = ["c"]\n', "must be 'owner/name@revision'"),
        ('[tool.harness.inputs.a]\nhub = "a/b@c"\n', "inputs.a.files must be a list of the files wanted"),
        ('[tool.harness.inputs.a]\narchive = "a.zip"\n', "inputs.a.sha256 must be the archive's hash"),
        ('[tool.harness.inputs.a]\nfolder = "x"\nfiles = ["c"]\n', "unknown keys: files"),
        ('[tool.harness.inputs."../a"]\nfolder = "x"\n', "names a folder"),
        ('[tool.harness.inputs.a]\nfolder = "nowhere"\n', "there is no such folder"),
    ],
)
def test_a_mistake_is_one_sentence(harness, write, inputs, said):
    ended = harness("probe", write(inputs))
    assert ended.code == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
