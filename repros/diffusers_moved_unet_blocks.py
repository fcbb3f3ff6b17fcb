# /// script
# requires-python = ">=3.11"
# dependencies = ["torch", "diffusers"]
#
# [tool.harness]
# device = "cpu"
# timeout = 300
#
# [tool.harness.subjects.diffusers]
# good = "0.27.2"
# bad = "0.31.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3", "huggingface-hub==0.25.2"]
#
# [tool.harness.signature]
# exception = "ModuleNotFoundError"
# message = "No module named 'diffusers.models.unet_2d_blocks'"
#
# [tool.harness.known]
# kind = "import error"
# upstream = ["https://github.com/huchenlei/ComfyUI-layerdiffuse/issues/86", "https://github.com/huchenlei/ComfyUI-layerdiffuse/pull/89"]
# last-good = "0.28.2"
# first-bad = "0.29.0"
# removed = "diffusers.models.unet_2d_blocks"
# workaround = "Import from diffusers.models.unets.unet_2d_blocks, which is there since 0.26; for code that is not yours, hold diffusers<0.29."
# [tool.harness.known.seen]
# release = "0.29.0"
# error = "ModuleNotFoundError: No module named 'diffusers.models.unet_2d_blocks'"
# ///
"""`diffusers.models.unet_2d_blocks` is gone from diffusers 0.29.0 on: it is `diffusers.models.unets.unet_2d_blocks`."""

from diffusers.models.unet_2d_blocks import UNetMidBlock2D

print(UNetMidBlock2D)
