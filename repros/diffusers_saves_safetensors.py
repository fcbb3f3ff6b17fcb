# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "diffusers", "accelerate==1.8.1"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.diffusers]
# good = "0.18.2"
# bad = "0.23.1"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "huggingface-hub==0.24.7"]
#
# [tool.harness.signature]
# exception = "FileNotFoundError"
# message = "diffusion_pytorch_model.bin"
#
# [tool.harness.known]
# kind = "changed default"
# upstream = ["https://github.com/huggingface/diffusers/pull/4235", "https://github.com/huggingface/diffusion-models-class/issues/92"]
# last-good = "0.19.3"
# first-bad = "0.20.0"
# file = "diffusers/models/modeling_utils.py"
# function = "ModelMixin.save_pretrained"
# pull-request = "https://github.com/huggingface/diffusers/pull/4235"
# workaround = "Read diffusion_pytorch_model.safetensors, or save with safe_serialization=False."
# ///
"""`save_pretrained` of diffusers writes `diffusion_pytorch_model.safetensors` from 0.20.0 on, and no `.bin` file."""

import tempfile
from pathlib import Path

import torch
from diffusers import UNet2DModel

model = UNet2DModel(
    sample_size=8,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(8,),
    norm_num_groups=4,
    down_block_types=("DownBlock2D",),
    up_block_types=("UpBlock2D",),
)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    print(len(torch.load(Path(folder) / "diffusion_pytorch_model.bin")))
