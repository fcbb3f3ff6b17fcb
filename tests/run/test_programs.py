"""A command starts programs of the environment or the system, never the user's Python tools."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import probes
import pytest

from harness.errors import MissingProgram
from harness.model import Device, Observation, Outcome, capture_signature
from harness.run.programs import missing_program, stub_folder, user_tools


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The interpreter of a virtual environment with a single module."""
    root = tmp_path_factory.mktemp("empty")
    venv.EnvBuilder(symlinks=True, with_pip=False).create(root)
    site = next(root.glob("lib/python*/site-packages"))
    (site / "there.py").write_text("print('there')\n")
    return root / "bin" / "python"


@pytest.fixture
def users(tmp_path, monkeypatch):
    """A folder of the user on the PATH, with tools of many kinds."""
    folder = tmp_path / "users" / "bin"
    folder.mkdir(parents=True)
    texts = {
        "pytest": f"#!{sys.executable}\nprint('of the user')\n",
        "fancytool": "#!/usr/bin/env python3\nprint('of the user')\n",
        "longtool": "#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n",
        "nox": "#!/bin/sh\necho of the user\n",
        "plain": "#!/bin/sh\necho plain\n",
        "python3.8": "#!/bin/sh\necho of the user\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/local/bin:/usr/bin:/bin")
    return folder


@pytest.mark.parametrize(
    "argv",
    [
        ("pytest", "tests"),
        ("fancytool",),
        ("longtool",),
        ("nox",),
        ("tox", "-e", "py"),
        ("accelerate", "launch", "x.py"),
        ("torchrun", "x.py"),
        ("python3.8", "-c", "pass"),
        ("env", "A=b", "pytest"),
        ("no-such-tool",),
    ],
)
def test_a_missing_program_is_reported_before_any_run(tmp_path, empty, users, argv):
    with pytest.raises(MissingProgram) as told:
        probes.run(tmp_path, argv=argv, python=str(empty))
    assert told.value.exit_code == 2
    if argv[0] in ("pytest", "nox", "tox"):
        assert f"--with {argv[0]}" in told.value.message


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", "exit 0"),
        ("env", "A=b", "true"),
        ("plain",),
        ("python", "-c", "pass"),
        ("python3", "-V"),
        ("python", "-m", "there"),
        ("python", "-m", "json.tool", "--help"),
        ("timeout", "9", "python", "-m", "there"),
    ],
)
def test_tools_of_the_environment_and_the_system_run(tmp_path, empty, users, argv):
    ran = probes.run(tmp_path, argv=argv, python=str(empty))
    assert ran.outcome is Outcome.COMPLETED, ran.tail


@pytest.mark.parametrize("command", ["pytest -x", "fancytool", "nox", "python3.8 -c pass", "pip3 --version"])
def test_a_shell_does_not_find_python_tools_of_the_user(tmp_path, empty, users, command):
    ran = probes.run(tmp_path, argv=("sh", "-c", command), python=str(empty))
    assert (ran.outcome, ran.exit_code) == (Outcome.EXITED, 127)
    assert "of the user" not in ran.tail
    assert "command not found" in ran.mistake


def test_a_script_whose_first_line_names_another_python_is_refused(tmp_path, empty):
    script = tmp_path / "go"
    script.write_text("#!/usr/bin/python3\n")
    assert "python go" in missing_program(("./go",), empty, os.environ["PATH"], tmp_path)
    script.write_text("#!/usr/bin/env python3\n")
    assert missing_program(("./go",), empty, os.environ["PATH"], tmp_path) == ""


def test_a_program_shadowed_by_a_python_tool_is_found(tmp_path, users, empty):
    behind = tmp_path / "behind"
    behind.mkdir()
    (behind / "fancytool").write_text("#!/bin/sh\necho behind\n")
    (behind / "fancytool").chmod(0o755)
    path = f"{users}:{behind}"
    assert dict(user_tools(path))["fancytool"] == str(behind / "fancytool")


def test_the_stubs_of_a_path_are_made_once_and_again_after_a_change(tmp_path, users, empty):
    made = stub_folder(tmp_path / "stubs", empty, str(users))
    first = made.stat().st_ino
    assert stub_folder(tmp_path / "stubs", empty, str(users)).stat().st_ino == first
    text = (made / "uv").read_text()
    (made / "uv").write_text("#!/bin/sh\n")
    assert stub_folder(tmp_path / "stubs", empty, str(users)) == made
    assert (made / "uv").read_text() == text
    assert [path.name for path in (tmp_path / "stubs").iterdir()] == [made.name]


OWN = "import sys\nsys.stderr.write(\"ModuleNotFoundError: No module named '{}'\\n\")\nsys.exit(1)\n"


@pytest.mark.parametrize(
    ("argv", "is_mistake"),
    [
        (("sh", "-c", "no-such-tool"), True),
        (("sh", "-c", "python -m nowhere"), True),
        (("python", "-m", "pytest"), True),
        (("python", "-W", "error", "-m", "nowhere"), True),
        (("python", "absent.py"), True),
        (("python", "-c", OWN.format("mine")), True),
        (("python", "-c", OWN.format("theirs")), False),
        (("sh", "-c", "echo 'ERROR: usage: pytest [options]' >&2; exit 4"), True),
        (("sh", "-c", "echo '=== no tests ran in 0.01s ==='; exit 5"), True),
        (("sh", "-c", "exit 4"), False),
        (("sh", "-c", "exit 127"), False),
        (("python", "-c", "1 / 0"), False),
    ],
)
def test_a_mistake_in_the_command_is_not_the_bug(tmp_path, empty, argv, is_mistake):
    here = tmp_path / "here"
    (here / "src" / "mine").mkdir(parents=True)
    ran = probes.run(tmp_path, argv=argv, python=str(empty), invoked_from=here)
    assert ran.outcome is Outcome.EXITED
    assert bool(ran.mistake) is is_mistake, (ran.mistake, ran.tail)
    seen = Observation("k", ran.outcome, "r", "d", Device.CPU, exit_code=ran.exit_code, mistake=ran.mistake)
    assert (capture_signature(seen, ran.tail) is None) is is_mistake


def test_a_repro_that_imports_the_project_of_the_user_says_so(tmp_path, empty):
    (tmp_path / "mine.py").write_text("")
    ran = probes.run(tmp_path, "import mine", python=str(empty), invoked_from=tmp_path)
    assert str(tmp_path / "mine") in ran.mistake
    assert not probes.run(tmp_path, "import other", python=str(empty), invoked_from=tmp_path).mistake


def test_usage_errors_of_real_pytest_are_recognised(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (here / "test_none.py").write_text("")
    (here / "test_raises.py").write_text("import a_module_that_is_gone\n")
    python = str(Path(sys.executable))
    for words, is_mistake in (("absent.py", True), ("--no-such-option", True), ("test_none.py", True)):
        ran = probes.run(tmp_path, argv=("python", "-m", "pytest", words), python=python, invoked_from=here)
        assert bool(ran.mistake) is is_mistake, ran.tail
    ran = probes.run(tmp_path, argv=("python", "-m", "pytest", "test_raises.py"), python=python, invoked_from=here)
    assert not ran.mistake


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("uv run --frozen -q python -m there", "there"),
        ("poetry run python -m there", "there"),
        ("uv run -m there", "there"),
        ("uv run -- python -m there", "there"),
        ("uv pip list", "real pip list"),
        ("uv run --with six python -m there", "changes what is installed"),
        ("poetry install", "poetry: command not found"),
    ],
)
def test_of_a_command_with_the_packages_of_its_project_the_command_runs(tmp_path, empty, users, line, printed):
    """Also where a Makefile or a script has it."""
    (users / "uv").write_text('#!/bin/sh\necho real "$@"\n')
    (users / "uv").chmod(0o755)
    ran = probes.run(tmp_path, argv=("sh", "-c", line), python=str(empty), invoked_from=tmp_path)
    assert printed in ran.tail
    assert bool(ran.mistake) is (ran.exit_code == 127)


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (("-m", "pytest", "tests/absent.py"), "no such file: absent.py"),
        (("-m", "pytest", "test_it.py::test_absent"), "no such test: test_it.py::test_absent"),
        (("absent.py",), "no such file: absent.py"),
    ],
)
def test_a_missing_file_or_test_is_named(tmp_path, words, mistake):
    here = tmp_path / "here"
    here.mkdir()
    (here / "test_it.py").write_text("def test_it(): pass\n")
    python = str(Path(sys.executable))
    ran = probes.run(tmp_path, argv=("python", *words), python=python, invoked_from=here)
    assert ran.mistake == mistake


def test_a_misspelled_tool_is_not_suggested_as_a_package(tmp_path: Path) -> None:
    """Nobody should install what has a name like that of a known tool."""
    told = missing_program(("pytset", "-x"), tmp_path / "bin" / "python", "", tmp_path)
    assert told.startswith("pytset is neither in the environment nor on the PATH")
    assert "--with pytset" not in told
