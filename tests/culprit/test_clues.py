"""How evidence is weighed, and that no evidence has no weight."""

from __future__ import annotations

from attrs import evolve
from edited import edits_of, unit
from test_likelihood import sides_of

from harness.culprit.clues import Clues, Pointers, first_parted
from harness.model import RaisedException, Returned, StackFrame, Trace

STEP = "def {0}(x):\n    return x + 1\n\n\n"
BEFORE = {"shop/a.py": STEP.format("ran") + STEP.format("idle") + "def told(x):\n    # one\n    return x\n"}
AFTER = {"shop/a.py": BEFORE["shop/a.py"].replace("+ 1", "+ 2").replace("# one", "# two")}


def test_executed_code_weighs_more_and_a_comment_weighs_least(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    trace = Trace(called={"shop/a.py": {"ran": 3, "told": 4}}, lines={"shop/a.py": (1, 2, 9, 11)})
    weights = Clues(sides_of(), "", trace, trace).weights(edits)
    ran, idle = (next(one for one in edits.all if edits.function(one) == name) for name in ("ran", "idle"))
    assert weights[ran] > weights[idle] > weights[unit(edits, "# two")] > 0


def test_a_function_that_neither_side_called_is_idle(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    idle = next(one for one in edits.all if edits.function(one) == "idle")
    trace = Trace(called={"shop/a.py": {"ran": 3, "told": 4}}, lines={"shop/a.py": (1, 2)})
    other = Trace(called={"shop/a.py": {"ran": 3, "idle": 4, "told": 5}}, lines={"shop/a.py": (1, 2)})
    assert Clues(sides_of(), "", trace, trace).idle(edits) == {idle}
    assert Clues(sides_of(), "", trace, other).idle(edits) == frozenset()
    assert Clues(sides_of(), "", trace).idle(edits) == frozenset()
    assert Clues(sides_of(), "", trace, Trace()).idle(edits) == frozenset()


def test_without_a_trace_the_traceback_decides(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    weights = Clues(sides_of(("shop/a.py", "idle", "shop")), "").weights(edits)
    assert edits.function(max(weights, key=weights.get)) == "idle"


def test_a_function_with_equal_inputs_and_a_different_result_weighs_most(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    lines = {"shop/a.py": tuple(range(1, 12))}
    traces = [Trace(lines=lines, returned=(Returned("shop/a.py", "idle", "x=1", result),)) for result in ("2", "3")]
    weights = Clues(sides_of(), "", *traces).weights(edits)
    assert edits.function(max(weights, key=weights.get)) == "idle"


def test_a_place_that_the_api_points_to_weighs_more(tmp_path):
    edits = edits_of(tmp_path, BEFORE, AFTER)
    idle = next(one for one in edits.all if edits.function(one) == "idle")
    a, _, _, _ = edits.block(idle)
    pointers = Pointers(older=frozenset({("shop/a.py", a + 1)}))
    plain, pointed = (Clues(sides_of(), "", pointers=one).weights(edits) for one in (Pointers(), pointers))
    assert pointed[idle] > 10 * plain[idle]
    assert {one: weight for one, weight in pointed.items() if one != idle} == {
        one: weight for one, weight in plain.items() if one != idle
    }


def test_a_word_of_the_failure_weighs_more_the_rarer_it_is(tmp_path):
    """The words are those of the message and of the user's own line; prose and a package's own lines say nothing."""
    step = "def {0}(x):\n    the = {1}\n    return x\n\n\n"
    before = {"shop/a.py": "".join(step.format(name, "0, " + name) for name in ("price", "tax", "rate", "other"))}
    after = {"shop/a.py": before["shop/a.py"].replace("0, tax", "1, tax").replace("0, ", "2, price, ")}
    edits = edits_of(tmp_path, before, after)
    frames = (StackFrame("a.py", 2, "f", "shop", "rate"), StackFrame("repro.py", 3, "<module>", text="assert tax == 1"))
    failure = RaisedException("builtins.AssertionError", "the price is 2", (), frames)
    silent, spoken = sides_of(), sides_of()
    spoken = evolve(spoken, after=evolve(spoken.after, observation=evolve(spoken.after.observation, exception=failure)))
    plain, told = (Clues(one, "").weights(edits) for one in (silent, spoken))
    more = {edits.function(one): told[one] / plain[one] for one in edits.all if edits.is_region(one)}
    assert more["tax"] > more["rate"] > 1
    assert more["rate"] == more["other"] == more["price"]
    raised_inside = evolve(failure, frames=frames[::-1])
    silent, spoken = (
        evolve(sides_of(), after=evolve(spoken.after, observation=evolve(spoken.after.observation, exception=one)))
        for one in (evolve(raised_inside, message="x"), raised_inside)
    )
    assert Clues(silent, "").weights(edits) == Clues(spoken, "").weights(edits)


def test_a_setting_that_an_unchanged_function_reads_weighs_more(tmp_path):
    """The function returns something else for the same arguments, so what it reads has changed somewhere."""
    reads = "def is_new():\n    return OPTIONS['as_text']\n"
    before = {"shop/a.py": reads, "shop/b.py": "set_option(\n    'as_text',\n    False,\n)\nLIMIT = 1\n"}
    after = {
        "shop/a.py": f"# read\n{reads}",
        "shop/b.py": before["shop/b.py"].replace("False", "True").replace("1", "2"),
    }
    edits = edits_of(tmp_path, before, after)
    lines = {"shop/a.py": (1, 2, 3), "shop/b.py": (1, 2, 3, 4, 5)}
    called = {"shop/a.py": {"is_new": 3}}
    traces = [
        Trace(called=called, lines=lines, returned=(Returned("shop/a.py", "is_new", "", result),))
        for result in ("False", "True")
    ]
    weights, plain = (Clues(sides_of(), "", *pair).weights(edits) for pair in (traces, traces[:1] * 2))
    setting, limit = unit(edits, "True"), unit(edits, "LIMIT")
    assert weights[setting] > 100 * plain[setting]
    assert weights[limit] == plain[limit] == plain[setting]
    calls = {path: text.replace("['as_text']", ".as_text()") for path, text in before.items()}
    edits = edits_of(tmp_path / "calls", calls, {**calls, "shop/b.py": after["shop/b.py"]})
    assert Clues(sides_of(), "", *traces).weights(edits)[unit(edits, "True")] == plain[setting]


def test_a_module_that_the_api_says_was_removed_weighs_most(tmp_path):
    gone = {"shop/old.py": "def price():\n    return 1\n", "shop/older.py": "def tax():\n    return 2\n"}
    edits = edits_of(tmp_path, BEFORE | gone, AFTER)
    pointers = Pointers(older=frozenset({("shop/old.py", 1)}))
    weights = Clues(sides_of(("shop/a.py", "idle", "shop")), "", pointers=pointers).weights(edits)
    assert max(weights, key=weights.get) == "shop/old.py"
    assert weights["shop/old.py"] > 100 * weights["shop/older.py"]


def test_the_first_function_to_return_a_different_value_is_the_innermost():
    def trace(inner, outer, given):
        return Trace(
            returned=(
                Returned("a.py", "same", "x=1", "1"),
                Returned("a.py", "other_given", given, inner),
                Returned("a.py", "inner", "x=1", inner),
                Returned("a.py", "outer", "x=1", outer),
            )
        )

    found = first_parted(trace("1", "2", "x=1"), trace("5", "6", "x=9"), {})
    assert found == (("a.py", "inner"), ("a.py", "outer"))


def test_a_new_parameter_does_not_make_arguments_different():
    before = Trace(returned=(Returned("a.py", "f", "x=1", "1"),))
    after = Trace(returned=(Returned("b.py", "f", "x=1\u241fmode=None", "2"),))
    assert first_parted(before, after, {"b.py": "a.py"}) == (("b.py", "f"),)
    assert first_parted(None, after, {}) == ()


def test_different_objects_do_not_hide_equal_data():
    def trace(folder, loss, made):
        given = f"self=Trainerdict1{{'folder'6:'{folder}'9}}\u241finputs=dict1{{'x'1:(2,)float32,1}}"
        return Trace(
            returned=(
                Returned("a.py", "Trainer.step", given, f"()float32,{loss}"),
                Returned("a.py", "Trainer.make", given, f"Maderdict1{{'n'1:{made}}}"),
                Returned("a.py", "Trainer.name", f"self=Trainerdict1{{'folder'6:'{folder}'9}}", f"'{folder}'9"),
            )
        )

    assert first_parted(trace("/tmp/aaaa", 1, 1), trace("/tmp/bbbb", 4, 2), {}) == (("a.py", "Trainer.step"),)


def test_certain_divergence_comes_before_possible_divergence():
    def trace(size, result):
        return Trace(
            returned=(
                Returned("a.py", "perhaps", f"self=Shopdict1{{{size}}}\u241fx=1", result),
                Returned("a.py", "surely", "x=1", result),
            )
        )

    assert first_parted(trace(1, "1"), trace(2, "5"), {}) == (("a.py", "surely"), ("a.py", "perhaps"))
