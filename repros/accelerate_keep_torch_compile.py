# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers==4.52.4", "accelerate"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.accelerate]
# good = "1.5.2"
# bad = "1.1.1"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "got an unexpected keyword argument 'keep_torch_compile'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/hiyouga/LlamaFactory/issues/8451", "https://github.com/huggingface/accelerate/pull/3282"]
# never-worked = true
# last-bad = "1.2.1"
# fixed-in = "1.3.0"
# workaround = "Install accelerate 1.3 or later."
# [tool.harness.known.seen]
# release = "1.2.1"
# error = "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'"
# frames = ["transformers/trainer.py:train", "transformers/trainer.py:_inner_training_loop", "transformers/trainer.py:_wrap_model"]
# ///
"""The Trainer of transformers 4.52 is a TypeError with accelerate before 1.3.0.

It passes `keep_torch_compile` to `Accelerator.unwrap_model`, but asks for accelerate 0.26 only. No earlier one works.
"""

import torch
from accelerate import Accelerator
from transformers import Trainer, TrainingArguments


class OwnLoss(Trainer):
    """A Trainer with a loss of its own."""

    def compute_loss(self, model, inputs, **options):
        """The mean of what the model returns."""
        return model(inputs["x"]).mean()


print(Accelerator)
options = TrainingArguments("out", max_steps=1, report_to="none", remove_unused_columns=False, disable_tqdm=True)
print(OwnLoss(torch.nn.Linear(2, 1), options, train_dataset=[{"x": torch.ones(2)}] * 8).train().training_loss)
