"""The metadata of a repro is read, and mistakes in it are reported."""

from __future__ import annotations

import pytest
from support import repro_text

from harness.errors import BadRepro
from harness.model import Bounds, Signature
from harness.model.repro import command_repro, parse_repro

FULL = """
device = "any"
timeout = 30
memory = "1.5 GiB"
params = {layers = 2}
[tool.harness.subjects.Brittle_Thing]
good = "1.0"
bad = "1.9"
as-of = "none"
hold = ["helper==1.0"]
[tool.harness.signature]
exception = "RuntimeError"
exit-code = 3
[tool.harness.cases.small]
params = {layers = 1}
signature = {hang = true}
[tool.harness.cases.wide.subjects.other]
good = "2.0"
"""


def read(tool="", **more):
    return parse_repro(repro_text("brittle", tool=tool, **more), name="x")


def test_all_metadata_is_read():
    repro = read(FULL)
    assert (repro.device, repro.timeout, repro.memory) == ("any", 30.0, 1.5 * 2**30)
    assert repro.dependencies == ("brittle",)
    assert repro.subjects == {"brittle-thing": Bounds("1.0", "1.9", "none", ("helper==1.0",))}
    assert repro.signature == Signature(exception="RuntimeError", exit_code=3)
    assert repro.summary == "Takes the step of brittle."


def test_minimal_metadata_is_enough():
    repro = read()
    assert (repro.device, repro.memory, repro.signature, repro.subjects) == ("cpu", None, None, {})
    assert repro.timeout > 0


def test_a_case_has_its_own_parameters_bounds_and_signature():
    repro = read(FULL)
    small = repro.with_params({"case": "small", "steps": 5})
    assert small.params == {"layers": 1, "case": "small", "steps": 5}
    assert small.signature == Signature(hang=True)
    assert small.subjects == repro.subjects
    assert list(repro.with_params({"case": "wide"}).subjects) == ["other"]
    assert repro.with_params({"layers": 7}).params == {"layers": 7}
    with pytest.raises(BadRepro, match=r"has no case 'big'; it has: small, wide"):
        repro.with_params({"case": "big"})


def test_the_digest_follows_the_text():
    assert read().digest == read().digest != read("timeout = 1").digest


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("timeout = ", "not valid TOML"),
        ("timeuot = 1", "unknown keys: timeuot"),
        ("device = 'gpu'", "device must be one of cpu, cuda, any, not 'gpu'"),
        ("timeout = 0", "timeout must be a number of seconds above 0"),
        ("gpus = 0", "gpus must be a number from 1 to 64, not 0"),
        ("launch = 'mpirun'", "launch must be one of torchrun, accelerate, not 'mpirun'"),
        ("launch = 'torchrun'", 'launch = "torchrun" starts a process for each GPU: add gpus = 2 or more'),
        ("timeout = true", "timeout must be a number"),
        ("memory = 8", "memory must be a size such as '8 GiB', not 8"),
        ("subjects = 3", "subjects must be a table"),
        (
            "[tool.harness.subjects.a]\nfrom = '1'",
            "subjects.a has unknown keys: from; known keys: as-of, bad, default, good, hold",
        ),
        ("[tool.harness.subjects.a]\ngood = 4.5", "subjects.a.good must be a string in quotes, not 4.5"),
        ("[tool.harness.subjects.a]\nhold = 'b'", "must be a list of requirements"),
        ("[tool.harness.subjects.a]\nhold = ['b=1']", "'b=1' is not a requirement"),
        ("[tool.harness.signature]", "the signature has nothing"),
        ("[tool.harness.signature]\nexeption = 'E'", "signature has unknown keys: exeption; known keys: above"),
        ("[tool.harness.signature]\ncaptured = true", "signature has unknown keys: captured; known keys: above"),
        ("[tool.harness.signature]\nmetric = 'loss'", "needs above or below"),
        ("[tool.harness.signature]\nabove = 3", "needs above or below"),
        ("[tool.harness.signature]\noutput = '('", "not a regular expression"),
        ("[tool.harness.signature]\nexception = 3", "signature.exception must be a string in quotes, not 3"),
        ("[tool.harness.signature]\nmetric = 'loss'\nabove = '3'", "signature.above must be a number, not '3'"),
        ("[tool.harness.subjects.a]\ngood = 'new'", "not a version"),
        ("[tool.harness.signature]\nexit-code = 139", "stands for a signal: write crash = true"),
        ("inputs = {folder = 'data'}", "inputs must be a folder beside the repro, such as 'data'"),
        ("[tool.harness.made]\nwith = []", "needs with ="),
        ("[tool.harness.made]\nwith = ['box =']", "is not a requirement"),
        ("[tool.harness.made]\nwith = ['box']\nstep = 1", "unknown keys: step"),
    ],
)
def test_a_mistake_in_the_metadata_is_reported(tool, words):
    with pytest.raises(BadRepro) as caught:
        read(tool)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_metadata_is_required_exactly_once():
    with pytest.raises(BadRepro, match="has no inline script metadata"):
        parse_repro("import x\n", name="x")
    block = "# /// script\n# dependencies = []\n# ///\n"
    with pytest.raises(BadRepro, match="has 2 '# /// script' blocks"):
        parse_repro(f"{block}\n{block}", name="x")
    with pytest.raises(BadRepro, match="'a=1' is not a requirement"):
        read(dependencies='["a=1"]')


def test_a_command_is_split_like_a_shell_and_identified_by_its_files():
    repro = command_repro("pytest -k 'a or b'", content_digest="1")
    assert repro.argv == ("pytest", "-k", "a or b")
    assert repro.digest != command_repro("pytest -k 'a or b'", content_digest="2").digest
    with pytest.raises(BadRepro, match="needs a command"):
        command_repro("  ")
    with pytest.raises(BadRepro, match="can't be parsed"):
        command_repro("'")


def script(metadata):
    block = "".join(f"# {line}".rstrip() + "\n" for line in metadata.splitlines())
    return f"# /// script\n{block}# ///\n"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ("tool = 5", "harness must be a table|tool must be a table"),
        ("[tool]\nharness = 5", "harness must be a table"),
        ("[tool.harness]\ncases = 5", "cases must be a table"),
        ("[tool.harness]\ncases = {a = 5}", "cases.a must be a table"),
        ("[tool.harness]\nparams = 5", "params must be a table"),
        ("[tool.harness.cases.a]\nparams = 5", "params must be a table"),
        ("[tool.harness.cases.a]\nparam = {layers = 1}", "cases.a has unknown keys: param"),
        ("[tool.harness.params]\nday = 2024-01-01", "put dates"),
        ("[tool.harness]\ntimeout = inf", "seconds"),
        ("[tool.harness]\ntimeout = nan", "seconds"),
        ("[tool.harness]\ntimeout = 1e300", "seconds"),
        (f"[tool.harness]\ntimeout = 1{'0' * 400}", "seconds"),
        ("[tool.harness]\nmemory = '0 GiB'", "size"),
        (f"[tool.harness]\nmemory = '{'9' * 400} GiB'", "size"),
        ("[tool.harness.signature]\nmetric = 'loss'\nabove = nan", "above"),
        ("requires-python = 3.12", "requires-python"),
        ("requires-python = 'newest'", "requires-python"),
        ("dependencies = {a = 1}", "dependencies"),
        ("a = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_a_wrong_type_is_reported_in_one_sentence(metadata, told):
    with pytest.raises(BadRepro, match=told):
        parse_repro(script(metadata), name="x")


def test_a_byte_order_mark_is_ignored():
    source = script("dependencies = ['brittle']")
    marked = parse_repro("\ufeff" + source, name="x")
    assert marked == parse_repro(source, name="x")
    assert marked.dependencies == ("brittle",)
