# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "transformers", "peft"]
#
# [tool.harness]
# device = "any"
# timeout = 300
#
# [tool.harness.params]
# case = "frozen-inputs"
#
# [tool.harness.subjects.transformers]
# good = "5.2.0"
# bad = "4.50.3"
# as-of = "none"
# hold = ["torch==2.13.0", "peft==0.18.1", "numpy<2.3"]
#
# [tool.harness.subjects.peft]
# as-of = "none"
# hold = ["torch==2.13.0", "transformers==4.57.6", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "element 0 of tensors does not require grad and does not have a grad_fn"
#
# [tool.harness.cases.frozen-inputs]
# params = {}
# [tool.harness.cases.frozen-inputs.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/peft/issues/137", "https://github.com/huggingface/transformers/issues/42489", "https://github.com/huggingface/transformers/releases/tag/v5.0.0"]
# never-worked = true
# last-bad = "4.57.6"
# fixed-in = "5.0.0"
# depth = "release"
# file = "transformers/modeling_utils.py"
# fix = "5.0.0 makes the inputs require grad when checkpointing is enabled on a model with adapters."
# workaround = "Call model.enable_input_require_grads() first, or enable checkpointing before PEFT wraps the model, or pass use_reentrant=False."
# [tool.harness.cases.frozen-inputs.known.seen]
# release = "4.57.6"
# error = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
# frames = ["torch/_tensor.py:backward", "torch/autograd/__init__.py:backward", "torch/autograd/graph.py:_engine_run_backward"]
#
# [tool.harness.cases.enabled-inputs]
# params = {}
#
# [tool.harness.cases.checkpointing-first]
# params = {}
#
# [tool.harness.cases.not-reentrant]
# params = {}
#
# [tool.harness.cases.page-argument]
# params = {}
# [tool.harness.cases.page-argument.subjects.peft]
# good = "0.4.0"
# bad = "0.18.1"
# as-of = "none"
# hold = ["torch==2.13.0", "transformers==4.47.1", "numpy<2.3"]
# [tool.harness.cases.page-argument.signature]
# exception = "TypeError"
# message = "LoraConfig.__init__() got an unexpected keyword argument 'gradient_checkpointing'"
# [tool.harness.cases.page-argument.known]
# kind = "crash"
# upstream = ["https://huggingface.co/docs/peft/package_reference/lora"]
# never-worked = true
# workaround = "LoraConfig has no such argument and never had one; checkpointing is enabled on the model: model.gradient_checkpointing_enable()."
# [tool.harness.cases.page-argument.known.seen]
# release = "0.18.1"
# error = "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'gradient_checkpointing'"
#
# [tool.harness.cases.page-fix]
# params = {}
# [tool.harness.cases.page-fix.subjects.peft]
# good = "0.4.0"
# bad = "0.18.1"
# as-of = "none"
# hold = ["torch==2.13.0", "transformers==4.47.1", "numpy<2.3"]
# [tool.harness.cases.page-fix.signature]
# exception = "TypeError"
# message = "LoraConfig.__init__() got an unexpected keyword argument 'lora_enable_gradient_checkpointing'"
# [tool.harness.cases.page-fix.known]
# kind = "crash"
# upstream = ["https://huggingface.co/docs/peft/package_reference/lora"]
# never-worked = true
# workaround = "LoraConfig has no such argument and never had one; checkpointing is enabled on the model: model.gradient_checkpointing_enable()."
# [tool.harness.cases.page-fix.known.seen]
# release = "0.18.1"
# error = "TypeError: LoraConfig.__init__() got an unexpected keyword argument 'lora_enable_gradient_checkpointing'"
# ///
"""LoRA on a frozen model has no gradients under reentrant checkpointing unless the inputs require grad.

A page on the web blames a conflict with "LoRA's gradient checkpointing" and suggests two arguments of
`LoraConfig`. Neither argument exists. The cause is plain autograd: a reentrant checkpoint records its
output only if one of its inputs requires grad. With every base weight frozen the embeddings do not, so the
loss has no graph and `backward` raises "element 0 of tensors does not require grad".

The bug shows only if all of these hold:

* the base model is frozen, and only LoRA weights inside the checkpointed layers train;
* checkpointing is reentrant;
* checkpointing is enabled after PEFT wrapped the model; otherwise PEFT makes the inputs require grad;
* nothing else makes them require grad: transformers does from 5.0.0rc2 on, which is the fix to find.

`HARNESS_PARAMS` accepts `seed` and `case`:

* `frozen-inputs` (default): the bug.
* `enabled-inputs`: with `enable_input_require_grads()`, the fix; it trains.
* `checkpointing-first`: checkpointing before LoRA; PEFT applies the same fix, and it trains.
* `not-reentrant`: non-reentrant checkpointing needs no fix; it trains.
* `page-argument`: the page's failing snippet, `LoraConfig(gradient_checkpointing=True)`: a TypeError.
* `page-fix`: the page's suggestion, `LoraConfig(lora_enable_gradient_checkpointing=False)`: a TypeError.

The metrics of a case that trains are loss, grad_norm and seconds.
"""

import json
import os
import time
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

TARGETS = ["q_proj", "v_proj"]


def small_llama():
    """A random Llama with two layers."""
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def checkpointed_lora(*, use_reentrant=True, enable_inputs=False, checkpointing_first=False):
    """A Llama with LoRA and checkpointing, combined as requested."""
    model = small_llama()
    checkpointing = {"use_reentrant": use_reentrant}
    if checkpointing_first:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    wrapped = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=TARGETS))
    if enable_inputs:
        model.enable_input_require_grads()
    if not checkpointing_first:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    return wrapped


def train_step(model):
    """Take one optimizer step; returns its loss, gradient norm and duration in seconds."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).train()
    tokens = torch.randint(64, (2, 16)).to(device)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-3)

    started = time.perf_counter()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    if any(weight.grad is None for weight in weights):
        raise ValueError("backward ended but left LoRA weights without a gradient")
    norm = torch.nn.utils.clip_grad_norm_(weights, max_norm=1.0)
    optimizer.step()
    return {"loss": loss.item(), "grad_norm": norm.item(), "seconds": time.perf_counter() - started}


def page_argument():
    """Build the configuration of the page's failing snippet, which the page expects to fail only in backward."""
    LoraConfig(r=8, lora_alpha=32, target_modules=TARGETS, gradient_checkpointing=True)
    return {}


def page_fix():
    """Build the configuration of the page's suggestion."""
    LoraConfig(r=8, lora_alpha=32, target_modules=TARGETS, lora_enable_gradient_checkpointing=False)
    return {}


CASES = {
    "frozen-inputs": lambda: train_step(checkpointed_lora()),
    "enabled-inputs": lambda: train_step(checkpointed_lora(enable_inputs=True)),
    "checkpointing-first": lambda: train_step(checkpointed_lora(checkpointing_first=True)),
    "not-reentrant": lambda: train_step(checkpointed_lora(use_reentrant=False)),
    "page-argument": page_argument,
    "page-fix": page_fix,
}


def main():
    """Run the case named by `HARNESS_PARAMS`, and write its metrics to the file named by `HARNESS_METRICS`."""
    params = {"case": "frozen-inputs", "seed": 3407, **json.loads(os.environ.get("HARNESS_PARAMS") or "{}")}
    case, seed = params.pop("case"), params.pop("seed")
    if params or case not in CASES:
        raise ValueError(f"parameters are seed and case, one of {', '.join(CASES)}; got {case!r} and {params}")
    torch.manual_seed(seed)
    metrics = CASES[case]()
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
