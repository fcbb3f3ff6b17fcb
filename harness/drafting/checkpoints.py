"""The architectures of the checkpoints that reports name most, and of those whose name says their family."""

from __future__ import annotations

import re

from attrs import frozen


@frozen
class Architecture:
    """A model that can be made small and random: its `model_type`, and the class of transformers that makes it."""

    model_type: str
    auto_class: str
    is_guess: bool = False


_CAUSAL, _MASKED, _SEQ2SEQ = "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM"
_SPEECH, _CTC = "AutoModelForSpeechSeq2Seq", "AutoModelForCTC"
_BASE, _IMAGE = "AutoModel", "AutoModelForImageClassification"
_IMAGE_TEXT = "AutoModelForImageTextToText"

_KNOWN: dict[tuple[str, str], tuple[str, ...]] = {
    ("llama", _CAUSAL): (
        "meta-llama/Llama-2-7b-hf",
        "meta-llama/Llama-2-7b-chat-hf",
        "meta-llama/Meta-Llama-3-8B",
        "meta-llama/Meta-Llama-3-8B-Instruct",
        "meta-llama/Llama-3.1-8B",
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Llama-3.2-1B",
        "meta-llama/Llama-3.2-1B-Instruct",
        "meta-llama/Llama-3.2-3B-Instruct",
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        "HuggingFaceTB/SmolLM2-135M",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
        "huggyllama/llama-7b",
    ),
    ("qwen2", _CAUSAL): (
        "Qwen/Qwen2-0.5B",
        "Qwen/Qwen2-0.5B-Instruct",
        "Qwen/Qwen2.5-0.5B",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen/Qwen2.5-1.5B-Instruct",
        "Qwen/Qwen2.5-7B-Instruct",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    ),
    ("qwen3", _CAUSAL): ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B"),
    ("mistral", _CAUSAL): (
        "mistralai/Mistral-7B-v0.1",
        "mistralai/Mistral-7B-Instruct-v0.2",
        "mistralai/Mistral-7B-Instruct-v0.3",
        "HuggingFaceH4/zephyr-7b-beta",
    ),
    ("mixtral", _CAUSAL): ("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    ("gemma", _CAUSAL): ("google/gemma-2b", "google/gemma-7b"),
    ("gemma2", _CAUSAL): ("google/gemma-2-2b", "google/gemma-2-2b-it"),
    ("gemma3_text", _CAUSAL): ("google/gemma-3-1b-it",),
    ("phi", _CAUSAL): ("microsoft/phi-2",),
    ("phi3", _CAUSAL): ("microsoft/Phi-3-mini-4k-instruct",),
    ("opt", _CAUSAL): ("facebook/opt-125m", "facebook/opt-350m"),
    ("bloom", _CAUSAL): ("bigscience/bloom-560m",),
    ("gpt_neox", _CAUSAL): ("EleutherAI/pythia-70m", "EleutherAI/pythia-160m"),
    ("gpt2", _CAUSAL): ("gpt2", "openai-community/gpt2", "distilgpt2"),
    ("bert", _MASKED): ("bert-base-uncased", "google-bert/bert-base-uncased", "bert-base-cased"),
    ("distilbert", _MASKED): ("distilbert-base-uncased", "distilbert/distilbert-base-uncased"),
    ("roberta", _MASKED): ("roberta-base", "FacebookAI/roberta-base"),
    ("xlm-roberta", _MASKED): ("xlm-roberta-base",),
    ("deberta-v2", _MASKED): ("microsoft/deberta-v3-base",),
    ("modernbert", _MASKED): ("answerdotai/ModernBERT-base",),
    ("t5", _SEQ2SEQ): ("t5-small", "t5-base", "google-t5/t5-small", "google/flan-t5-small", "google/flan-t5-base"),
    ("bart", _SEQ2SEQ): ("facebook/bart-base", "facebook/bart-large-cnn"),
    ("whisper", _SPEECH): ("openai/whisper-tiny", "openai/whisper-small", "openai/whisper-large-v3"),
    ("wav2vec2", _CTC): ("facebook/wav2vec2-base-960h", "facebook/wav2vec2-base"),
    ("vit", _IMAGE): ("google/vit-base-patch16-224", "google/vit-base-patch16-224-in21k"),
    ("clip", _BASE): ("openai/clip-vit-base-patch32", "openai/clip-vit-large-patch14"),
}
CHECKPOINTS = {name: Architecture(*kind) for kind, names in _KNOWN.items() for name in names}
_LOWER = {name.lower(): one for name, one in CHECKPOINTS.items()}

# For other names: the first that is found in the last part of a name, in lower case. What has images beside text is
# made of too many parts to be guessed.
_NOT_GUESSED = r"(?:vl|vision|llava|omni|paligemma|pixtral|idefics|gguf|lora|adapter|diffusion|flux|sd-|-awq|-gptq|moe)"
_FAMILIES = {
    r"mixtral": ("mixtral", _CAUSAL),
    r"mistral|zephyr|openhermes": ("mistral", _CAUSAL),
    r"qwen-?3": ("qwen3", _CAUSAL),
    r"qwen-?2|qwq": ("qwen2", _CAUSAL),
    r"llama|smollm|vicuna|alpaca|yi-\d|deepseek-(?:llm|coder)": ("llama", _CAUSAL),
    r"gemma-?3": ("gemma3_text", _CAUSAL),
    r"gemma-?2-": ("gemma2", _CAUSAL),
    r"gemma": ("gemma", _CAUSAL),
    r"phi-?(?:3|4)": ("phi3", _CAUSAL),
    r"phi": ("phi", _CAUSAL),
    r"opt-\d": ("opt", _CAUSAL),
    r"bloom": ("bloom", _CAUSAL),
    r"pythia|gpt-?neox|dolly": ("gpt_neox", _CAUSAL),
    r"gpt-?neo": ("gpt_neo", _CAUSAL),
    r"gpt-?2|dialogpt": ("gpt2", _CAUSAL),
    r"falcon": ("falcon", _CAUSAL),
    r"whisper": ("whisper", _SPEECH),
    r"wav2vec2": ("wav2vec2", _CTC),
    r"modernbert": ("modernbert", _MASKED),
    r"deberta": ("deberta-v2", _MASKED),
    r"xlm-r": ("xlm-roberta", _MASKED),
    r"roberta": ("roberta", _MASKED),
    r"distilbert": ("distilbert", _MASKED),
    r"electra": ("electra", _MASKED),
    r"albert": ("albert", _MASKED),
    r"bert|minilm|bge-|e5-|gte-": ("bert", _MASKED),
    r"mt5": ("mt5", _SEQ2SEQ),
    r"t5": ("t5", _SEQ2SEQ),
    r"bart": ("bart", _SEQ2SEQ),
    r"nllb|m2m": ("m2m_100", _SEQ2SEQ),
    r"opus-mt": ("marian", _SEQ2SEQ),
    r"clip-": ("clip", _BASE),
    r"vit-|deit": ("vit", _IMAGE),
}


def architecture_of(name: str) -> Architecture | None:
    """Return the architecture of a checkpoint by its name, None if it is not known and its name does not tell."""
    known = _LOWER.get(name.lower())
    last = name.rstrip("/").rpartition("/")[2].lower()
    if known is None:
        known = next((one for key, one in _LOWER.items() if key.rpartition("/")[2] == last), None)
    if known is not None:
        return known
    if re.search(_NOT_GUESSED, last):
        return None
    for pattern, kind in _FAMILIES.items():
        if re.search(pattern, last):
            return Architecture(*kind, is_guess=True)
    return None
