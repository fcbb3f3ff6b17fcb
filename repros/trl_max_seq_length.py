# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "transformers", "trl"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.trl]
# good = "0.17.0"
# bad = "0.21.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "transformers==4.53.3", "accelerate==1.8.1", "datasets==3.6.0", "peft==0.15.2"]
#
# [tool.harness.signature]
# exception = "TypeError"
# message = "got an unexpected keyword argument 'max_seq_length'"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/huggingface/trl/releases/tag/v0.20.0"]
# last-good = "0.19.1"
# first-bad = "0.20.0"
# workaround = "The argument is called max_length since 0.16."
# file = "trl/trainer/sft_config.py"
# depth = "release"
# [tool.harness.known.seen]
# release = "0.20.0"
# error = "TypeError: SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'"
# ///
"""`SFTConfig(max_seq_length=...)` is a TypeError from trl 0.20.0 on."""

from trl import SFTConfig

print(SFTConfig("out", max_seq_length=64, report_to="none", bf16=False).output_dir)
