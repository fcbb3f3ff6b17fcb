# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "diffusers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.diffusers]
# good = "0.28.2"
# bad = "0.31.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "huggingface-hub==0.25.2"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "LoRAAttnProcessor2_0.__init__() got an unexpected keyword argument 'hidden_size'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/diffusers/issues/8742", "https://github.com/huggingface/diffusers/pull/8623"]
# last-good = "0.29.2"
# first-bad = "0.30.0"
# file = "diffusers/models/attention_processor.py"
# function = "LoRAAttnProcessor2_0.__init__"
# depth = "release"
# pull-request = "https://github.com/huggingface/diffusers/pull/8623"
# workaround = "Add LoRA with peft (model.add_adapter); for code that is not yours, hold diffusers<0.30."
# [tool.harness.known.seen]
# release = "0.30.0"
# error = "TypeError: LoRAAttnProcessor2_0.__init__() got an unexpected keyword argument 'hidden_size'"
# ///
"""The LoRA attention processors of diffusers are empty shells from 0.30.0 on, which take no `hidden_size`."""

from diffusers.models.attention_processor import LoRAAttnProcessor2_0

print(LoRAAttnProcessor2_0(hidden_size=8, cross_attention_dim=8, rank=4))
