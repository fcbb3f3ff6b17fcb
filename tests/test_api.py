"""The commands as functions: they return what the commands print, and importing the package is cheap."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import fields
from support import SIGNED

import harness
from harness.errors import UnknownRelease, UserMistake
from harness.model import Outcome, Verdict
from harness.question.request import PolicyOptions
from harness.settings import Settings

_HEAVY = ("click", "rich", "attrs", "requests", "pandas", "harness.api")


@pytest.fixture
def here(harness, write_repro, monkeypatch):
    """A working directory with a repro of `brittle`, and the settings of the command line."""
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(harness.folder)
    write_repro("brittle", tool=SIGNED)
    return harness


def test_the_bisect_function_matches_the_command(here):
    one_lane = Settings(lanes=1)  # which releases two lanes try depends on which of them ends first
    answer = harness.bisect("brittle", good="1.4", bad="1.7", depth="release", confirm=1, settings=one_lane)
    assert (answer.last_good, answer.first_bad) == ("1.5", "1.6")
    words = ("--good", "1.4", "--bad", "1.7", "--depth", "release", "--confirm", "1", "--lanes", "1", "--json")
    told = here("bisect", "brittle", *words).json
    ours = json.loads(json.dumps(answer.as_json()))
    for parts in (told, ours):  # a second asking is answered by the store
        for name in ("wall_s", "probes", "steps", "notes"):
            del parts[name]
    assert ours == told
    assert list((here.folder / "results" / "reports").glob("*.html"))


def test_a_probe_is_one_run_with_its_verdict(here):
    bad = harness.probe("brittle_step", "brittle==1.6")
    assert (bad.observation.outcome, bad.judgement.verdict) == (Outcome.RAISED, Verdict.BAD)
    assert harness.probe("brittle_step", "brittle==1.5").judgement.verdict is Verdict.GOOD
    fresh = harness.probe("brittle_step", "brittle==1.5", fresh=True)
    assert fresh.observation.attempt == 1
    assert list(harness.results()["outcome"]) == ["raised", "completed", "completed"]


def test_a_notebook_shows_escaped_answers(here):
    one_lane = Settings(lanes=1)  # which releases two lanes try depends on which of them ends first
    answer = harness.bisect("brittle", good="1.4", bad="1.7", depth="release", confirm=1, settings=one_lane)
    assert "<table" in answer._repr_html_()
    assert "<td>Culprit</td><td>brittle 1.6</td>" in answer._repr_html_()
    assert f"<summary>{len(answer.steps)} runs</summary>" in answer._repr_html_()
    assert str(answer) == answer.sentence
    probed = harness.probe("brittle_step", "brittle==1.6")
    assert "raised" in probed._repr_html_()
    assert str(probed) == f"bad: {probed.judgement.reason}"
    history = harness.history("brittle", since="1.5", until="1.6")
    assert [window.first_bad for window in history.windows] == ["1.6"]
    assert "1.6" in history._repr_html_()


def test_only_a_notebook_shows_progress_by_itself(here, monkeypatch, capsys):
    harness.probe("brittle_step", "brittle==1.5")
    ends = {"good": "1.5", "bad": "1.6", "depth": "release", "confirm": 1}
    harness.bisect("brittle", **ends)
    assert capsys.readouterr().out == ""
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    harness.bisect("brittle", **{**ends, "good": "1.4"})
    assert "looking for the release that broke" in capsys.readouterr().out


def test_settings_match_the_command_line_options(here):
    settings = harness.Settings(results=here.folder / "elsewhere", hold=("helper==1.0",))
    harness.probe("brittle_step", "brittle==1.5", settings=settings)
    assert len(harness.results(here.folder / "elsewhere")) == 1
    assert harness.results().empty


def test_the_keyword_arguments_are_typed_as_the_policy_is():
    typed = {name: kind.__forward_arg__ for name, kind in PolicyOptions.__annotations__.items()}
    assert typed == {part.name: part.type for part in fields(harness.Policy)}


def test_mistakes_are_errors_with_data(here):
    with pytest.raises(UnknownRelease):
        harness.bisect("brittle", good="1.77")


def test_importing_the_package_imports_nothing_else():
    code = f"import sys, harness; print([name for name in {_HEAVY} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_function_is_not_hidden_by_its_subpackage():
    code = "import harness, harness.api; print([callable(getattr(harness, name)) for name in harness._PUBLIC])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" not in told.stdout
    assert not [name for name in harness._PUBLIC if (Path(harness.__file__).parent / name).is_dir()]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'bisekt'"):
        _ = harness.bisekt
    assert {"ask", "bisect", "history", "probe", "results", "Settings"} <= set(dir(harness))


def test_the_package_says_that_it_has_types():
    """Type checkers read its annotations only if it has this file (PEP 561)."""
    assert (Path(harness.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Settings(results=3), "results"),
        (lambda: Settings(with_="numpy"), "with_"),
        (lambda: Settings(with_=("numpy", 3)), "with_"),
        (lambda: Settings(lanes="2"), "lanes"),
        (lambda: Settings(network="yes"), "network"),
        (lambda: harness.Policy(flaky="no"), "flaky"),
        (lambda: harness.Policy(confirm="3"), "confirm"),
        (lambda: harness.Request(run=["pytest"]), "run"),
        (lambda: harness.bisect(3), "subject"),
        (lambda: harness.bisect("x", good=4.5), "good"),
        (lambda: harness.bisect("x", confidence="high"), "confidence"),
        (lambda: harness.history("x", max_gap="2"), "max_gap"),
        (lambda: harness.probe("x", 3), "with_"),
    ],
)
def test_a_wrong_type_is_named_in_one_sentence(call, name):
    with pytest.raises(UserMistake, match=rf"^\w+\({name}=\.\.\.\) takes [\w ]+, not "):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Settings(lanes=0), "Settings(lanes=...) is between 1 and 64, not 0"),
        (lambda: Settings(timeout=float("inf")), "Settings(timeout=...) is between 1 and 604800, not inf"),
        (lambda: Settings(device="gpu"), "Settings(device=...) takes 'auto', 'cpu', 'cuda' or 'emulated', not 'gpu'"),
        (lambda: harness.Policy(confirm=99), "Policy(confirm=...) is between 0 and 20, not 99"),
        (lambda: harness.Request(depth="lines"), "depth takes a level, not 'lines'"),
        (lambda: harness.bisect("x", lanes=2), "bisect() takes no argument 'lanes'"),
        (lambda: harness.history("x", gap=2), "history() takes no argument 'gap'"),
        (lambda: Settings(lane=2), "Settings() takes no argument 'lane'"),
        (lambda: harness.Policy(flakey=True), "Policy() takes no argument 'flakey'"),
        (lambda: harness.Request(subjet="x"), "Request() takes no argument 'subjet'"),
        (lambda: harness.ask("x"), "ask() takes a Request, not 'x'"),
        (lambda: harness.bisect("x", settings={}), "settings=... takes a Settings, not {}"),
        (lambda: harness.bisect("x", project=3), "bisect(project=...) takes a folder, not 3"),
        (lambda: harness.probe(3), "probe() takes a name or a path, not 3"),
        (lambda: harness.results("/nonexistent"), "there is no folder of results at /nonexistent"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(call, told):
    with pytest.raises(UserMistake) as raised:
        call()
    assert raised.value.message == told


def test_paths_may_be_texts_and_tuples_lists():
    settings = Settings(results="elsewhere", with_=["numpy<2"])
    assert (settings.results, settings.with_) == (Path("elsewhere"), ("numpy<2",))


def test_every_public_name_is_documented_with_its_arguments():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text()
    for name in harness._PUBLIC:
        public = getattr(harness, name)
        assert public.__doc__, name
        assert re.search(rf"(autofunction|autoclass):: harness\.{name}\b", page), (
            f"{name} is not in docs/reference/api.md"
        )
        parts = inspect.signature(public).parameters
        missing = [part for part in parts if part.strip("_") not in public.__doc__ and part not in _UNDERSTOOD]
        assert not missing, (name, missing)


_UNDERSTOOD = ("settings", "reporter", "request")
