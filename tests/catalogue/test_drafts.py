"""Issues as people write them, each with the versions, subjects, signature and code that a draft must have."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from harness.catalogue.blocks import parsed, read_report
from harness.catalogue.draft import MARK, draft
from harness.catalogue.tracebacks import tracebacks_of
from harness.model.repro import Repro, parse_repro

ISSUES = Path(__file__).parent / "issues"


@frozen
class Expected:
    """What a draft must have: `versions`, words of the signature, the ends of the code, and what its gaps are."""

    versions: dict[str, str | None]
    subjects: tuple[str, ...]
    python: str | None
    exception: str | None = None
    message: str = ""
    reported: str = ""
    code: tuple[str, str] | None = None
    gaps: tuple[str, ...] = ()


EXPECTED = {
    "transformers_env": Expected(
        {"transformers": "4.53.0", "torch": "2.7.1", "accelerate": "1.8.1", "huggingface-hub": "0.33.1"},
        ("transformers",), "3.11",
        "AttributeError", "object has no attribute 'reorder", "transformers/cache_utils.py, line 801, in reorder_cache",
        ("from transformers import AutoModelForCausalLM", 'cache_implementation="static")'),
        ("what from_pretrained(...) loads",),
    ),
    "accelerate_env": Expected(
        {"accelerate": "1.7.0", "torch": "2.6.0", "numpy": "1.26.4"}, ("accelerate",), "3.10",
        "TypeError", "load() got an unexpected keyword argument", "accelerate/checkpointing.py, line 241",
        ("import torch", 'acc.load_state("/tmp/state")'),
    ),
    "collect_env": Expected(
        {"torch": "2.8.0", "numpy": "2.2.6"}, ("torch",), "3.12",
        "AssertionError", "found nan in the output", "", ("import torch", '"found nan in the output"'),
    ),
    "pip_freeze": Expected(
        {"peft": "0.17.1", "torch": "2.7.0", "transformers": "4.56.1", "accelerate": "1.10.1"},
        ("peft", "transformers"), None,
        "AssertionError", "the head is gone", "", ("import torch", '"the head is gone"'),
        ("what from_pretrained(...) loads",),
    ),
    "table": Expected(
        {"trl": "0.19.1", "transformers": "4.53.2", "torch": "2.7.1", "datasets": "3.6.0"},
        ("datasets", "trl"), "3.11",
        "ArrowInvalid", "named position_ids expected length", "datasets/arrow_dataset.py, line 3079, in map",
        ("from datasets import load_dataset", "trainer.train()"),
        ("what load_dataset(...) loads",),
    ),
    "unsloth_template": Expected(
        {"unsloth": "2025.6.6", "unsloth-zoo": "2025.6.6", "trl": "0.19.0", "transformers": "4.53.0", "torch": "2.7.0"},
        ("unsloth",), "3.11",
        "ValueError", "not enough values to unpack", "unsloth/models/llama.py, line 505",
        ("from unsloth import FastLanguageModel", '.to("cuda"))'),
        ("what from_pretrained(...) loads",),
    ),
    "datasets_template": Expected(
        {"datasets": "4.0.0", "pyarrow": "21.0.0", "pandas": "2.3.1"}, ("datasets",), "3.12",
        "CastError", "Couldn't cast", "datasets/table.py, line 2128, in cast_table_to_schema",
        ("from datasets import Dataset", "length=2)}))"),
    ),
    "diffusers_template": Expected(
        {"diffusers": "0.32.2", "torch": "2.5.1", "transformers": "4.48.2", "peft": "0.14.0"},
        ("diffusers",), "3.10",
        "ValueError", "eta must be between", "diffusers/schedulers/scheduling_ddim.py, line 431, in step",
        ("import torch", "generator=None)"),
    ),
    "notebook": Expected(
        {"trl": "0.12.0", "transformers": "4.46.0"}, ("trl", "transformers"), "3.10",
        "ImportError", "cannot import name 'top_k_top_p_filtering'", "trl/__init__.py, line 22",
        ("# %%time", "create_reference_model(model)"),
        ("what from_pretrained(...) loads",),
    ),
    "chained": Expected(
        {"datasets": "3.2.0", "pyarrow": "18.1.0"}, ("datasets",), "3.9",
        "ArrowInvalid", "changed from string to array", "datasets/packaged_modules/json/json.py, line 150",
        ("import datasets", 'data_files="rows.jsonl")'),
        ("what load_dataset(...) loads",),
    ),
    "ansi": Expected(
        {"torch": "2.7.1", "bitsandbytes": "0.46.0"}, ("bitsandbytes",), "3.11",
        "RuntimeError", "Expected all tensors to be on the same device", "bitsandbytes/functional.py, line 1034",
        ("import torch, bitsandbytes as bnb", ".cuda())"),
    ),
    "rich": Expected(
        {"peft": "0.15.1", "transformers": "4.51.3"}, ("peft",), "3.11",
        "ValueError", "not found in the base model", "peft/tuners/lora/model.py, line 142, in __init__",
        None, ("the code",),
    ),
    "prose_only": Expected(
        {"peft": None, "transformers": None}, (), None,
        "RuntimeError", "expected scalar type Half but found Float", "", None, ("the code", "the subject"),
    ),
    "several_blocks": Expected(
        {"transformers": "4.48.1", "torch": "2.5.1"}, ("transformers",), None,
        "AssertionError", "EarlyStoppingCallback requires metric_for_best_model", "",
        ("from transformers import AutoModel", "callbacks=[EarlyStoppingCallback()]).train()"),
        ("the code", "what from_pretrained(...) loads"),
    ),
    "html_details": Expected(
        {"sentence-transformers": "3.4.1", "transformers": "4.49.0"}, ("sentence-transformers",),
        "3.13",
        "TypeError", "normalize() expected a tensor", "sentence_transformers/SentenceTransformer.py, line 700",
        ("from sentence_transformers import", "normalize_embeddings=True)"),
        ("what SentenceTransformer(...) loads",),
    ),
    "from_main": Expected(
        {"torch": "2.8.0"}, ("transformers",), "3.11",
        "KeyError", "attn_config", "transformers/models/auto/auto_factory.py, line 586, in from_pretrained",
        ("from transformers import AutoModel", "helper(model_inputs)"),
        ("what from_pretrained(...) loads", "transformers 4.57.0.dev0"),
    ),
    "risky": Expected(
        {"optimum": None, "onnx": None}, ("requests", "onnx"), None,
        "ValidationError", "is required but missing", "", ("import os, shutil", "full_check=True)"),
        ("the version of requests", "the version of onnx"),
    ),
    "conda_list": Expected(
        {"torch": "2.4.1", "tokenizers": "0.20.3", "transformers": "4.46.3"},
        ("transformers",), "3.11",
        None, "", "", ("from transformers import AutoTokenizer", '== "a b"'),
        ("what from_pretrained(...) loads", "the signature"),
    ),
    "gap_everything": Expected(
        {"transformers": None}, (), None, None, "", "", None, ("the code", "the signature", "the subject"),
    ),
    "pytest_output": Expected(
        {"accelerate": None, "torch": None}, ("accelerate",), "3.12",
        "TypeError", "got multiple values for keyword argument", "accelerate/data_loader.py, line 1405",
        ("from accelerate import skip_first_batches", "test_resume()"),
        ("the version of accelerate",),
    ),
}  # fmt: skip


def drafted(name: str) -> tuple[Repro, object]:
    found = draft(read_report(str(ISSUES / f"{name}.txt")), name)
    return parse_repro(found.source, name=name), found


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_draft_has_what_the_issue_tells(name):
    expected = EXPECTED[name]
    repro, found = drafted(name)
    assert {key: found.versions.installed.get(key) for key in expected.versions} == expected.versions
    assert tuple(repro.subjects) == expected.subjects
    assert not any(bounds.good or bounds.bad for bounds in repro.subjects.values())
    assert repro.requires_python == (f"=={expected.python}.*" if expected.python else None)
    assert (repro.signature.exception if repro.signature else None) == expected.exception
    assert expected.message in ((repro.signature.message if repro.signature else "") or "")
    assert repro.reported.startswith(expected.reported)
    code = found.script.code or None
    assert (code is not None) == (expected.code is not None)
    if code is not None:
        assert code.startswith(expected.code[0])
        assert code.endswith(expected.code[1])
    assert tuple(gap.what for gap in found.gaps) == expected.gaps
    assert not isinstance(parsed(found.source), int)
    marks = [number for number, line in enumerate(found.source.splitlines(), 1) if f"# {MARK}" in line]
    assert {found.line_of(gap) for gap in found.gaps} <= set(marks)


PAGE = """[Bug] Training fails #77

  5. Which versions?

    \u2022 Unsloth: 2025.11.2
    \u2022 Unsloth Zoo: 2025.11.3
    \u2022 PyTorch: 2.8.0+cu126
    \u2022 Python: 3.12.12

Minimal code

from unsloth import FastModel

model = FastModel.from_pretrained(
    model_name = "unsloth/whisper-large-v3",
    optim = "adamw_8bit",
)

# Training start
model.train_all()

Full Error Traceback

RuntimeError                              Traceback (most recent call last)

/tmp/ipython-input-1.py in <cell line: 0>()
----> 1 model.train_all()

/usr/local/lib/python3.12/dist-packages/unsloth/models/_utils.py in train_all(***failed resolving arguments***)

/usr/local/lib/python3.12/dist-packages/unsloth_zoo/gradient_checkpointing.py in backward(ctx, *args)
    596             # )
    597         else:
--> 598             torch.autograd.backward(outputs_with_grad, args_with_grad)

/usr/local/lib/python3.12/dist-packages/torch/autograd/graph.py in _engine_run_backward(t_outputs)
--> 829         return Variable._execution_engine.run_backward(

RuntimeError: Trying to backward through the graph a second time (or worse). Saved values are 2.00% freed.
"""


def test_the_bare_text_of_a_page_is_read(tmp_path):
    """It has an IPython traceback and versions in a list; code that is not set as code is for people."""
    path = tmp_path / "page.txt"
    path.write_text(PAGE, encoding="utf-8")
    found = draft(read_report(str(path)), "page")
    repro = parse_repro(found.source, name="page")
    assert tuple(repro.subjects) == ("unsloth-zoo", "unsloth")
    assert repro.reported == "unsloth_zoo/gradient_checkpointing.py, line 598, in backward"
    assert (
        repro.signature.message
        == "Trying to backward through the graph a second time (or worse). Saved values are 2.00% freed."
    )
    assert found.versions.installed["torch"] == "2.8.0"
    assert [gap.what for gap in found.gaps] == ["the code"]
    assert repro.requires_python == "==3.12.*"


def test_every_issue_is_expected():
    assert sorted(EXPECTED) == sorted(path.stem for path in ISSUES.glob("*.txt"))


def test_pinned_versions_are_dependencies():
    repro, _ = drafted("unsloth_template")
    assert {"unsloth==2025.6.6", "unsloth-zoo==2025.6.6", "torch==2.7.0"} <= set(repro.dependencies)
    # A resolver prefers the newest release of the first one.
    names = [text.partition("==")[0] for text in repro.dependencies]
    assert names[: len(repro.subjects)] == list(repro.subjects)
    assert repro.device == "cuda"
    assert repro.subjects["unsloth"].hold == ("torch==2.7.0",)


def test_the_signature_has_the_first_line_of_the_message(tmp_path):
    """Numbers, paths and addresses in it count as the same when runs are compared."""
    path = tmp_path / "issue.md"
    path.write_text("peft 0.16.0\n\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                    "ValueError: can't read /home/a/b.json at 0x7f01\nhint: try again\n")  # fmt: skip
    signature = parse_repro(draft(read_report(str(path)), "r").source, name="r").signature
    assert signature is not None
    assert signature.message == "can't read /home/a/b.json at 0x7f01"


def test_a_quoted_traceback_has_its_frames():
    text = (
        "## Actual results\n\n> Traceback (most recent call last):\n"
        '>   File "C:\\envs\\main\\lib\\site-packages\\datasets\\arrow_dataset.py", line 2169, in filter\n'
        ">     indices = self.map(\n> TypeError: unexpected keyword argument\n\n> a quotation\n"
    )
    (raised,) = tracebacks_of(text)
    assert (raised.name, raised.frames[0].file, raised.frames[0].text) == (
        "TypeError", "datasets/arrow_dataset.py", "indices = self.map("
    )  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Draft a repro from a text; returns the repro and the draft."""

    def of(text):
        path = tmp_path / "issue.md"
        path.write_text(text, encoding="utf-8")
        found = draft(read_report(str(path)), "issue")
        return parse_repro(found.source, name="issue"), found

    return of


SENTENCES = [
    "The loss is fine again when I go back to **peft==0.15.2**.",
    "It does not happen if I downgrade to peft==v0.15.2, same script.",
    "Workaround: with peft 0.15.2\neverything works",
    "It works\nwith peft 0.15.2\nbut not with the next one.",
    "peft 0.15.2 works, peft 0.17.0 fails.",
    "After upgrading\npeft 0.17.0\nis what fails.",
    "1. install peft 0.17.0 and it fails",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_says_nothing_about_versions(read, sentence):
    repro, found = read(f"# Adapter is lost since peft 0.14.0\n\npeft 0.16.0\n\n{sentence}\n")
    assert found.versions.installed == {"peft": "0.16.0"}
    assert repro.dependencies == ("peft==0.16.0",)
    _, found = read(f"# Adapter is lost since peft 0.14.0\n\n{sentence}\n")
    assert found.versions.installed == {}


@pytest.mark.parametrize(
    "lists",
    [
        "Works:\n- peft 0.15.2\n\nFails:\n- peft 0.16.0\n",
        "peft 0.15.2 -> 0.16.0\n",
        "| package | good | bad |\n| --- | --- | --- |\n| peft | 0.15.2 | 0.16.0 |\n",
        "```\npip install peft==0.15.2\n```\n\n```\npeft==0.16.0\n```\n",
        "```\npeft         0.15.2    0.16.0\n```\n",
    ],
)
def test_two_versions_of_a_package_are_a_gap(read, lists):
    repro, found = read(f"# Adapter is lost\n\n{lists}\n```python\nimport peft\npeft.train()\n```\n")
    assert found.versions.several == {"peft": ("0.15.2", "0.16.0")}
    assert "peft" in repro.dependencies
    assert "the report lists 0.15.2 and 0.16.0" in found.source


def test_an_error_in_brackets_ends_with_them(read):
    repro, _ = read("# Saving fails [TypeError: save() got 3 arguments (2 wanted)] with adapters\n\npeft 0.16.0\n")
    assert repro.signature.exception == "TypeError"
    assert repro.signature.message.endswith("(2 wanted)")


def test_the_message_of_an_import_error_is_enough(read):
    text = (
        "# Pipelines can't be imported after an update\n\nUpdated transformers to 4.50.1.\n\n"
        "Failed to import diffusers.loaders.peft because of the following error (look up to see its traceback):\n"
        "cannot import name 'old_helper' from 'transformers.modeling_utils'\n"
    )
    repro, _ = read(text)
    assert repro.signature.exception == "ImportError"
    assert repro.signature.message == "cannot import name 'old_helper' from 'transformers.modeling_utils'"


def test_code_that_is_only_indented_is_read(read):
    _, found = read("# It fails\n\npeft 0.16.0\n\n    model = load()\n    print(model.run(1))\n\nThat raises.\n")
    assert found.script.code == "model = load()\nprint(model.run(1))"


TRACEBACK = """
Traceback (most recent call last):
  File "/home/me/run.py", line 2, in <module>
    train(steps=1)
  File "/e/lib/python3.11/site-packages/peft/__init__.py", line 7, in train
    raise ValueError("too few steps in all")
ValueError: too few steps in all
"""
LIBRARY = """
```python
import functools

def train(steps):
    if steps < 2:
        raise ValueError("too few steps in all")

functools.cache(train)
```
"""
SCRIPT = """
```python
from peft import train
train(steps=1)
```
"""


@pytest.mark.parametrize("blocks", [LIBRARY + SCRIPT, SCRIPT + LIBRARY])
def test_the_block_with_the_lines_of_the_traceback_is_the_script(read, blocks):
    _, found = read(f"# Training fails\n\npeft 0.16.0\n{blocks}{TRACEBACK}")
    assert found.script.code == "from peft import train\ntrain(steps=1)"
    assert found.gaps[0].todo == "the report has 1 more block of code: add what this one needs"


def test_two_errors_are_a_gap(read):
    repro, found = read(f"# ValueError in training\n\n- peft 0.16.0\n{SCRIPT}{TRACEBACK}\nKeyError: 'a'\n{TRACEBACK}\n")
    assert repro.signature.exception == "ValueError"
    assert found.gaps == ()
    other = TRACEBACK.replace("too few steps in all", "no data")
    repro, found = read(f"# ValueError in training\n\n- peft 0.16.0\n{SCRIPT}{TRACEBACK}{other}")
    assert [gap.todo for gap in found.gaps] == ["the report has 2 different errors: check that it is of the right one"]
