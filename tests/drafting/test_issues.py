"""Issues as people write them, each with the versions, subjects, bounds, signature and code that a draft must have."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from harness.drafting.draft import MARK, draft
from harness.drafting.source import read_report, tree_of
from harness.drafting.tracebacks import tracebacks_of
from harness.model.repro import Repro, parse_repro

ISSUES = Path(__file__).parent / "issues"


@frozen
class Expected:
    """What a draft must have: `bounds` of the first subject, words of the signature, and the ends of the code."""

    versions: dict[str, str]
    subjects: tuple[str, ...]
    bounds: tuple[str | None, str | None]
    python: str | None
    exception: str | None = None
    message: str = ""
    reported: str = ""
    code: tuple[str, str] | None = None
    gaps: tuple[str, ...] = ()


EXPECTED = {
    "transformers_env": Expected(
        {"transformers": "4.53.0", "torch": "2.7.1", "accelerate": "1.8.1", "huggingface-hub": "0.33.1"},
        ("transformers",), ("4.52.4", "4.53.0"), "3.11",
        "AttributeError", "object has no attribute 'reorder", "transformers/cache_utils.py, line 801, in reorder_cache",
        ("from transformers import AutoModelForCausalLM", 'cache_implementation="static")'),
    ),
    "accelerate_env": Expected(
        {"accelerate": "1.7.0", "torch": "2.6.0", "numpy": "1.26.4"}, ("accelerate",), ("1.6.0", "1.7.0"), "3.10",
        "TypeError", "load() got an unexpected keyword argument", "accelerate/checkpointing.py, line 241",
        ("import torch", 'acc.load_state("/tmp/state")'),
    ),
    "collect_env": Expected(
        {"torch": "2.8.0", "numpy": "2.2.6"}, ("torch",), ("2.7.1", "2.8.0"), "3.12",
        "AssertionError", "found nan in the output", "", ("import torch", '"found nan in the output"'),
    ),
    "pip_freeze": Expected(
        {"peft": "0.17.1", "torch": "2.7.0", "transformers": "4.56.1", "accelerate": "1.10.1"},
        ("peft", "transformers"), ("0.16.0", "0.17.0"), "3.10",
        "AssertionError", "the head is gone", "", ("import torch", '"the head is gone"'),
    ),
    "table": Expected(
        {"trl": "0.19.1", "transformers": "4.53.2", "torch": "2.7.1", "datasets": "3.6.0"},
        ("datasets", "trl"), (None, "3.6.0"), "3.11",
        "ArrowInvalid", "named position_ids expected length", "datasets/arrow_dataset.py, line 3079, in map",
        ("from datasets import load_dataset", "trainer.train()"),
    ),
    "unsloth_template": Expected(
        {"unsloth": "2025.6.6", "unsloth-zoo": "2025.6.6", "trl": "0.19.0", "transformers": "4.53.0", "torch": "2.7.0"},
        ("unsloth",), (None, "2025.6.6"), "3.11",
        "ValueError", "not enough values to unpack", "unsloth/models/llama.py, line 505",
        ("from unsloth import FastLanguageModel", '.to("cuda"))'),
    ),
    "datasets_template": Expected(
        {"datasets": "4.0.0", "pyarrow": "21.0.0", "pandas": "2.3.1"}, ("datasets",), ("3.6.0", "4.0.0"), "3.12",
        "CastError", "Couldn't cast", "datasets/table.py, line 2128, in cast_table_to_schema",
        ("from datasets import Dataset", "length=2)}))"),
    ),
    "diffusers_template": Expected(
        {"diffusers": "0.32.2", "torch": "2.5.1", "transformers": "4.48.2", "peft": "0.14.0"},
        ("diffusers",), (None, "0.32.2"), "3.10",
        "ValueError", "eta must be between", "diffusers/schedulers/scheduling_ddim.py, line 431, in step",
        ("import torch", "generator=None)"),
    ),
    "notebook": Expected(
        {"trl": "0.12.0", "transformers": "4.46.0"}, ("trl", "transformers"), (None, "0.12.0"), "3.10",
        "ImportError", "cannot import name 'top_k_top_p_filtering'", "trl/__init__.py, line 22",
        ("# %%time", "create_reference_model(model)"),
    ),
    "chained": Expected(
        {"datasets": "3.2.0", "pyarrow": "18.1.0"}, ("datasets",), (None, "3.2.0"), "3.9",
        "ArrowInvalid", "changed from string to array", "datasets/packaged_modules/json/json.py, line 150",
        ("import datasets", 'data_files="rows.jsonl")'),
    ),
    "ansi": Expected(
        {"torch": "2.7.1", "bitsandbytes": "0.46.0"}, ("bitsandbytes",), ("0.45.5", "0.46.0"), "3.11",
        "RuntimeError", "Expected all tensors to be on the same device", "bitsandbytes/functional.py, line 1034",
        ("import torch, bitsandbytes as bnb", ".cuda())"),
    ),
    "rich": Expected(
        {"peft": "0.15.1", "transformers": "4.51.3"}, ("peft",), (None, "0.15.1"), "3.11",
        "ValueError", "not found in the base model", "peft/tuners/lora/model.py, line 142, in __init__",
        None, ("the code",),
    ),
    "prose_only": Expected(
        {"peft": "0.14.0", "transformers": "4.47.0"}, ("peft",), ("0.13.2", "0.14.0"), "3.10",
        "RuntimeError", "expected scalar type Half but found Float", "", None, ("the code",),
    ),
    "several_blocks": Expected(
        {"transformers": "4.48.1", "torch": "2.5.1"}, ("transformers",), (None, "4.48.1"), None,
        "AssertionError", "EarlyStoppingCallback requires metric_for_best_model", "",
        ("import torch", "callbacks=[EarlyStoppingCallback()]).train()"),
    ),
    "html_details": Expected(
        {"sentence-transformers": "3.4.1", "transformers": "4.49.0"}, ("sentence-transformers",),
        (None, "3.4.1"), "3.13",
        "TypeError", "normalize() expected a tensor", "sentence_transformers/SentenceTransformer.py, line 700",
        ("from sentence_transformers import", "normalize_embeddings=True)"),
    ),
    "from_main": Expected(
        {"torch": "2.8.0"}, ("transformers",), (None, None), "3.11",
        "KeyError", "attn_config", "transformers/models/auto/auto_factory.py, line 586, in from_pretrained",
        ("from transformers import AutoModel", "helper(model_inputs)"),
        ("transformers 4.57.0.dev0", "helper", "model_inputs", "my-lab/private-model-7"),
    ),
    "risky": Expected(
        {"optimum": "1.24.0", "onnx": "1.17.0"}, ("onnx",), (None, "1.17.0"), None,
        "ValidationError", "is required but missing", "", ("import os, shutil", "full_check=True)"),
    ),
    "conda_list": Expected(
        {"torch": "2.4.1", "tokenizers": "0.20.3", "transformers": "4.46.3"},
        ("tokenizers", "transformers"), ("0.19.1", "0.20.3"), "3.11",
        None, "", "", ("from transformers import AutoTokenizer", '== "a b"'), ("the signature",),
    ),
    "gap_everything": Expected(
        {"transformers": "4.55.0"}, ("transformers",), (None, "4.55.0"), None,
        None, "", "", None, ("the code", "the signature"),
    ),
    "pytest_output": Expected(
        {"accelerate": "1.9.0", "torch": "2.7.1"}, ("accelerate",), ("1.8.1", "1.9"), "3.12",
        "TypeError", "got multiple values for keyword argument", "accelerate/data_loader.py, line 1405",
        ("from accelerate import skip_first_batches", "test_resume()"),
    ),
}  # fmt: skip


def drafted(name: str) -> tuple[Repro, object]:
    found = draft(read_report(str(ISSUES / f"{name}.txt")), name)
    return parse_repro(found.source, name=name), found


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_draft_has_what_the_issue_tells(name):
    expected = EXPECTED[name]
    repro, found = drafted(name)
    assert {key: found.told.installed.get(key) for key in expected.versions} == expected.versions
    assert tuple(repro.subjects) == expected.subjects
    first = repro.subjects[expected.subjects[0]]
    assert (first.good, first.bad) == expected.bounds
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
    tree_of(found.source)
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
    """It has no fences, an IPython traceback, and versions in a numbered list."""
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
    assert found.script.code.startswith("from unsloth import FastModel")
    assert found.script.code.endswith("# Training start\nmodel.train_all()")
    assert 'optim = "adamw_torch"' in found.source
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


def test_an_excerpt_of_the_library_and_a_fix_are_not_the_script():
    _, found = drafted("several_blocks")
    assert "class Rows" in found.script.code
    assert "on_train_begin" not in found.script.code
    assert 'metric_for_best_model="loss"' not in found.script.code


def test_a_model_of_the_hub_becomes_a_tiny_one_and_data_are_generated():
    _, found = drafted("table")
    assert 'SFTTrainer(tiny_model("Qwen/Qwen3-0.6B"), ' in found.source
    assert 'generated_dataset("trl-lib/Capybara", split="train[:1%]")' in found.source
    assert '"Qwen/Qwen3-0.6B": ["qwen3", "AutoModelForCausalLM"],' in found.source


def test_the_signature_has_the_first_line_of_the_message(tmp_path):
    """Numbers, paths and addresses in it count as the same when runs are compared."""
    path = tmp_path / "issue.md"
    path.write_text("peft 0.16.0\n\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                    "ValueError: can't read /home/a/b.json at 0x7f01\nhint: try again\n")  # fmt: skip
    signature = parse_repro(draft(read_report(str(path)), "r").source, name="r").signature
    assert signature is not None
    assert signature.message == "can't read /home/a/b.json at 0x7f01"


def test_what_the_error_names_is_suspected_before_what_only_loads_the_data(tmp_path):
    report = tmp_path / "issue.md"
    code = (
        "from datasets import load_dataset\nfrom trl import GRPOTrainer\n"
        "GRPOTrainer('m', train_dataset=load_dataset('a/b')).train()"
    )
    report.write_text(f"```python\n{code}\n```\n\nAttributeError: 'GRPOTrainer' object has no attribute 'steps'\n")
    assert draft(read_report(str(report)), "r").subjects == ("trl", "datasets")
    report.write_text(f"```python\n{code}\n```\n\nAttributeError: 'NoneType' object has no attribute 'init_kwargs'\n")
    assert draft(read_report(str(report)), "r").subjects == ("trl", "datasets")


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
