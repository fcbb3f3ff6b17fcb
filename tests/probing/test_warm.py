"""Probes of mixtures forked from a process that has imported the shared modules."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import evolve
from support import Heard, make_parts, repro_text
from wheelhouse import Wheelhouse

from harness.environment import PipSettings
from harness.model import Combination, Judgement, Mixture, Outcome, Verdict
from harness.model.repro import parse_repro
from harness.probing import Probe, next_attempt
from harness.probing.lanes import Lanes
from harness.probing.preloading import names_of, preloadable
from harness.probing.probe import is_warm
from harness.probing.trust import _ENOUGH, ForksDisagree, Trust
from harness.probing.warm import Expected, WarmProber
from harness.probing.warm_processes import Unchanged, WarmEnvironments

BODY = "import json\nimport brittle\n\nbrittle.step()\nprint('number', brittle.NUMBER)\n"


@pytest.fixture
def bad(parts, interpreter):
    """The probe of a release that fails, with its lock."""
    repro = parse_repro(repro_text("brittle", body=BODY), name="step")
    asked = Probe(repro, Combination(interpreter.version, ("brittle==1.6",)))
    return evolve(asked, lock=parts.prober.resolve(asked).lock)


VERDICTS = {Outcome.COMPLETED: Verdict.GOOD, Outcome.RAISED: Verdict.BAD}


@contextlib.contextmanager
def warm(prober, base, files=("brittle.py",), first=(), verdict=Verdict.BAD, judge=None):
    """A prober that expects mixtures of an environment in which these files are exchanged."""
    lanes = Lanes(1)

    def judged(observation):
        return Judgement(VERDICTS.get(observation.outcome, Verdict.SKIP), "by its outcome")

    with (
        contextlib.closing(lanes),
        contextlib.closing(WarmProber(prober, Trust(prober.store, Heard()))) as forks,
    ):
        forks.expect(Expected(base, frozenset(files), frozenset(first), judge or judged, verdict), lanes)
        yield forks


def mixed(probe, source, label="changed"):
    return evolve(probe, mixture=Mixture(files={"brittle.py": source}, label=label))


GOOD = b"NUMBER = 7\n\ndef step():\n    return NUMBER\n"


def run(prober, probe):
    return prober.execute(prober.prepare(probe))


def test_each_fork_sees_the_files_of_its_candidate(parts, bad):
    with warm(parts.prober, bad) as forks:
        fixed = run(forks, mixed(bad, GOOD))
        same = run(forks, evolve(bad, mixture=Mixture(files={}, label="as it is")))
        gone = run(forks, mixed(bad, None, "without it"))
        again = run(forks, mixed(bad, GOOD.replace(b"7", b"8"), "another number"))
        assert (forks.forked, forks.checks) == (4, 1)
    assert fixed.outcome is Outcome.COMPLETED
    assert "number 7" in parts.store.log(fixed)
    assert same.outcome is Outcome.RAISED
    assert (gone.outcome, gone.exception.name) == (Outcome.RAISED, "ModuleNotFoundError")
    assert "number 8" in parts.store.log(again)
    assert fixed.machine["forked"] is True


def test_an_import_error_in_a_fork_is_repeated_in_a_fresh_process(parts, bad):
    with warm(parts.prober, bad) as forks:
        seen = run(forks, mixed(bad, b"import a_module_that_is_missing\n"))
    assert seen.exception.name == "ModuleNotFoundError"
    assert "forked" not in seen.machine


def test_after_enough_fresh_processes_that_agree_import_errors_of_forks_are_believed(parts, bad):
    with warm(parts.prober, bad) as forks:
        seen = [run(forks, mixed(bad, f"import missing_{number}\n".encode())) for number in range(_ENOUGH + 1)]
    assert [bool(one.machine.get("forked")) for one in seen] == [*[False] * _ENOUGH, True]
    assert "missing_8" in seen[-1].exception.message


ONLY_FORKED = b"if 'zygote' in open('/proc/self/cmdline').read():\n    import missing\n"


RAISES_FORKED = ONLY_FORKED.replace(b"import missing", b"raise ValueError") + GOOD


@pytest.mark.parametrize("first", [0, _ENOUGH - 1])
def test_import_errors_of_forks_are_not_believed_after_a_fresh_process_without_one(parts, bad, first):
    with warm(parts.prober, bad) as forks:
        for number in range(_ENOUGH + 1):
            run(forks, mixed(bad, ONLY_FORKED if number == first else f"import missing_{number}\n".encode()))
        seen = run(forks, mixed(bad, b"import missing_last\n"))
    assert not seen.machine.get("forked")


def test_a_proof_is_never_a_fork(parts, bad):
    with warm(parts.prober, bad) as forks:
        assert is_warm(run(forks, mixed(bad, GOOD)))
        assert not is_warm(run(forks, next_attempt(mixed(bad, GOOD))))
        assert not is_warm(run(forks, evolve(mixed(bad, GOOD), fresh=True)))
        assert not forks.trust.stopped


def test_everything_is_fresh_after_a_fork_and_a_fresh_process_disagreed(parts, bad):
    with warm(parts.prober, bad) as forks:
        assert is_warm(run(forks, mixed(bad, RAISES_FORKED)))
        assert not forks.trust.was_wrong
        for _ in range(2):
            with pytest.raises(ForksDisagree):
                run(forks, evolve(mixed(bad, RAISES_FORKED), fresh=True))
        assert len(forks.trust.reporter.notes) == 1


def test_nothing_is_forked_if_the_unchanged_environment_fails_only_in_fresh_processes(parts, bad):
    with warm(parts.prober, bad, verdict=Verdict.GOOD) as forks, pytest.raises(ForksDisagree):
        run(forks, mixed(bad, GOOD))


def test_a_forked_run_is_not_stored_as_a_fresh_one(parts, bad):
    with warm(parts.prober, bad) as forks:
        run(forks, mixed(bad, GOOD))
    prepared = parts.prober.prepare(mixed(bad, GOOD))
    assert not prepared.cached
    with warm(parts.prober, bad) as forks:
        assert forks.prepare(mixed(bad, GOOD)).cached


def test_other_files_or_environments_are_not_forked(parts, bad):
    with warm(parts.prober, bad) as forks:
        other = evolve(bad, mixture=Mixture(files={"other.py": b""}, label="another file"))
        assert not is_warm(run(forks, other))
        assert not is_warm(run(forks, bad))


def test_a_probe_with_less_likely_files_is_forked_from_another_process(parts, bad):
    original = Unchanged.opened(parts.prober, bad, ["brittle.py", "threads.py"], {"brittle.py"})
    with original as unchanged, unchanged.copy() as place:
        for number, source in enumerate((GOOD, None)):
            place.run(mixed(bad, source), bad.lock, f"first{number}")
            assert place.left_out == {"brittle.py"}
        both = {"brittle.py": GOOD.replace(b"7", b"9"), "threads.py": b""}
        seen = place.run(evolve(bad, mixture=Mixture(files=both, label="two files")), bad.lock, "second")
        assert place.left_out == {"brittle.py", "threads.py"}
    assert "number 9" in parts.store.log(seen)
    assert is_warm(seen)


def test_what_is_stored_is_not_forked_again(parts, bad):
    for forked in (2, 0):
        with warm(parts.prober, bad) as forks:
            assert is_warm(run(forks, mixed(bad, GOOD)))
            assert forks.forked == forked


def test_a_command_is_not_forked(parts, bad):
    command = evolve(bad, repro=evolve(bad.repro, argv=("true",)))
    assert parts.prober.imports(bad, bad.lock) is not None  # those of the command, too, which has the same key
    with warm(parts.prober, command) as forks:
        assert not is_warm(run(forks, evolve(mixed(command, GOOD))))
        assert "only pytest and modules" in forks.trust.stopped


def test_an_import_that_starts_a_thread_prevents_forking(parts, bad):
    source = repro_text("brittle", body="import threads_at_import\nimport brittle\nbrittle.step()\n")
    repro = parse_repro(source, name="threads")
    folder = parts.store.root / "threads"
    folder.mkdir(parents=True)
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    (folder / "threads_at_import.py").write_text(thread, encoding="utf-8")
    probe = evolve(bad, repro=evolve(repro, search_path=(str(folder),)))
    with warm(parts.prober, probe) as forks:
        assert not is_warm(run(forks, mixed(probe, GOOD)))
        assert "thread" in forks.trust.stopped


def test_no_process_is_left(parts, bad):
    with warm(parts.prober, bad) as forks:
        run(forks, mixed(bad, GOOD))
    assert list(parts.workspace.scratch.iterdir()) == []


def imports_first(parts, probe, source, call=""):
    """The probe with a script that imports a module with this source, which no candidate changes."""
    body = f"import held\nimport brittle\n{call}\nbrittle.step()\n"
    folder = parts.store.root / "imported-first"
    folder.mkdir(parents=True)
    (folder / "held.py").write_text(source, encoding="utf-8")
    repro = parse_repro(repro_text("brittle", body=body), name="step")
    return evolve(probe, repro=evolve(repro, search_path=(str(folder),)))


@pytest.fixture
def short_limit(monkeypatch):
    """As `warm`, after a fresh run, so that a fork may take a second; a guard that says nothing may take long."""
    monkeypatch.setattr("harness.probing.warm_processes._LEAST_LIMIT_S", 1.0)
    monkeypatch.setattr("harness.run.process._SILENT_S", 600.0)

    def known(prober, probe):
        run(prober, probe)
        return warm(prober, probe)

    return known


# The guard is forked first, then it forks the process of the script.
DIES = "import os\nforks = []\nos.register_at_fork(after_in_child=lambda: (forks.append(1), len(forks) == {} and {}))\n"
HANGS = """\
import os, threading
lock, pid = threading.Lock(), os.getpid()
lock.acquire()

def use():
    if os.getpid() != pid:
        lock.acquire()
"""


@pytest.mark.parametrize(("fork", "how"), [(1, "os._exit(1)"), (2, "os._exit(1)"), (2, "os.kill(os.getpid(), 9)")])
def test_a_fork_that_dies_is_repeated_in_a_fresh_process(parts, bad, fork, how):
    probe = imports_first(parts, bad, DIES.format(fork, how))
    with warm(parts.prober, probe) as forks:
        seen = run(forks, mixed(probe, GOOD))
    assert seen.outcome is Outcome.COMPLETED
    assert "forked" not in seen.machine


def test_a_fork_that_waits_for_a_lock_held_when_it_was_forked_is_repeated_in_a_fresh_process(parts, bad, short_limit):
    probe = imports_first(parts, bad, HANGS, "held.use()")
    with short_limit(parts.prober, probe) as forks:
        assert run(forks, mixed(probe, GOOD)).outcome is Outcome.COMPLETED
        assert "hung" in forks.trust.stopped
        assert not is_warm(run(forks, mixed(probe, GOOD + b"# again")))
    assert list(parts.workspace.scratch.iterdir()) == []


@pytest.mark.parametrize("fork", [1, 2])
def test_a_fork_that_hangs_before_it_starts_the_script_costs_no_more_than_its_time_limit(parts, bad, fork, short_limit):
    probe = imports_first(
        parts, bad, DIES.format(fork, "threading.Event().wait()").replace("os\n", "os, threading\n", 1)
    )
    with short_limit(parts.prober, probe) as forks:
        begun = time.monotonic()
        assert not is_warm(run(forks, mixed(probe, GOOD)))
        assert time.monotonic() - begun < 300
        assert "hung" in forks.trust.stopped
    assert list(parts.workspace.scratch.iterdir()) == []


def test_forks_that_hang_as_fresh_processes_do_are_not_repeated_again(parts, bad):
    probe = evolve(bad, repro=evolve(bad.repro, timeout=2.0))
    loop = b"def step():\n    while True:\n        pass\n"
    with warm(parts.prober, probe) as forks:
        first, second = (run(forks, mixed(probe, loop + rest)) for rest in (b"", b"# again\n"))
        assert (first.outcome, second.outcome) == (Outcome.TIMED_OUT, Outcome.TIMED_OUT)
        assert ("forked" in first.machine, "forked" in second.machine) == (False, True)
        assert run(forks, mixed(probe, GOOD)).outcome is Outcome.COMPLETED
        assert not forks.trust.stopped


def test_a_fork_gets_the_time_of_a_fresh_process_and_some_more(parts, bad):
    with Unchanged.opened(parts.prober, bad, ["brittle.py"], set()) as unchanged:
        assert unchanged.limit(bad.repro) == bad.repro.timeout
    run(parts.prober, bad)
    with Unchanged.opened(parts.prober, bad, ["brittle.py"], set()) as unchanged:
        assert 0 < unchanged.fresh_s < 10
        assert unchanged.limit(bad.repro) == max(10, 3 * unchanged.fresh_s)


def test_lanes_that_fork_at_the_same_time_have_copies_of_their_own(parts, bad):
    source = GOOD + b"import time\ntime.sleep(0.6)\n"

    def number_in(number):
        probe = mixed(bad, source.replace(b"7", str(number).encode()))
        return parts.store.log(copies.run(probe, bad.lock, f"of{number}"))

    with (
        Unchanged.opened(parts.prober, bad, ["brittle.py"], set()) as unchanged,
        WarmEnvironments.opened(unchanged, 2) as copies,
        ThreadPoolExecutor(2) as lanes,
    ):
        printed = list(lanes.map(number_in, range(10, 22)))
        opened = [place.name for place in parts.workspace.scratch.iterdir()]
    assert all(f"number {number}" in log for number, log in enumerate(printed, 10))
    assert len(opened) == 3  # that in which nothing runs, and one for each lane


FILES = {
    "torch": "torch/__init__.py",
    "pkg": "pkg/__init__.py",
    "pkg.core": "pkg/core.py",
    "pkg.model": "pkg/model.py",
    "pkg.zoo": "pkg/zoo/__init__.py",
    "pkg.zoo.lion": "pkg/zoo/lion.py",
    "user": "user.py",
}
IMPORTS = {"pkg": ["pkg.core"], "pkg.model": ["torch", "pkg.core"], "user": ["pkg.model"], "pkg.zoo.lion": ["torch"]}


def test_a_module_out_of_reach_of_candidates_is_preloaded():
    assert preloadable(FILES, IMPORTS, {"pkg/model.py"}) == ("torch", "pkg", "pkg.core", "pkg.zoo", "pkg.zoo.lion")


def test_direct_and_indirect_importers_of_a_candidate_are_not_preloaded():
    assert preloadable(FILES, IMPORTS, {"pkg/core.py"}) == ("torch",)


def test_modules_of_a_changing_package_are_not_preloaded():
    assert "pkg.zoo.lion" not in preloadable(FILES, IMPORTS, {"pkg/zoo/__init__.py"})


def test_what_has_looked_in_vain_for_a_file_that_may_appear_is_not_preloaded():
    imports = {**IMPORTS, "pkg.zoo.lion": ["torch", "pkg.zoo.fast"]}
    assert preloadable(FILES, imports, {"pkg/zoo/fast.py"}) == (
        "torch",
        "pkg",
        "pkg.core",
        "pkg.model",
        "pkg.zoo",
        "user",
    )


def test_without_candidates_everything_is_preloaded_in_order():
    assert preloadable(FILES, IMPORTS, set()) == tuple(FILES)


def test_circular_imports_are_handled():
    circle = {"a": ["b"], "b": ["a"]}
    assert preloadable({"a": "a.py", "b": "b.py", "c": "c.py"}, circle, {"a.py"}) == ("c",)


def test_what_looks_up_a_release_is_not_preloaded():
    imports = {"pkg": ["dist:user-lib"], "torch": ["group:torch.backends"], "user": ["entry:other-1.0.dist-info"]}
    names = names_of(["user-lib"], ["user_lib", "user_lib-1.0.dist-info"], ["console_scripts"])
    assert preloadable(FILES, imports, set(), names) == ("torch", "user")
    names = names_of(["other"], ["other", "other-1.0.dist-info"], ["torch.backends"])
    assert [name for name in FILES if name not in preloadable(FILES, imports, set(), names)] == ["torch", "user"]


def test_another_release_is_forked_from_a_process_that_has_imported_none(parts, bad, interpreter):
    good = Probe(bad.repro, Combination(interpreter.version, ("brittle==1.4",)))
    with contextlib.closing(WarmProber(parts.prober, Trust(parts.store, Heard()))) as forks:
        for end in (bad, Probe(bad.repro, Combination(interpreter.version, ("brittle==1.3",)))):
            assert not is_warm(run(forks, evolve(end, fresh=True)))
        forked = run(forks, good)
        assert is_warm(forked)
        assert forked.lock.version_of("brittle") == "1.4"
        fresh = run(forks, evolve(good, fresh=True))
        assert (fresh.outcome, is_warm(fresh)) == (forked.outcome, False)
        assert not forks.trust.stopped


def test_a_run_is_forked_from_the_end_that_it_differs_from_in_the_least(tmp_path, uv_cache, interpreter):
    """The large package differs at the other end, so no process for all environments could import it."""
    house = Wheelhouse(tmp_path / "house")
    for version in ("1.0", "2.0"):
        inside = {f"large/part{number}.py": f"VERSION = {version}\n" for number in range(400)}
        starts = "".join(f"from large import part{number}\n" for number in range(400))
        house.add("large", version, files={**inside, "large/__init__.py": f"{starts}VERSION = {version}\n"})
        house.add("start", version, files={f"start{version[0]}.pth": "", "start.py": ""})
    for version in range(1, 5):
        house.add("small", f"{version}.0", files={"small.py": f"VERSION = {version}\n"})
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), uv_cache, interpreter)
    repro = parse_repro(
        repro_text("small", body="import large, small\nprint(large.VERSION, small.VERSION)\n"), name="step"
    )

    def probe(small, large, start="2.0"):
        wanted = (f"small=={small}", f"large=={large}", f"start=={start}")
        return Probe(repro, Combination(interpreter.version, wanted))

    with contextlib.closing(WarmProber(parts.prober, Trust(parts.store, Heard()))) as forks:
        for end in (probe("1.0", "1.0", "1.0"), probe("4.0", "2.0")):
            assert not is_warm(run(forks, evolve(end, fresh=True)))
        seen = {
            (small, large, start): run(forks, probe(small, large, start))
            for small, large, start in [
                ("2.0", "2.0", "2.0"),
                ("3.0", "2.0", "2.0"),
                ("2.0", "1.0", "1.0"),
                ("2.0", "1.0", "2.0"),
            ]
        }
    assert {versions: is_warm(run) for versions, run in seen.items()} == {
        ("2.0", "2.0", "2.0"): True,
        ("3.0", "2.0", "2.0"): True,
        ("2.0", "1.0", "1.0"): False,  # the run is short, so there is only one process
        ("2.0", "1.0", "2.0"): False,  # that differs too much from both
    }
    for (small, large, _), observation in seen.items():
        assert f"{large} {small[0]}" in parts.store.log(observation)


def test_tests_are_forked_and_named_as_in_a_fresh_process(parts, bad, tmp_path, interpreter):
    pytest_repro = evolve(bad.repro, argv=("python", "-m", "unittest", "-v"), source="", project=str(tmp_path))
    body = "import unittest, brittle\n\nclass T(unittest.TestCase):\n    def test_step(self):\n        brittle.step()\n"
    (tmp_path / "test_step.py").write_text(body, encoding="utf-8")
    probe = evolve(bad, repro=evolve(pytest_repro, digest="tests"))
    with contextlib.closing(WarmProber(parts.prober, Trust(parts.store, Heard()))) as forks:
        fresh = run(forks, evolve(probe, fresh=True))
        run(forks, Probe(probe.repro, Combination(interpreter.version, ("brittle==1.3",)), fresh=True))
        forked = run(forks, Probe(probe.repro, Combination(interpreter.version, ("brittle==1.4",))))
        assert is_warm(forked)
        assert [test.id for test in forked.tests] == [test.id for test in fresh.tests]
