# /// script
# requires-python = ">=3.10"
# dependencies = ["unsloth>=2025.5", "unsloth_zoo", "torch", "transformers", "peft", "trl", "datasets"]
#
# [tool.harness]
# device = "cuda"
# timeout = 600
# reported = "unsloth_zoo/gradient_checkpointing.py, line 598, in backward"
#
# [tool.harness.subjects.unsloth-zoo]
# bad = "2025.11.3"
# as-of = "era"
# hold = ["torch==2.8.0"]
#
# [tool.harness.subjects.unsloth]
# bad = "2025.11.2"
# as-of = "era"
# hold = ["torch==2.8.0"]
#
# [tool.harness.subjects.transformers]
# bad = "4.57.1"
# as-of = "era"
# hold = ["torch==2.8.0"]
#
# [tool.harness.signature]
# exception = "RuntimeError"
# message = "backward through the graph a second time"
# ///
"""Whisper with LoRA through unsloth and Seq2SeqTrainer, from unsloth issue 3592.

Every parameter below can be given as JSON in HARNESS_PARAMS. By default it trains a tiny random Whisper, made
here, on made audio. For the issue's own run on a real GPU:

    {"model": "unsloth/whisper-large-v3", "dataset": "MrDragonFox/Elise", "optim": "adamw_8bit", "steps": 60,
     "examples": 0}
"""

import gc
import inspect
import json
import math
import os
import tempfile
import time
from pathlib import Path

DEFAULTS = {
    "model": "",  # a hub name or a folder; empty for a random model of the size below
    "dataset": "",  # a hub data set with columns "audio" and "text"; empty for synthetic audio
    "size": "tiny",  # of the random model; see SIZES
    "precision": "auto",  # bf16, fp16, fp32, or auto as in the issue: bf16 if the GPU has it, else fp16
    "optim": "adamw_torch",  # the issue uses adamw_8bit, whose kernels need a real GPU
    "steps": 2,
    "accumulation": 4,
    "batch": 1,
    "rank": 64,
    "rate": 1e-4,
    "checkpointing": "unsloth",  # unsloth, true or false
    "examples": 16,  # of the synthetic audio, or the first of the data set; 0 means all
    "seed": 3407,
}
SIZES = {
    "tiny": {"d_model": 64, "layers": 2, "heads": 4, "ffn": 128, "mels": 16, "seconds": 1},
    "whisper-tiny": {"d_model": 384, "layers": 4, "heads": 6, "ffn": 1536, "mels": 80, "seconds": 30, "vocab": 51865},
    "whisper-base": {"d_model": 512, "layers": 6, "heads": 8, "ffn": 2048, "mels": 80, "seconds": 30, "vocab": 51865},
    "whisper-large-v3": {
        "d_model": 1280,
        "layers": 32,
        "heads": 20,
        "ffn": 5120,
        "mels": 128,
        "seconds": 30,
        "vocab": 51866,
    },
}
PARAMS = {**DEFAULTS, **json.loads(os.environ.get("HARNESS_PARAMS") or "{}")}
RATE_HZ = 16_000

# Even for a folder, unsloth asks its statistics server and transformers asks the hub; offline, both wait.
os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
if not PARAMS["model"] and not PARAMS["dataset"]:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

if not PARAMS["model"] and PARAMS["size"] == "tiny":
    # The model is so small that several threads make it ten times slower.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Import unsloth before torch and transformers, because it patches them.
import unsloth  # isort: skip # noqa: E402

import torch  # noqa: E402
from datasets import Audio, Dataset, load_dataset  # noqa: E402
from transformers import (  # noqa: E402
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    WhisperConfig,
    WhisperForConditionalGeneration,
)
from unsloth import FastModel  # noqa: E402

# unsloth runs the garbage collector about twenty times; skip the objects created by imports.
gc.freeze()

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def write_random_whisper(folder: Path, size: dict) -> None:
    """Write a folder that loads as a Whisper: random weights, a byte-level tokenizer, a feature extractor."""
    ids = write_tokenizer(folder)
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    config = WhisperConfig(
        vocab_size=max(len(ids), size.get("vocab", 0)),
        num_mel_bins=size["mels"],
        d_model=size["d_model"],
        encoder_layers=size["layers"],
        decoder_layers=size["layers"],
        encoder_attention_heads=size["heads"],
        decoder_attention_heads=size["heads"],
        encoder_ffn_dim=size["ffn"],
        decoder_ffn_dim=size["ffn"],
        max_source_positions=50 * size["seconds"],  # 100 frames a second, halved by the second convolution
        max_target_positions=448,
        pad_token_id=ids["<pad>"],
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=start,
        suppress_tokens=[],
        begin_suppress_tokens=[],
    )
    torch.manual_seed(PARAMS["seed"])
    model = WhisperForConditionalGeneration(config)
    model.generation_config.lang_to_id = {"<|en|>": ids["<|en|>"]}
    model.generation_config.task_to_id = {"transcribe": ids["<|transcribe|>"]}
    model.generation_config.is_multilingual = True
    model.save_pretrained(folder)
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": size["mels"],
        "sampling_rate": RATE_HZ,
        "hop_length": 160,
        "chunk_length": size["seconds"],
        "n_fft": 400,
        "padding_value": 0.0,
    }
    write_json(folder / "preprocessor_config.json", extractor)


def write_tokenizer(folder: Path) -> dict:
    """Write the files of a byte-level tokenizer with Whisper's special tokens; returns ids by token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "startoflm", "startofprev"]
    # Whisper pads with its end token, which some releases of unsloth-zoo refuse (2026.7.1). That is a different
    # bug.
    special = [*(f"<|{name}|>" for name in [*names, "nospeech", "notimestamps"]), "<pad>"]
    ids = {token: number for number, token in enumerate([*letters, *special])}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "vocab.json", ids)
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    write_json(folder / "normalizer.json", {})
    settings = {
        "tokenizer_class": "WhisperTokenizer",
        "processor_class": "WhisperProcessor",
        "model_max_length": 448,
        "additional_special_tokens": special[1:-1],
        **dict.fromkeys(("bos_token", "eos_token", "unk_token"), special[0]),
        "pad_token": special[-1],
        "added_tokens_decoder": {
            str(ids[token]): {
                "content": token,
                "special": True,
                **dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False),
            }
            for token in special
        },
    }
    write_json(folder / "tokenizer_config.json", settings)
    return ids


def write_json(path: Path, value: dict) -> None:
    """Write a value as JSON."""
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def recordings(seconds: float) -> Dataset:
    """The data set, with columns `audio` (array, sampling rate) and `text`."""
    if PARAMS["dataset"]:
        rows = load_dataset(PARAMS["dataset"], split="train").cast_column("audio", Audio(sampling_rate=RATE_HZ))
        return rows.select(range(min(PARAMS["examples"], len(rows)))) if PARAMS["examples"] else rows

    def tone(number: int) -> list:
        hertz = 200.0 + 30.0 * number
        return [0.3 * math.sin(2 * math.pi * hertz * n / RATE_HZ) for n in range(int(seconds * RATE_HZ))]

    # A plain column instead of the Audio feature, because decoding that needs a codec library.
    count = PARAMS["examples"] or DEFAULTS["examples"]
    audio = [{"array": tone(number), "sampling_rate": RATE_HZ} for number in range(count)]
    return Dataset.from_dict({"audio": audio, "text": [f"tone number {number} is played" for number in range(count)]})


class PaddingCollator:
    """Pads features and labels separately; padded labels are ignored in the loss."""

    def __init__(self, processor) -> None:
        self.processor = processor

    def __call__(self, examples):
        """One batch of examples."""
        batch = self.processor.feature_extractor.pad(
            [{"input_features": example["input_features"]} for example in examples], return_tensors="pt"
        )
        labels = self.processor.tokenizer.pad(
            [{"input_ids": example["labels"]} for example in examples], return_tensors="pt"
        )
        ids = labels["input_ids"].masked_fill(labels.attention_mask.ne(1), -100)
        if bool((ids[:, 0] == self.processor.tokenizer.bos_token_id).all()):
            ids = ids[:, 1:]  # the model adds the first token itself
        batch["labels"] = ids
        return batch


def issue_precision() -> str:
    """The precision that the issue's script chooses on a GPU; fp32 with unsloth's CPU backend."""
    if not torch.cuda.is_available():
        return "fp32"
    return "bf16" if unsloth.is_bf16_supported() else "fp16"


def load(size: dict, precision: str) -> tuple:
    """The model with LoRA and its processor, as in the issue; without a model in PARAMS a random one."""
    source = PARAMS["model"]
    if not source:
        folder = Path(tempfile.mkdtemp(prefix="whisper-", dir=Path.cwd()))
        write_random_whisper(folder, size)
        source = str(folder)
    model, processor = FastModel.from_pretrained(
        model_name=source,
        dtype=None if PARAMS["precision"] == "auto" else DTYPES[precision],
        load_in_4bit=False,
        auto_model=WhisperForConditionalGeneration,
        whisper_language="English",
        whisper_task="transcribe",
    )
    model = FastModel.get_peft_model(
        model,
        r=PARAMS["rank"],
        target_modules=["q_proj", "v_proj"],
        lora_alpha=PARAMS["rank"],
        lora_dropout=0,
        bias="none",
        use_gradient_checkpointing=PARAMS["checkpointing"],
        random_state=PARAMS["seed"],
        use_rslora=False,
        loftq_config=None,
        task_type=None,
    )
    model.generation_config.language = "<|en|>"
    model.generation_config.task = "transcribe"
    model.config.suppress_tokens = []
    model.generation_config.forced_decoder_ids = None
    return model, processor


def prepare_examples(processor, seconds: float) -> list[dict]:
    """Features and labels of each recording."""
    examples = []
    for row in recordings(seconds):
        features = processor.feature_extractor(row["audio"]["array"], sampling_rate=row["audio"]["sampling_rate"])
        labels = processor.tokenizer(row["text"]).input_ids
        examples.append({"input_features": features.input_features[0], "labels": labels})
    return examples


def trainer_for(model, processor, examples: list[dict], precision: str) -> Seq2SeqTrainer:
    """The trainer of the issue's script."""
    settings = {
        "per_device_train_batch_size": PARAMS["batch"],
        "gradient_accumulation_steps": PARAMS["accumulation"],
        "max_steps": PARAMS["steps"],
        "learning_rate": PARAMS["rate"],
        "logging_steps": 1,
        "optim": PARAMS["optim"],
        "fp16": precision == "fp16",
        "bf16": precision == "bf16",
        "weight_decay": 0.001,
        "remove_unused_columns": False,
        "lr_scheduler_type": "linear",
        "label_names": ["labels"],
        "seed": PARAMS["seed"],
        "output_dir": "outputs",
        "report_to": "none",
        "save_strategy": "no",
    }
    # transformers 5 has processing_class where 4 had tokenizer; between 4.46 and 4.57 it has both.
    processing = {"processing_class": processor.feature_extractor, "tokenizer": processor.feature_extractor}
    parameters = inspect.signature(Seq2SeqTrainer.__init__).parameters
    name = next(name for name in processing if name in parameters)
    return Seq2SeqTrainer(
        model=model,
        train_dataset=examples,
        data_collator=PaddingCollator(processor),
        args=Seq2SeqTrainingArguments(**settings),
        **{name: processing[name]},
    )


def main() -> None:
    """Load the model, add LoRA and train; raises where the training step fails."""
    size = SIZES[PARAMS["size"]] if isinstance(PARAMS["size"], str) else {**SIZES["tiny"], **PARAMS["size"]}
    precision = issue_precision() if PARAMS["precision"] == "auto" else PARAMS["precision"]
    model, processor = load(size, precision)
    trainer = trainer_for(model, processor, prepare_examples(processor, size["seconds"]), precision)
    began = time.perf_counter()
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    report({"loss": losses[-1], "steps": trainer.state.global_step, "train_seconds": time.perf_counter() - began})


def report(metrics: dict) -> None:
    """Print the metrics, and write them to the file named by `HARNESS_METRICS`."""
    print(metrics)
    if where := os.environ.get("HARNESS_METRICS"):
        write_json(Path(where), metrics)


if __name__ == "__main__":
    main()
