"""What is tried first: traceback, calls, names, size of the step; never what is found."""

from __future__ import annotations

from attrs import evolve

from harness.culprit.likelihood import (
    called_in_message,
    quoted_in_message,
    ranked_files,
    ranked_groups,
    ranked_packages,
)
from harness.culprit.sides import PackageFiles, Side, Sides
from harness.model import Change, Device, Lock, Observation, Outcome, RaisedException, Repro, StackFrame, Verdict
from harness.planning.plan import Plan
from harness.request.question import Question

LOCK = Lock("3.11", "linux", ())


def plan_of(source, *dependencies, subject="shop"):
    repro = Repro("r", "d", source=source, dependencies=dependencies)
    return Plan(
        question=Question(subject, repro),
        repro=repro,
        interpreter=None,
        device=Device.CPU,
        releases=(),
        good=None,
        bad=None,
        left_out=(),
        as_of="none",
        requirements=(),
        holds=(),
    )


def sides_of(*frames, loaded=None, message="x"):
    """`frames` are (file, function, package), the outermost first."""
    good = Observation("g", Outcome.COMPLETED, "r", "d", Device.CPU, loaded=loaded or {})
    stack = tuple(StackFrame(file, 1, function, package) for file, function, package in frames)
    raised = RaisedException("builtins.ValueError", message, (), stack)
    bad = evolve(good, key="b", outcome=Outcome.RAISED, exception=raised)
    return Sides(Side(LOCK, Verdict.GOOD, good), Side(LOCK, Verdict.BAD, bad))


def changes_of(**steps):
    return {name: Change(name, *step) for name, step in steps.items()}


def test_packages_with_the_largest_step_come_first():
    changes = changes_of(a=("1.0.0", "1.0.1"), b=("1.0", "2.0"), c=("1.0", "1.1"))
    assert ranked_packages(changes, sides_of(), plan_of("", "a", "c")) == ("b", "c", "a")


def test_among_equal_steps_the_innermost_of_the_traceback_then_what_is_asked_for_then_the_subject_then_what_was_used():
    names = ("unused", "used", "shop", "asked", "outer", "inner")
    changes = changes_of(**dict.fromkeys(names, ("1.0", "1.1")))
    sides = sides_of(("o.py", "f", "outer"), ("i.py", "f", "inner"), loaded={"used": ("used.py",)})
    assert ranked_packages(changes, sides, plan_of("", "asked[extra]~=1.0; python_version>'3'")) == (
        "inner",
        "outer",
        "asked",
        "shop",
        "used",
        "unused",
    )


def files_of(tmp_path, **texts):
    paths = {f"shop/{name}.py": text for name, text in texts.items()}
    (tmp_path / "shop").mkdir()
    for path, text in paths.items():
        (tmp_path / path).write_text(text)
    return PackageFiles(tmp_path, dict.fromkeys(paths, "digest"))


def test_files_of_the_traceback_come_first_then_those_that_define_what_the_repro_names_then_the_last_called(tmp_path):
    after = files_of(tmp_path, framed="", named="def sell(): pass", late="", early="", unused="")
    units = {path: (path,) for path in after.digests}
    used = tuple(path for path in units if "unused" not in path)
    sides = sides_of(("shop/framed.py", "f", "shop"), loaded={"shop": used})
    called = {"shop/early.py": {"f": 3}, "shop/late.py": {"f": 9, "g": 1}}
    ranked, rest = ranked_files(units, sides, plan_of("import shop\nshop.sell()"), after, called)
    assert [path.removeprefix("shop/") for path in ranked] == ["framed.py", "named.py", "late.py", "early.py"]
    assert rest == ("shop/unused.py",)


def test_metadata_and_a_file_under_its_older_name_count_as_used(tmp_path):
    units = {"metadata of shop": ("shop-1.dist-info/METADATA",), "new.py": ("old.py", "new.py"), "z.py": ("z.py",)}
    sides = sides_of(loaded={"shop": ("old.py",)})
    ranked, rest = ranked_files(units, sides, plan_of(""), PackageFiles(tmp_path, {}), {})
    assert set(ranked) == {"metadata of shop", "new.py"}
    assert rest == ("z.py",)


def test_definitions_of_the_traceback_come_first_then_the_last_called_and_what_means_nothing_last():
    groups = ["layout", "a.py::Other.idle", "a.py::Shop.early", "a.py::Shop.late", "a.py::Shop.framed", "a.py::sell"]
    called = {"a.py": {"Shop.early": 1, "Shop.late": 5}}
    ranked = ranked_groups(groups, sides_of(("a.py", "framed", "shop")), plan_of("sell()"), called, last="layout")
    assert ranked == (
        "a.py::Shop.framed",
        "a.py::Shop.late",
        "a.py::Shop.early",
        "a.py::sell",
        "a.py::Other.idle",
        "layout",
    )


def test_for_a_fix_the_traceback_of_the_older_side_counts():
    sides = sides_of(("a.py", "framed", "shop"))
    fixed = Sides(sides.after, sides.before)
    assert ranked_groups(["a.py::f", "a.py::framed"], fixed, plan_of(""), {}, last="")[0] == "a.py::framed"


def test_names_of_the_message_lead_to_files_and_definitions(tmp_path):
    sides = sides_of(message="Trainer.__init__() got an unexpected keyword argument 'tokenizer'")
    assert called_in_message(sides) == {"Trainer.__init__"}
    assert quoted_in_message(sides) == {"tokenizer"}
    (tmp_path / "model.py").write_text("class Model: pass\n", encoding="utf-8")
    (tmp_path / "zz_trainer.py").write_text("class Trainer: pass\n", encoding="utf-8")
    units = {name: (name,) for name in ("model.py", "zz_trainer.py")}
    sides = evolve(
        sides, after=evolve(sides.after, observation=evolve(sides.after.observation, loaded={"s": tuple(units)}))
    )
    plan, files = plan_of("Model()\nTrainer()"), PackageFiles(tmp_path, dict.fromkeys(units, ""))
    assert ranked_files(units, sides, plan, files, {})[0] == ("zz_trainer.py", "model.py")
    groups = ["t.py::Model.run", "t.py::Trainer.__init__"]
    assert ranked_groups(groups, sides, plan, {"t.py": {"Model.run": 9}}, last="")[0] == "t.py::Trainer.__init__"


def test_advice_in_a_message_names_nothing():
    sides = sides_of(
        message="Trying again. Call .backward() or autograd.grad() with retain_graph=True, or step() missing"
    )
    assert called_in_message(sides) == frozenset()


def test_a_message_without_names_tells_nothing():
    sides = sides_of(message="it's (not) a name: f(x), '1', \"a b\"")
    assert called_in_message(sides) == quoted_in_message(sides) == frozenset()
