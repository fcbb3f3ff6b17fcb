"""Changes that a run makes to its environment never reach uv's cache, another environment or the next run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve
from support import make_parts, repro_text

from harness.environment import Environment, PipSettings, Workspace, watched_environment
from harness.environment.disk_space import remove_leftovers
from harness.environment.workspace import site_packages
from harness.model import Combination, Outcome
from harness.model.repro import parse_repro
from harness.probing import Probe, next_attempt

IN_PLACE = """
import helper
with open(helper.__file__, "r+") as file:
    file.write("NUMBER = 7")
"""
IN_PLACE_WITH_THE_TIME_PUT_BACK = """
import helper, os
before = os.stat(helper.__file__)
with open(helper.__file__, "r+") as file:
    file.write("NUMBER = 7")
os.utime(helper.__file__, ns=(before.st_atime_ns, before.st_mtime_ns))
"""
DELETED = "import helper, os\nos.unlink(helper.__file__)\n"
REPLACED = "import helper, os\nos.unlink(helper.__file__)\nopen(helper.__file__, 'w').write('NUMBER = 7')\n"
HERE = "import helper, os\nhere = os.path.dirname(helper.__file__)\n"
PTH = HERE + "open(here + '/x.pth', 'w').write('import sys; sys.x = 1')\n"
ADDED = HERE + "open(here + '/added.py', 'w').write('')\n"
RECORD = HERE + "open(here + '/helper-1.0.dist-info/RECORD', 'a').write('x')\n"
SCRIPT = "import sys, os\nopen(os.path.join(sys.prefix, 'bin', 'activate'), 'a').write('x')\n"
SETTINGS = "import sys, os\nos.unlink(os.path.join(sys.prefix, 'pyvenv.cfg'))\n"
MODE = "import helper, os\nos.chmod(helper.__file__, 0o600)\n"
FAULTS = {
    "in place": (IN_PLACE, "helper.py"),
    "in place, with the time put back": (IN_PLACE_WITH_THE_TIME_PUT_BACK, "helper.py"),
    "deleted": (DELETED, "helper.py"),
    "replaced": (REPLACED, "helper.py"),
    "a .pth added": (PTH, "x.pth"),
    "a module added": (ADDED, "added.py"),
    "RECORD": (RECORD, "helper-1.0.dist-info/RECORD"),
    "a script": (SCRIPT, "bin/activate"),
    "pyvenv.cfg": (SETTINGS, "pyvenv.cfg"),
    "the mode": (MODE, "helper.py"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The cache of these tests: what one of them damages, the next finds whole."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def apart(tmp_path, house, uv_cache, interpreter):
    """The same parts, but with an empty cache, in which nothing was compiled or built again."""
    return make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter)


def asked(parts, body, *requirements):
    repro = parse_repro(repro_text("helper", body=body), name="x")
    return Probe(repro, Combination(parts.resolver.interpreter.version, requirements or ("helper==1.0",)))


def run(parts, body, *requirements, attempt=0):
    probe = evolve(asked(parts, body, *requirements), attempt=attempt)
    return parts.prober.execute(parts.prober.prepare(probe))


def contents(folder, pattern="*"):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()}


def environment(parts, *requirements):
    lock = parts.resolver.resolve(asked(parts, "", *requirements).combination).lock
    built = parts.builder.build(lock)
    assert isinstance(built, Environment)
    return built


@pytest.mark.parametrize("fault", FAULTS)
def test_changes_made_by_a_run_are_reported_and_contained(parts, uv_cache, fault):
    body, path = FAULTS[fault]
    other = environment(parts, "helper==1.0", "brittle==1.2")
    mine = environment(parts)
    shared, in_uv = contents(site_packages(other.folder)), contents(uv_cache, "helper*")
    before = contents(mine.folder)
    seen = run(parts, body)
    assert seen.outcome is Outcome.COMPLETED
    assert [name.rpartition("site-packages/")[2] for name in seen.altered] == [path]
    assert contents(uv_cache, "helper*") == in_uv
    assert contents(environment(parts).folder) == before
    assert contents(site_packages(environment(parts, "helper==1.0", "brittle==1.2").folder)) == shared
    told = run(parts, "import helper, sys\nassert helper.NUMBER == 1 and not hasattr(sys, 'x')\n")
    assert (told.outcome, told.altered) == (Outcome.COMPLETED, ())


def test_a_new_environment_gets_an_altered_wheel_intact(parts):
    run(parts, IN_PLACE)
    seen = run(parts, "import helper, brittle\nassert helper.NUMBER == 1\n", "helper==1.0", "brittle==1.3")
    assert seen.outcome is Outcome.COMPLETED


POISON = """
import helper, importlib.util, os, sys
target = {target}
source = os.stat({source})
code = compile("NUMBER = 7\\ndefault_action = 7\\ndef fill(*a, **k): raise SystemExit(9)", {source}, "exec")
from importlib._bootstrap_external import _code_to_timestamp_pyc
data = _code_to_timestamp_pyc(code, int(source.st_mtime), source.st_size)
os.makedirs(os.path.dirname(target), exist_ok=True)
with open(target, {mode!r}) as file:
    file.truncate(0)
    file.write(data)
"""


@pytest.mark.parametrize("mode", ["r+b", "wb"])
@pytest.mark.parametrize("was_compiled", [False, True])
def test_bytecode_written_by_a_run_is_never_used_by_another(apart, mode, was_compiled):
    """Its header matches the source, so that only its origin distinguishes it from the right bytecode."""
    if was_compiled:
        assert run(apart, "import helper\n").altered == ()
    poison = POISON.format(target="helper.__cached__", source="helper.__file__", mode=mode)
    seen = run(apart, poison)
    assert seen.outcome is Outcome.COMPLETED
    assert [name for name in seen.altered if "bytecode" in name] == seen_as(seen, was_compiled)
    right = "import helper\nassert helper.NUMBER == 1, helper.NUMBER\n"
    assert run(apart, right).outcome is Outcome.COMPLETED
    assert run(apart, right, "helper==1.0", "brittle==1.2").outcome is Outcome.COMPLETED


def seen_as(seen, was_compiled):
    return list(seen.altered) if was_compiled and seen.altered else []


def test_bytecode_of_the_standard_library_is_not_poisoned(apart):
    poison = POISON.format(
        target="importlib.util.cache_from_source(sys.modules['textwrap'].__file__)",
        source="sys.modules['textwrap'].__file__",
        mode="wb",
    ).replace("import helper,", "import textwrap, helper,")
    assert run(apart, poison).outcome is Outcome.COMPLETED
    assert run(apart, "import textwrap\nassert textwrap.fill('x') == 'x'\n").outcome is Outcome.COMPLETED


def without_settings(folder):
    (folder / "pyvenv.cfg").unlink()


def without_packages(folder):
    shutil.rmtree(site_packages(folder))
    (folder / "lib").mkdir(exist_ok=True)
    next(folder.glob("lib/python*")).joinpath("site-packages").mkdir()


def without_scripts(folder):
    shutil.rmtree(folder / "bin")


def without_metadata(folder):
    shutil.rmtree(site_packages(folder) / "helper-1.0.dist-info")


def with_other_content(folder):
    with (site_packages(folder) / "helper.py").open("a") as file:
        file.write("NUMBER = 7\n")


def without_anything(folder):
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "damage",
    [without_settings, without_packages, without_scripts, without_metadata, with_other_content, without_anything],
)
def test_a_damaged_environment_is_rebuilt_before_a_run(parts, damage):
    prepared = parts.prober.prepare(asked(parts, "import helper\nassert helper.NUMBER == 1\n"))
    damage(prepared.environment.folder)
    seen = parts.prober.execute(prepared)
    assert (seen.outcome, seen.altered) == (Outcome.COMPLETED, ())


def test_a_run_that_contradicts_its_lock_is_repeated_then_skipped(parts):
    """The repro itself hides a distribution, so the second run does not see it either."""
    body = HERE + "import shutil\nshutil.rmtree(here + '/helper-1.0.dist-info')\n"
    seen = run(parts, body)
    assert seen.outcome is Outcome.WRONG_ENVIRONMENT
    assert "helper missing instead of 1.0" in seen.detail
    assert parts.store.get(seen.key) is None


def test_a_run_beside_one_that_alters_files_is_repeated_alone(apart):
    """Two environments share `helper`, and the other one changes it during this run."""
    mine, other = environment(apart), environment(apart, "helper==1.0", "brittle==1.2")
    with watched_environment(apart.builder, mine) as first:
        with watched_environment(apart.builder, other) as second:
            with (site_packages(second.environment.folder) / "helper.py").open("a") as file:
                file.write("NUMBER = 7\n")
            assert second.altered()
        assert first.altered()
    with watched_environment(apart.builder, mine, apart=True) as alone:
        packages = site_packages(alone.environment.folder)
        assert (packages / "helper.py").read_text() == "NUMBER = 1\n"
        assert (packages / "helper.py").stat().st_nlink == 1
        with (packages / "helper.py").open("a") as file:
            file.write("NUMBER = 7\n")
        assert alone.altered()
    assert (site_packages(environment(apart).folder) / "helper.py").read_text() == "NUMBER = 1\n"


def test_a_damaged_environment_in_use_is_not_waited_for(parts):
    mine = environment(parts)
    with watched_environment(parts.builder, mine):
        without_scripts(mine.folder)
        with watched_environment(parts.builder, mine) as beside:
            assert beside.environment.folder != mine.folder
            assert beside.environment.python.exists()


def test_environments_share_no_file_with_the_cache_of_uv(apart, uv_cache):
    mine = environment(apart)
    of_uv = {path.lstat().st_ino for path in uv_cache.rglob("*") if path.is_file()}
    assert not of_uv & {path.lstat().st_ino for path in mine.folder.rglob("*") if path.is_file()}


def test_a_wheel_changed_in_the_cache_of_uv_is_fetched_again(apart, tmp_path):
    """For example by a plain `uv venv` with hard links."""
    uv = evolve(apart.builder.uv, extra_environment={"UV_CACHE_DIR": str(tmp_path / "uv")})
    apart = evolve(apart, builder=evolve(apart.builder, uv=uv))
    lock = apart.resolver.resolve(Combination(apart.resolver.interpreter.version, ("helper==1.0",))).lock
    (tmp_path / "lock.txt").write_text(lock.as_requirements())
    install = ("pip", "install", "--target", tmp_path / "by hand", "--python", apart.resolver.interpreter.path)
    assert uv.call(*install, "--requirements", tmp_path / "lock.txt", cwd=tmp_path).returncode == 0
    changed = list((tmp_path / "uv").rglob("helper.py"))
    assert changed
    for path in changed:
        path.write_text("NUMBER = 7\n")
    assert (site_packages(environment(apart).folder) / "helper.py").read_text() == "NUMBER = 1\n"


def test_environments_share_one_copy_of_a_wheel(apart):
    first, second = environment(apart), environment(apart, "helper==1.0", "brittle==1.2")
    inodes = {(site_packages(one.folder) / "helper.py").stat().st_ino for one in (first, second)}
    assert len(inodes) == 1


def test_a_new_hard_link_is_not_a_change(parts):
    """A new link changes the inode's change time; then the content decides, and it is read once."""
    mine = environment(parts)
    built = mine.folder.stat().st_ino
    module = site_packages(mine.folder) / "helper.py"
    Path(parts.workspace.root / "link").hardlink_to(module)
    assert run(parts, "import helper\n").altered == ()
    assert mine.folder.stat().st_ino == built


def test_leftovers_of_killed_harnesses_are_removed(parts):
    left = [
        parts.workspace.building / "abc-x1",
        parts.workspace.scratch / "r123",
        parts.workspace.clones / ".unfinished-x",
    ]
    for folder in left:
        (folder / "deep").mkdir(parents=True)
    mine = environment(parts)
    run(parts, "import helper\n")
    folders = (parts.workspace.records, parts.workspace.index, next(parts.workspace.wheels.glob("*/*")))
    left += [folder / ".ledger.json.x1.harness.part" for folder in folders]
    for path in left[3:]:
        path.touch()
    with watched_environment(parts.builder, mine) as place:
        remove_leftovers(parts.workspace)
        assert place.scratch.is_dir()
    assert not any(path.exists() for path in left)


KILLED = """
import sys
from pathlib import Path

from harness.environment import Uv, Workspace

uv = Uv(binary=Path(sys.argv[2]), scratch=Workspace(Path(sys.argv[1])).scratch)
uv.compile(["x"], python=Path(sys.executable))
"""


def test_what_a_killed_resolution_leaves_is_removed(tmp_path):
    workspace, killer, temporary = Workspace(tmp_path / "cache"), tmp_path / "uv", tmp_path / "tmp"
    killer.write_text("#!/bin/sh\nkill -9 $(ps -o ppid= $(ps -o ppid= $PPID))\nsleep 60\n")
    killer.chmod(0o755)
    temporary.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, workspace.root, killer],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert list(workspace.scratch.iterdir())
    remove_leftovers(workspace)
    assert not [*workspace.scratch.iterdir(), *temporary.iterdir()]


def test_repetitions_can_share_one_environment(parts):
    """The second run has its own bytecode folder."""
    probe = asked(parts, "import helper\nassert helper.NUMBER == 1\n")
    first, second = (parts.prober.prepare(one) for one in (probe, next_attempt(probe)))
    with (
        watched_environment(parts.builder, first.environment) as place,
        watched_environment(parts.builder, second.environment) as beside,
    ):
        assert place.pycache != beside.pycache
        assert place.environment.folder == beside.environment.folder


def test_an_environment_that_is_taken_as_it_is_is_neither_compared_nor_rebuilt(tmp_path, house, uv_cache, interpreter):
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter)
    lock = parts.resolver.resolve(Combination(interpreter.version, ("helper==1.0",))).lock
    built = parts.builder.build(lock)
    module = site_packages(built.folder) / "helper.py"
    module.unlink()
    module.write_text("NUMBER = 7\n", encoding="utf-8")
    guiding = parts.builder.build(lock, as_is=True)
    with watched_environment(parts.builder, guiding, as_is=True) as place:
        assert place.environment == built
        assert place.altered() == ()
    assert "7" in module.read_text(encoding="utf-8")
    with watched_environment(parts.builder, parts.builder.build(lock)):
        assert "7" not in module.read_text(encoding="utf-8")
