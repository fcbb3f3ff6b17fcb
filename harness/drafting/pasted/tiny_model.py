"""Tiny random models with their tokenizers, made of the config classes of the installed transformers."""

import importlib
import inspect
import json
import pathlib
import tempfile
from typing import Any

MODELS: dict[str, Any] = {}


def tiny_model(name: str) -> str:
    """Return a folder with a random model of the architecture of `name`, which loads as the checkpoint does."""
    if name in _MADE:
        return _MADE[name]
    transformers: Any = importlib.import_module("transformers")
    torch: Any = importlib.import_module("torch")
    kind, auto_class = MODELS[name]
    # The name stays in that of the folder, because some code looks at it.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tiny-", dir=pathlib.Path.cwd())) / name.rstrip("/").split("/")[-1]
    folder.mkdir()
    ids = _write_tokenizer(folder, kind)
    torch.manual_seed(0)
    config = _tiny_config(transformers.AutoConfig, kind, ids)
    getattr(transformers, auto_class).from_config(config).save_pretrained(folder)
    _write_processor(transformers, folder, kind)
    _MADE[name] = str(folder)
    return str(folder)


_MADE: dict[str, str] = {}
_TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)
_SMALL = {
    64: ("hidden_size", "d_model", "n_embd", "dim", "word_embed_proj_dim", "embedding_size", "projection_dim"),
    128: (
        *("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner"),
        *("moe_intermediate_size", "hidden_dim"),
    ),
    2: (
        *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers"),
        *("decoder_layers", "num_key_value_heads", "num_experts_per_tok"),
    ),
    4: (
        *("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
        *("decoder_attention_heads", "num_local_experts", "num_experts"),
    ),
    16: ("head_dim", "d_kv", "num_conv_pos_embedding_groups"),
    512: ("max_position_embeddings", "n_positions", "n_ctx", "max_target_positions"),
}


def _tiny_config(auto: Any, kind: str, ids: dict[str, int]) -> Any:
    """The config of a model type, with small sizes for those that it has."""
    standard = auto.for_model(kind)
    changed = _small(standard, len(ids))
    for part in ("text_config", "vision_config"):
        nested = getattr(standard, part, None)
        if nested is not None and hasattr(nested, "to_dict"):
            changed[part] = {**_small(nested, len(ids)), **({"image_size": 32} if "vision" in part else {})}
    if kind == "wav2vec2":
        changed.update(conv_dim=[32] * 7, num_feat_extract_layers=7)
    if kind == "gpt_neo":
        changed["attention_types"] = [[["global", "local"], 1]]
    if kind == "vit":
        changed.update(image_size=32, patch_size=16)
    config = auto.for_model(kind, **changed)
    for part in [config, *filter(None, (getattr(config, one, None) for one in ("text_config",)))]:
        for key, token in (("bos", "<s>"), ("eos", "</s>"), ("pad", "<pad>"), ("decoder_start", "<s>")):
            if key != "decoder_start" or getattr(config, "is_encoder_decoder", False):
                setattr(part, key + "_token_id", ids[token])
        for key in ("suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id", "forced_eos_token_id"):
            if getattr(part, key, None) is not None:
                setattr(part, key, [] if key.endswith("tokens") else None)
    return config


def _small(config: Any, vocabulary: int) -> dict[str, Any]:
    has = set(getattr(config, "attribute_map", {}).values()) | set(config.to_dict())
    has |= set(inspect.signature(type(config).__init__).parameters)
    changed = {name: size for size, names in _SMALL.items() for name in names if name in has}
    # A size of None is derived from others.
    changed = {name: size for name, size in changed.items() if getattr(config, name, None) is not None}
    if "vocab_size" in has:
        changed["vocab_size"] = vocabulary
    return changed


def _write_tokenizer(folder: pathlib.Path, kind: str) -> dict[str, Any]:
    """Write a tokenizer of single bytes, or of letters for those with WordPiece; returns ids by token."""
    tokenizers: Any = importlib.import_module("tokenizers")
    is_word_piece = kind in ("bert", "distilbert", "electra")
    special = ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
    special += ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>"]
    special += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"]
    special += ["<|notimestamps|>"]
    if is_word_piece:
        letters = [chr(number) for number in range(33, 127)]
        letters += ["##" + letter for letter in letters]
    else:
        letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    ids = {token: number for number, token in enumerate([*special, *letters])}
    if is_word_piece:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab=ids, unk_token=special[5]))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = tokenizers.decoders.WordPiece()
        pair = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=pair
        )
    else:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=[]))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(one, special=True, normalized=False) for one in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    (folder / "normalizer.json").write_text("{}", encoding="utf-8")
    named = (
        ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]") if is_word_piece else ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
    )
    settings = {
        "tokenizer_class": "WhisperTokenizer" if kind == "whisper" else "PreTrainedTokenizerFast",
        "model_max_length": 448 if kind == "whisper" else 512,
        **dict(zip(("bos_token", "eos_token", "pad_token", "unk_token", "mask_token"), named)),  # noqa: B905 - Python 3.9
        **({"cls_token": "[CLS]", "sep_token": "[SEP]"} if is_word_piece else {"chat_template": _TEMPLATE}),
        **({} if is_word_piece else {"model_input_names": ["input_ids", "attention_mask"]}),
        "added_tokens_decoder": {
            str(ids[token]): {
                "content": token,
                "special": True,
                **dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False),
            }
            for token in special
        },
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return {**ids, "<s>": ids[named[0]], "</s>": ids[named[1]], "<pad>": ids[named[2]]}


def _write_processor(transformers: Any, folder: pathlib.Path, kind: str) -> None:
    """Write what prepares audio or images, for models of these."""
    if kind == "whisper":
        # 30 seconds, as every Whisper takes: 3000 frames, halved by the second convolution.
        transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)
        path = folder / "generation_config.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        settings["lang_to_id"] = {"<|en|>": ids["<|en|>"], "<|de|>": ids["<|de|>"]}
        settings["task_to_id"] = {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]}
        settings.update(is_multilingual=True, no_timestamps_token_id=ids["<|notimestamps|>"])
        path.write_text(json.dumps(settings), encoding="utf-8")
    elif kind == "wav2vec2":
        transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    elif kind == "clip":
        size = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
        transformers.CLIPImageProcessor(**size).save_pretrained(folder)
    elif kind == "vit":
        transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
