# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "transformers"]
#
# [tool.harness]
# device = "any"
# timeout = 300
#
# [tool.harness.subjects.transformers]
# good = "5.10.0"
# bad = "5.5.0"
# as-of = "none"
# hold = ["torch==2.13.0", "numpy<2.3"]
#
# [tool.harness.signature]
# metric = "loss_difference"
# above = 0.001
#
# [tool.harness.known]
# kind = "wrong number"
# upstream = ["https://github.com/huggingface/transformers/releases/tag/v5.5.2"]
# never-worked = true
# last-bad = "5.5.1"
# fixed-in = "5.5.2"
# file = "transformers/models/gemma4/modeling_gemma4.py"
# function = "Gemma4TextAttention.forward"
# fix = "5.5.2 hands keys and values from layer to layer beside the cache."
# workaround = "Keep a cache (use_cache=True), without checkpointing."
# ///
"""Gemma 4 computes another loss when it keeps no cache, and nothing is raised.

The last layers of Gemma 4 have no keys and values of their own: they read those of an earlier layer. In 5.5.0
and 5.5.1 these lay on the cache object. Without a cache, as in training with checkpointing, the layers fell
back to projections that no checkpoint has weights for. From 5.5.2 on they travel beside the cache.

A cache saves work and must not change a result. So a small random model, with four layers of which the last
two share, sees the same tokens twice: the losses must be equal up to rounding. `loss_difference` is how far
they are apart, as a part of the loss.

`HARNESS_PARAMS` takes `shared_layers` (0: nothing is shared, and no release differs) and `seed`.
`HARNESS_METRICS` gets loss_difference, loss_with_cache and loss_without_cache.
"""

import json
import os
from pathlib import Path

import torch
from transformers import Gemma4ForCausalLM, Gemma4TextConfig


def small_gemma(shared_layers):
    """A random Gemma 4 for text: four layers, windowed and full in turn, the last of which share."""
    config = Gemma4TextConfig(
        vocab_size=64,
        vocab_size_per_layer_input=64,
        hidden_size=32,
        hidden_size_per_layer_input=8,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        global_head_dim=16,
        layer_types=["sliding_attention", "full_attention"] * 2,
        sliding_window=32,
        num_kv_shared_layers=shared_layers,
        max_position_embeddings=32,
        initializer_range=0.2,
    )
    return Gemma4ForCausalLM(config)


def losses(shared_layers, seed):
    """The loss on the same tokens with a cache and without one, and how far they are apart."""
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = small_gemma(shared_layers).to(device).eval()
    tokens = torch.randint(3, 64, (2, 16)).to(device)
    with torch.no_grad():
        cached, uncached = (
            model(input_ids=tokens, labels=tokens, use_cache=use_cache).loss.item() for use_cache in (True, False)
        )
    return {
        "loss_difference": abs(uncached - cached) / abs(cached),
        "loss_with_cache": cached,
        "loss_without_cache": uncached,
    }


def main():
    """Compare, and leave the numbers in the file that `HARNESS_METRICS` names."""
    metrics = losses(**{"shared_layers": 2, "seed": 3407, **json.loads(os.environ.get("HARNESS_PARAMS") or "{}")})
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
