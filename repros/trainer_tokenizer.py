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
# hold = ["torch==2.13.0", "transformers==5.0.0", "numpy<2.3"]
#
# [tool.harness.subjects.transformers]
# good = "4.51.3"
# bad = "5.2.0"
# as-of = "none"
# hold = ["torch==2.13.0", "accelerate==1.11.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md"]
# last-good = "4.57.6"
# first-bad = "5.0.0"
# file = "transformers/trainer.py"
# function = "Trainer.__init__"
# workaround = "The argument is called processing_class since 4.46."
# [tool.harness.known.seen]
# release = "5.0.0"
# error = "TypeError: Trainer.__init__() got an unexpected keyword argument 'tokenizer'"
# ///
"""`Trainer(tokenizer=...)` is a TypeError from transformers 5.0.0 on, which knows it as `processing_class` only.

4.46.0 renamed the argument and let a decorator on `Trainer.__init__` translate the old name; 5.0.0 dropped
the decorator. Scripts that are older than the new name stop here before they train, as the script of
unsloth's issue on Whisper does, whose own bug nobody sees then.

A BERT classifier that was never trained takes one step on two texts of different length, which the tokenizer
pads. `HARNESS_PARAMS` takes `argument`: "tokenizer" (default), or "processing_class", which works on both sides.
`HARNESS_METRICS` gets the loss.
"""

import json
import os
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

TEXTS = {"a short text": 0, "a text that has some more words than the short one": 1}


def word_tokenizer():
    """A tokenizer that knows the words of the two texts, and the padding."""
    words = ["[PAD]", "[UNK]", *sorted({word for text in TEXTS for word in text.split()})]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def train(argument, seed):
    """Give the tokenizer to a Trainer under the name `argument`, take one step and return its loss."""
    torch.manual_seed(seed)
    tokenizer = word_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    examples = [{**tokenizer(text), "label": label} for text, label in TEXTS.items()]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=len(examples),
            max_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        model = BertForSequenceClassification(config)
        trainer = Trainer(model, arguments, train_dataset=examples, **{argument: tokenizer})
        return {"loss": trainer.train().training_loss}


def main():
    """Train, and leave the loss in the file that `HARNESS_METRICS` names."""
    params = {"argument": "tokenizer", "seed": 3407, **json.loads(os.environ.get("HARNESS_PARAMS") or "{}")}
    metrics = train(**params)
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
