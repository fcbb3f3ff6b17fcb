# /// script
# requires-python = ">=3.10"
# dependencies = ["torch", "transformers", "peft", "datasets"]
#
# [tool.harness]
# device = "any"
# timeout = 300
#
# [tool.harness.subjects.transformers]
# good = "4.50.3"
# bad = "4.57.6"
# as-of = "none"
# hold = ["torch==2.13.0", "peft==0.18.1", "datasets==4.4.1", "numpy<2.3"]
# default = true
#
# [tool.harness.subjects.peft]
# hold = ["torch==2.13.0", "transformers==4.57.6", "datasets==4.4.1", "numpy<2.3"]
#
# [tool.harness.subjects.torch]
# hold = ["transformers==4.57.6", "peft==0.18.1", "datasets==4.4.1", "numpy<2.3"]
#
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
#
# [tool.harness.known]
# kind = "crash"
# upstream = ["https://github.com/unslothai/unsloth/issues/3592"]
# last-good = "4.52.4"
# first-bad = "4.53.0"
# last-bad = "4.57.6"
# fixed-in = "5.0.0"
# good-again = "5.10.4"
# file = "transformers/models/whisper/modeling_whisper.py"
# function = "WhisperDecoder.forward"
# fix = "5.0.0 passes the encoder's output to the decoder's layers by position again."
# workaround = "Enable checkpointing with gradient_checkpointing_kwargs={\"use_reentrant\": False}, or install unsloth-zoo 2025.11.4 or later with unsloth."
# [tool.harness.known.seen]
# release = "4.53.0"
# error = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=T…"
# frames = ["torch/_tensor.py:backward", "torch/autograd/__init__.py:backward", "torch/autograd/graph.py:_engine_run_backward", "torch/autograd/function.py:apply", "torch/utils/checkpoint.py:backward"]
#
# [tool.harness.cases.lora]
# params = {}
#
# [tool.harness.cases.full-fine-tuning]
# params = {lora = false}
#
# [tool.harness.cases.not-reentrant]
# params = {use_reentrant = false}
#
# [tool.harness.cases.conv1-hook]
# params = {hook = "conv1"}
# [tool.harness.cases.conv1-hook.signature]
# exception = "RuntimeError"
# message = "element 0 of tensors does not require grad and does not have a grad_fn"
# [tool.harness.cases.conv1-hook.known]
# kind = "crash"
# upstream = ["https://github.com/unslothai/unsloth/issues/3592"]
# last-good = "4.52.4"
# first-bad = "4.53.0"
# last-bad = "4.57.6"
# fixed-in = "5.0.0"
# good-again = "5.10.4"
# file = "transformers/models/whisper/modeling_whisper.py"
# function = "WhisperDecoder.forward"
# fix = "5.0.0 passes the encoder's output to the decoder's layers by position again."
# workaround = "Enable checkpointing with gradient_checkpointing_kwargs={\"use_reentrant\": False}."
# ///
"""A training step of Whisper with LoRA and reentrant checkpointing back-propagates twice through its encoder.

From 4.53.0 on, transformers passes the encoder's output to each checkpointed decoder layer by keyword.
Reentrant checkpointing detaches only the positional tensors of a layer. So the recomputation of one decoder
layer runs backward into the encoder and frees its graph, which the next layer needs as well. 5.0.0rc2 passes
the output by position again.

The bug shows only if all of these hold:

* the decoder has two layers or more;
* the encoder's output requires grad, for example with LoRA in the encoder and an input that requires grad;
* the decoder's input requires grad too; otherwise its layers have nothing to recompute (see `hook`);
* checkpointing is reentrant. It is set explicitly here, because 5.0.0 changed the default.

The default is a random Whisper with two small layers on synthetic audio; it needs neither a hub nor a GPU, and imports
datasets only for a real data set (`dataset`).
`HARNESS_PARAMS` accepts the fields of `Settings`. The metrics are loss, grad_norm and seconds.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizer

SAMPLING_RATE = 16_000
SPECIAL_TOKENS = 3  # padding, begin and end; the 256 bytes of the small model's vocabulary follow
HOOKED = {
    "encoder": ("model.encoder.conv1", "model.decoder.embed_tokens"),
    "conv1": ("model.encoder.conv1",),
}


@dataclass(frozen=True)
class Settings:
    """What to train, and how.

    case: name of the case; it has no effect of its own.
    model: hub name or folder of a Whisper; "" for the small random one.
    dataset: hub name or folder of a data set with a column `audio`; "" for synthetic audio.
    split: the part of `dataset` to load, such as "train[:2]"; all of it becomes one batch.
    text_column: the column of `dataset` with the spoken text.
    device: "cpu", "cuda", ...; "" for CUDA if available.
    dtype: name of the torch dtype of the weights.
    steps: number of optimizer steps, all on the same batch.
    seed: seed of weights and audio.
    lora: train LoRA on q_proj and v_proj; if false, train all weights.
    use_reentrant: whether checkpointing is reentrant.
    hook: "encoder" makes the inputs of encoder and decoder layers require grad, like unsloth and PEFT together.
        "conv1" leaves out the decoder; then a layer that gets the encoder's output by keyword returns a result
        without grad, and the same change in transformers shows as "element 0 of tensors does not require grad".
    """

    case: str = ""
    model: str = ""
    dataset: str = ""
    split: str = "train[:2]"
    text_column: str = "text"
    device: str = ""
    dtype: str = "float32"
    steps: int = 1
    seed: int = 3407
    lora: bool = True
    use_reentrant: bool = True
    hook: str = "encoder"


def small_whisper():
    """A random Whisper with two layers on each side, for one second of audio in 16 mel bins; its tokens are bytes."""
    config = WhisperConfig(
        vocab_size=SPECIAL_TOKENS + 256,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=16,
        max_source_positions=50,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        begin_suppress_tokens=None,
    )
    return WhisperForConditionalGeneration(config), WhisperFeatureExtractor(feature_size=16, chunk_length=1)


def synthetic_speech(seed):
    """Two tones of one second with noise, each with a line of text."""
    generator = torch.Generator().manual_seed(seed)
    seconds = torch.arange(SAMPLING_RATE) / SAMPLING_RATE
    tones = {"a low tone": 220.0, "a high tone, and longer words": 880.0}
    waves = [
        torch.sin(2 * torch.pi * hertz * seconds) + 0.1 * torch.randn(SAMPLING_RATE, generator=generator)
        for hertz in tones.values()
    ]
    audio = [{"array": wave.numpy(), "sampling_rate": SAMPLING_RATE} for wave in waves]
    return [{"audio": heard, "text": text} for heard, text in zip(audio, tones, strict=True)]


def speech(settings):
    """The examples of the settings, resampled to the rate that Whisper expects."""
    if not settings.dataset:
        return synthetic_speech(settings.seed)
    from datasets import Audio, load_dataset

    dataset = load_dataset(settings.dataset, split=settings.split)
    if isinstance(dataset.features["audio"], Audio):
        dataset = dataset.cast_column("audio", Audio(sampling_rate=SAMPLING_RATE))
    return dataset


def tokens(text, tokenizer, limit):
    """The token ids of a text: from the tokenizer, or one per byte for the small model."""
    if tokenizer is not None:
        return tokenizer(text).input_ids[:limit]
    return [SPECIAL_TOKENS + byte for byte in text.encode()][:limit]


def collate(dataset, extractor, tokenizer, settings, limit):
    """A whole data set as one batch: log-mel features, and labels padded with the ignored index."""
    text_column = settings.text_column if settings.dataset else "text"
    waves, labels = [], []
    for example in dataset:
        waves.append(example["audio"]["array"])
        labels.append(torch.tensor(tokens(example[text_column], tokenizer, limit)))
    features = extractor(waves, sampling_rate=SAMPLING_RATE, return_tensors="pt").input_features
    labels = torch.nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=-100)
    return features, labels


def require_grad(_module, _inputs, output):
    """Forward hook that makes the output of a frozen module a leaf that requires grad."""
    output.requires_grad_(True)


def prepared_model(settings):
    """The model ready to train, its feature extractor, and its tokenizer (None for the small model)."""
    tokenizer = None
    if settings.model:
        model = WhisperForConditionalGeneration.from_pretrained(settings.model)
        extractor = WhisperFeatureExtractor.from_pretrained(settings.model)
        tokenizer = WhisperTokenizer.from_pretrained(settings.model)
    else:
        model, extractor = small_whisper()
    model.config.use_cache = False
    model.to(dtype=getattr(torch, settings.dtype))
    if settings.hook not in HOOKED:
        raise ValueError(f"hook must be one of {', '.join(HOOKED)}, not {settings.hook!r}")
    for name in HOOKED[settings.hook]:
        model.get_submodule(name).register_forward_hook(require_grad)
    if settings.lora:
        from peft import LoraConfig, get_peft_model

        lora = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])
        get_peft_model(model, lora)
    # PEFT would hook the decoder's embedding itself if checkpointing were already on. Only `hook` should decide
    # that, so checkpointing comes last.
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": settings.use_reentrant})
    return model.train(), extractor, tokenizer


def train(settings):
    """Train; returns the loss and gradient norm of the last step, and the duration of all steps in seconds."""
    torch.manual_seed(settings.seed)
    device = torch.device(settings.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model, extractor, tokenizer = prepared_model(settings)
    features, labels = collate(speech(settings), extractor, tokenizer, settings, model.config.max_target_positions)
    model.to(device)
    features, labels = features.to(device, model.dtype), labels.to(device)
    trainable = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.AdamW(trainable.values(), lr=1e-4)

    started = time.perf_counter()
    for _ in range(settings.steps):
        loss = model(input_features=features, labels=labels).loss
        loss.backward()
        if untouched := [name for name, weight in trainable.items() if weight.grad is None]:
            raise ValueError(f"backward left {len(untouched)} weights without a gradient, first {untouched[0]}")
        norm = torch.nn.utils.clip_grad_norm_(trainable.values(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
    return {"loss": loss.item(), "grad_norm": norm.item(), "seconds": time.perf_counter() - started}


def main():
    """Train with `HARNESS_PARAMS`, and write the metrics to the file named by `HARNESS_METRICS`."""
    metrics = train(Settings(**json.loads(os.environ.get("HARNESS_PARAMS") or "{}")))
    print(json.dumps(metrics))
    if path := os.environ.get("HARNESS_METRICS"):
        Path(path).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
