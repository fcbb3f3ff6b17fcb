# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "transformers", "accelerate"]
#
# [tool.harness]
# device = "any"
# timeout = 300
#
# [tool.harness.subjects.accelerate]
# as-of = "none"
# hold = ["torch==2.13.0", "transformers==4.47.1", "numpy<2.3"]
#
# [tool.harness.subjects.transformers]
# good = "4.43.4"
# bad = "4.47.1"
# as-of = "none"
# hold = ["torch==2.13.0", "accelerate==1.8.1", "numpy<2.3"]
#
# [tool.harness.signature]
# metric = "full_window"
# above = 2.0
#
# [tool.harness.cases.full-window]
# params = {}
# [tool.harness.cases.full-window.known]
# kind = "wrong number"
# upstream = ["https://huggingface.co/blog/gradient_accumulation", "https://github.com/huggingface/transformers/releases/tag/v4.46.0"]
# last-good = "4.45.2"
# first-bad = "4.46.1"
# last-bad = "4.47.1"
# fixed-in = "4.48.0"
# good-again = "4.50.3"
# file = "transformers/trainer.py"
# function = "Trainer.training_step"
# fix = "4.48.0 divides the loss of models that do not take num_items_in_batch."
# workaround = "Divide max_grad_norm and the learning rate by the number of accumulated batches, or do not accumulate."
#
# [tool.harness.cases.full-window-fix]
# params = {}
# [tool.harness.cases.full-window-fix.subjects.transformers]
# good = "4.48.0"
# bad = "4.46.3"
# as-of = "none"
# hold = ["torch==2.13.0", "accelerate==1.8.1", "numpy<2.3"]
#
# [tool.harness.cases.partial-window]
# params = {}
# [tool.harness.cases.partial-window.signature]
# metric = "last_window"
# below = 0.75
# [tool.harness.cases.partial-window.subjects.transformers]
# good = "4.55.0"
# bad = "4.48.0"
# as-of = "none"
# hold = ["torch==2.13.0", "accelerate==1.8.1", "numpy<2.3"]
# [tool.harness.cases.partial-window.known]
# kind = "wrong number"
# upstream = ["https://huggingface.co/blog/gradient_accumulation", "https://github.com/huggingface/transformers/releases/tag/v4.55.0"]
# never-worked = true
# last-bad = "4.54.1"
# fixed-in = "4.55.0"
# file = "transformers/trainer.py"
# workaround = "Drop the last, smaller window: dataloader_drop_last=True, with a number of batches that the window divides."
# ///
"""Gradients accumulated by the Trainer over four batches are four times too large, without any exception.

All examples are equal and the learning rate is 0. So every batch has the same gradient, and so does the
mean over any number of batches: the norm logged by the Trainer must not depend on accumulation.

* `full_window` is the norm after four batches, divided by the norm of a run without accumulation. It
  should be 1; from transformers 4.46.0 to 4.47.1 it is 4.
* `last_window` is the same ratio at the end of the epoch, where only two batches are left for a window of
  four. It should be 1; up to 4.54.1 the sum of the two was divided by four. From 4.46.0 to 4.47.1 the first
  bug hides this one, so the case `partial-window` starts at 4.48.0.

Both bugs need a model that does not accept the number of items in a batch, such as this BERT. Other models
divide by it themselves.

`HARNESS_PARAMS` accepts `accumulation`, `left_over`, `seed`, and `case`, which has no effect of its own.
The metrics are the two ratios above, `full_window_loss`, `last_window_loss` and the underlying norms.
"""

import json
import os
import tempfile
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


def small_bert(seed):
    """A random BERT classifier with two small layers and no dropout."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def logged_steps(steps, accumulation, batches, seed):
    """Train on equal batches; returns the loss and the gradient norm of each optimizer step."""
    example = {"input_ids": torch.arange(1, 17), "attention_mask": torch.ones(16, dtype=torch.long), "labels": 1}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=accumulation,
            max_steps=steps,
            learning_rate=0.0,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(small_bert(seed), arguments, train_dataset=[example] * batches)
        trainer.train()
    return [(entry["loss"], float(entry["grad_norm"])) for entry in trainer.state.log_history if "grad_norm" in entry]


def compared(accumulation, left_over, seed):
    """The ratios between a run with accumulation, whose last window has `left_over` batches, and one without."""
    ((loss, norm),) = logged_steps(1, 1, 1, seed)
    full, last = logged_steps(2, accumulation, accumulation + left_over, seed)
    return {
        "full_window": full[1] / norm,
        "last_window": last[1] / norm,
        "full_window_loss": full[0] / loss,
        "last_window_loss": last[0] / loss,
        "norm": norm,
        "full_window_norm": full[1],
        "last_window_norm": last[1],
    }


def main():
    """Train twice and write the ratios to the file named by `HARNESS_METRICS`."""
    params = {"case": "", "accumulation": 4, "left_over": 2, "seed": 3407}
    params.update(json.loads(os.environ.get("HARNESS_PARAMS") or "{}"))
    params.pop("case")
    metrics = compared(**params)
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
