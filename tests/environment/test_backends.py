"""A build sees no home and no secret of the user, writes only its own folders, and ends in time."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from attrs import evolve
from support import Heard

from harness.environment import PipSettings, Uv
from harness.events import SILENT
from harness.question.project import Projects
from harness.run.sandbox import SandboxMode, choose

SANDBOX = choose(SandboxMode.AUTO, network=False, reporter=SILENT)
sandboxed = pytest.mark.skipif(SANDBOX is None, reason="no bubblewrap that works here")
BACKEND = """
import json, os, pathlib, socket, sys, time, zipfile

def tried(action):
    try:
        return str(action())
    except OSError as error:
        return type(error).__name__

def build_wheel(folder, config_settings=None, metadata_directory=None):
    @TRY@
    told = {
        "secret": tried(lambda: open(@SECRET@).read()),
        "mark": tried(lambda: open(@MARK@, "w").close()),
        "beside": tried(lambda: open(os.path.join(@CACHE@, "wheels", "x"), "w").close()),
        "token": os.environ.get("MY_TOKEN", ""),
        "environ": dict(os.environ),
        "connected": tried(lambda: socket.create_connection(("127.0.0.1", @PORT@), 2)),
        "settings": tried(lambda: open(@SETTINGS@).read()),
        "made": pathlib.Path("made.txt").write_text("x") and tried(lambda: socket.socket().close()),
    }
    with zipfile.ZipFile(pathlib.Path(folder, "mine-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("mine.json", json.dumps(told))
        wheel.writestr("mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: mine\\nVersion: 1.0\\n")
        wheel.writestr("mine-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("mine-1.0.dist-info/RECORD", "")
    return "mine-1.0-py3-none-any.whl"
"""


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A home folder with a secret in a file, and one in a variable."""
    file = tmp_path / "home" / ".ssh" / "id"
    file.parent.mkdir(parents=True)
    file.write_text("hush")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MY_TOKEN", "hush")
    return file


def read(parts, tmp_path, secret, uv, *, first="pass", port=1, reporter=SILENT):
    """The project in a folder whose backend tries to read the secret and to leave a mark."""
    folder = tmp_path / "project"
    folder.mkdir()
    settings = tmp_path / "home" / ".config" / "uv" / "uv.toml"
    told = {"SECRET": secret, "MARK": tmp_path / "mark", "CACHE": parts.workspace.root, "SETTINGS": settings}
    text = BACKEND.replace("@TRY@", first).replace("@PORT@", str(port))
    for name, path in told.items():
        text = text.replace(f"@{name}@", repr(str(path)))
    (folder / "backend.py").write_text(text)
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(f'{build}[project]\nname = "mine"\nversion = "1.0"\n')
    return Projects(parts.workspace, uv, parts.resolver.interpreter, reporter=reporter).read(folder)


@pytest.fixture
def uv(parts, uv_cache):
    """The uv of a session."""
    folder = {"UV_CACHE_DIR": str(uv_cache)}
    return Uv(PipSettings(no_index=True), extra_environment=folder)


@sandboxed
def test_the_backend_of_a_project_runs_in_the_sandbox(parts, tmp_path, secret, uv):
    uv = evolve(uv, extra_environment={}, sandbox=SANDBOX)
    project = read(parts, tmp_path, secret, uv)
    assert project.built is not None, project.notes
    told = json.loads((project.built / "mine.json").read_text())
    assert (told["secret"], told["token"]) == ("FileNotFoundError", "")
    assert told["beside"] in ("OSError", "FileNotFoundError")
    assert not (tmp_path / "mark").exists()
    assert not (parts.workspace.wheels / "x").exists()


def test_a_build_without_a_sandbox_gets_no_secret_variables(parts, tmp_path, secret, uv):
    project = read(parts, tmp_path, secret, uv)
    assert json.loads((project.built / "mine.json").read_text())["token"] == ""


@pytest.mark.parametrize("sandbox", [None, pytest.param(SANDBOX, marks=sandboxed)])
def test_a_build_gets_no_password_of_an_index(parts, tmp_path, secret, uv, sandbox, monkeypatch):
    """Neither in variables nor in uv's settings, and in the sandbox it has no network either."""
    for name in ("UV_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "UV_INDEX_MINE_PASSWORD"):
        monkeypatch.setenv(name, "https://me:hush@index.example/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hush@proxy.example:3128")
    settings = tmp_path / "home" / ".config" / "uv" / "uv.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('index-url = "https://me:hush@index.example/simple"\n')
    with socket.create_server(("127.0.0.1", 0)) as server:
        own = Uv(extra_environment=uv.extra_environment, sandbox=sandbox)
        project = read(parts, tmp_path, secret, own, port=server.getsockname()[1])
    assert project.built is not None, project.notes
    told = json.loads((project.built / "mine.json").read_text())
    assert "hush" not in json.dumps(told["environ"])
    if sandbox is not None:
        assert told["connected"] == "ConnectionRefusedError"
        assert told["settings"] == "FileNotFoundError"


@pytest.mark.parametrize("sandbox", [None, pytest.param(SANDBOX, marks=sandboxed)])
def test_a_build_that_hangs_is_reported_and_stopped(parts, tmp_path, secret, uv, sandbox, monkeypatch):
    monkeypatch.setattr("harness.environment.source_builds._WORD_S", 0.1)
    uv, heard = evolve(uv, sandbox=sandbox, longest_build_s=3.0), Heard()
    project = read(parts, tmp_path, secret, uv, first="time.sleep(1000)", reporter=heard)
    assert any("a build from source has run for 0 min" in event.sentence for event in heard.events)
    assert project.built is None
    assert "the build timed out after 3 s" in " ".join(project.notes)


def test_required_without_bubblewrap_nothing_is_built(harness, tmp_path, secret):
    folder = harness.folder
    (folder / "setup.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    (folder / "test_it.py").write_text("def test_it(): pass\n")
    path = str(Path(tmp_path / "no programs"))
    ended = harness("bisect", "--run", "python -m unittest", "--sandbox", "require", PATH=path)
    assert (ended.code, "no sandbox" in ended.stderr) == (2, True)
    assert not (tmp_path / "mark").exists()
