"""Git in a hook, in a stranger's checkout and with a password: nothing of it runs, changes or stays."""

from __future__ import annotations

import base64
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from git_project import GitProject, new_project

from harness.errors import BadRepository, NoNetwork
from harness.question.project import files_of, make_repository
from harness.repository.git import Repository, archive_of, clone_of, git_output, without_credentials


@pytest.fixture
def project(tmp_path) -> GitProject:
    made = new_project(tmp_path / "project")
    made.commit("Begin", {"pkg.py": "x = 1\n"})
    return made


def state(project: GitProject) -> str:
    return project.git("for-each-ref") + project.git("status", "--porcelain")


def as_in_a_hook(project: GitProject, monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(project.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(project.folder / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(project.folder))


def test_a_copy_made_in_a_hook_leaves_the_users_repository_alone(project, tmp_path, monkeypatch):
    (project.folder / "pkg.py").write_text("x = 'not committed'\n")
    before, copy = state(project), tmp_path / "copy"
    copy.mkdir()
    (copy / "a.py").write_text("")
    with monkeypatch.context() as hook:
        as_in_a_hook(project, hook)
        make_repository(copy)
    assert state(project) == before
    assert git_output(copy, "ls-files") == "a.py"
    assert git_output(copy, "log", "--format=%s") == "A copy"


def test_a_file_that_names_a_repository_is_not_copied(project, tmp_path):
    (tmp_path / "copy" / "part").mkdir(parents=True)
    for file in ("part/a.py", "part/.git"):
        (tmp_path / "copy" / file).write_text(f"gitdir: {project.folder / '.git'}")
    assert [str(path) for path in files_of(tmp_path / "copy")] == ["part/a.py"]


def test_a_clone_updated_in_a_hook_leaves_the_users_branches_alone(project, tmp_path, monkeypatch):
    other = new_project(tmp_path / "other")
    other.commit("First", {"a.py": "1\n"})
    project.git("branch", "unpushed")
    before, url = state(project), other.folder.as_uri()
    with monkeypatch.context() as hook:
        as_in_a_hook(project, hook)
        clone_of(url, tmp_path / "cache")
        clone = clone_of(url, tmp_path / "cache")
        assert clone.commit("main").subject == "First"
    assert state(project) == before


def test_programs_named_by_a_checkout_never_run(project, tmp_path):
    trap, script = tmp_path / "trap", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    commit = project.commit("Attributes", {".gitattributes": "*.py filter=x diff=x\n"})
    (project.folder / ".git" / "hooks" / "post-commit").write_text(script.read_text())
    (project.folder / ".git" / "hooks" / "post-commit").chmod(0o755)
    for name in ("filter.x.smudge", "filter.x.clean", "filter.x.process", "core.fsmonitor", "diff.x.textconv"):
        project.git("config", name, str(script))
    project.git("config", "core.sshCommand", str(script))
    repository = Repository.open(project.folder)
    folder = archive_of(repository, repository.commit(commit), tmp_path / "cache")
    assert (folder / "pkg.py").read_text() == "x = 1\n"
    assert set(map(str, files_of(project.folder))) == {".gitattributes", "pkg.py"}
    repository.lines("log", "--no-textconv", "--no-ext-diff", "-Sx", "--format=%H")
    assert not trap.exists()


def test_a_commit_is_written_as_it_is_stored(project, tmp_path):
    attributes = "left.py export-ignore\nsubst.py export-subst\n"
    files = {".gitattributes": attributes, "left.py": "", "subst.py": "$Format:%H$\n", "run.sh": "#!/bin/sh\n"}
    (project.folder / "link").symlink_to("pkg.py")
    project.commit("Attributes", files)
    project.git("update-index", "--chmod=+x", "run.sh")
    project.git("commit", "--quiet", "--message", "A program")
    repository = Repository.open(project.folder)
    folder = archive_of(repository, repository.commit("main"), tmp_path / "cache")
    assert (folder / "left.py").exists()
    assert (folder / "subst.py").read_text() == "$Format:%H$\n"
    assert (folder / "run.sh").stat().st_mode & 0o100
    assert (folder / "link").read_text() == "x = 1\n"


@pytest.mark.parametrize("links", [{"l": "../x"}, {"d/e/up": "../..", "d/out": "e/up/../x"}])
def test_a_link_that_leaves_the_folder_in_two_steps_is_refused(project, tmp_path, links):
    for path, target in links.items():
        (project.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (project.folder / path).symlink_to(target)
    project.commit("Trap", {})
    repository = Repository.open(project.folder)
    with pytest.raises(BadRepository, match="outside"):
        archive_of(repository, repository.commit("main"), tmp_path / "cache")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pa55@host/x.git", "https://host/x.git"),
        ("https://t0ken@host/x", "https://host/x"),
        ("git+https://u:p@ss@host/x@main", "git+https://host/x@main"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("ssh://git:pw@host/x", "ssh://git@host/x"),
        ("git@host:x/y.git", "git@host:x/y.git"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_credentials_are_taken_out_of_a_url(url, shown):
    assert without_credentials(url) == shown


class _Private(SimpleHTTPRequestHandler):
    """Serves files to whoever has the password."""

    def do_GET(self):
        wanted = "Basic " + base64.b64encode(b"me:pa55word").decode()
        if self.headers.get("Authorization") == wanted:
            return super().do_GET()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()
        return None

    def log_message(self, *_):
        pass


def test_a_password_in_a_url_is_used_and_not_kept(project, tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    project.git("update-server-info")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Private, directory=project.folder / ".git"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cache, place = tmp_path / "cache", f"127.0.0.1:{server.server_port}/"
    try:
        with pytest.raises(NoNetwork) as refused:
            clone_of(f"http://me:wr0ngword@{place}", cache)
        assert "wr0ngword" not in refused.value.message
        first = clone_of(f"http://me:pa55word@{place}", cache)
        sha = project.commit("Second", {"pkg.py": "x = 2\n"})
        project.git("update-server-info")
        clone_of(f"http://me:pa55word@{place}", cache)
    finally:
        server.shutdown()
        server.server_close()
    assert first.commit("main").sha == sha
    kept = [path for path in cache.rglob("*") if path.is_file() and b"pa55word" in path.read_bytes()]
    assert kept == []
