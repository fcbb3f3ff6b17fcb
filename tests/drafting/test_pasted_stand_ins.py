"""What is pasted into a draft runs in a plain interpreter: tiny models and generated data, made of what is installed.

The libraries are small fakes beside the script; they keep what they are given, and write it as JSON.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import harness.drafting.pasted as pasted
from harness.drafting.stand_ins import with_stand_ins

TRANSFORMERS = """
import json, pathlib

LANGUAGE = dict(
    hidden_size=4096, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=32, head_dim=128,
    max_position_embeddings=40960, vocab_size=151936, n_inner=None, rope_theta=1e6, bos_token_id=151643,
)
VISION = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, image_size=224, patch_size=32)
STANDARD = {
    "qwen3": LANGUAGE,
    "bert": dict(hidden_size=768, num_hidden_layers=12, vocab_size=30522, decoder_start_token_id="unchanged"),
    "t5": dict(d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, vocab_size=32128, is_encoder_decoder=True),
    "gpt_neo": dict(hidden_size=2048, num_layers=24, attention_types=[[["global", "local"], 12]], vocab_size=50257),
    "whisper": dict(
        d_model=384, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=1536, vocab_size=51865, num_mel_bins=80,
        is_encoder_decoder=True, suppress_tokens=[1, 2], begin_suppress_tokens=[220], forced_eos_token_id=50257,
    ),
    "wav2vec2": dict(hidden_size=768, conv_dim=[512] * 7, num_feat_extract_layers=7, vocab_size=32),
    "vit": VISION,
    "clip": dict(projection_dim=512, text_config=LANGUAGE, vision_config=VISION),
}

class Config:
    def __init__(self, kind, **given):
        self.model_type = kind
        for name, value in {**STANDARD[kind], **given}.items():
            if name.endswith("_config"):
                value = Part({**STANDARD[kind][name], **value})
            setattr(self, name, value)

    def to_dict(self):
        return {name: value.to_dict() if isinstance(value, Part) else value for name, value in vars(self).items()}

class Part:
    def __init__(self, values):
        self.__dict__.update(values)

    def to_dict(self):
        return dict(vars(self))

class AutoConfig:
    for_model = staticmethod(lambda kind, **given: Config(kind, **given))

class Kept:
    def __init__(self, **given):
        self.given = given

    def save_pretrained(self, folder):
        text = json.dumps({"class": type(self).__name__, **self.given})
        pathlib.Path(folder, "preprocessor_config.json").write_text(text)

class WhisperFeatureExtractor(Kept): ...
class Wav2Vec2FeatureExtractor(Kept): ...
class CLIPImageProcessor(Kept): ...
class ViTImageProcessor(Kept): ...

class Model:
    def __init__(self, config):
        self.config = config

    @classmethod
    def from_config(cls, config):
        return cls(config)

    def save_pretrained(self, folder):
        told = {"class": type(self).__name__, **self.config.to_dict()}
        pathlib.Path(folder, "config.json").write_text(json.dumps(told))
        if self.config.model_type == "whisper":
            pathlib.Path(folder, "generation_config.json").write_text("{}")

class AutoModel(Model): ...
class AutoModelForCausalLM(Model): ...
class AutoModelForCTC(Model): ...
class AutoModelForImageClassification(Model): ...
class AutoModelForMaskedLM(Model): ...
class AutoModelForSeq2SeqLM(Model): ...
class AutoModelForSpeechSeq2Seq(Model): ...
"""
TOKENIZERS = """
import json, pathlib
from types import SimpleNamespace

class Made(SimpleNamespace):
    alphabet = staticmethod(lambda: ["b", "a"])

models = Made(BPE=Made, WordPiece=Made)
pre_tokenizers = Made(ByteLevel=Made, BertPreTokenizer=Made)
decoders = Made(ByteLevel=Made, WordPiece=Made)
processors = Made(TemplateProcessing=Made)
AddedToken = lambda text, special, normalized: text

class Tokenizer:
    post_processor = None

    def __init__(self, model):
        self.vocab = model.vocab

    def add_special_tokens(self, tokens):
        self.special = tokens

    def save(self, path):
        pair = self.post_processor and self.post_processor.special_tokens
        pathlib.Path(path).write_text(json.dumps({"vocab": self.vocab, "special": self.special, "pair": pair}))
"""
DATASETS = """
def load_dataset(*_, **__):
    raise OSError("no network")

class Dataset(dict):
    from_dict = classmethod(lambda cls, columns: cls(columns))
    to_iterable_dataset = lambda self: IterableDataset(self)

class IterableDataset(Dataset): ...
class DatasetDict(dict): ...
class IterableDatasetDict(dict): ...
"""
IMAGES = "def fromarray(pixels):\n    return f'{pixels.shape} {pixels.dtype}'\n"


@pytest.fixture
def ran(tmp_path):
    """Run a script with its stand-ins beside the fakes; returns what it printed as JSON."""
    fakes = tmp_path / "fakes"
    torch = "def manual_seed(number): ...\n"
    texts = {"transformers": TRANSFORMERS, "tokenizers": TOKENIZERS, "datasets": DATASETS, "torch": torch}
    for name, text in {**texts, "PIL/__init__": "", "PIL/Image": IMAGES}.items():
        (fakes / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (fakes / f"{name}.py").write_text(text, encoding="utf-8")

    def run(code):
        found = with_stand_ins(code)
        (tmp_path / "script.py").write_text(found.above + found.code, encoding="utf-8")
        words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(fakes)!r}); import script"]
        ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return run


def read(folder, name):
    return json.loads(Path(folder, name).read_text(encoding="utf-8"))


@pytest.fixture
def made(ran, tmp_path):
    """Make tiny models of checkpoints; returns their folders."""

    def make(*names):
        loads = "".join(f"    AutoModel.from_pretrained({name!r}),\n" for name in names)
        folders = ran(
            "import json\n\n\nclass AutoModel:\n    from_pretrained = staticmethod(str)\n\n\n"
            f"made = [\n{loads}{loads}]\nprint(json.dumps(made))\n"
        )
        half = len(names)
        assert folders[:half] == folders[half:]  # each is made once
        assert all(Path(folder).is_relative_to(tmp_path) for folder in folders)
        return folders[:half]

    return make


def test_a_model_has_the_architecture_of_its_checkpoint_and_small_sizes(made):
    (folder,) = made("Qwen/Qwen3-0.6B")
    assert Path(folder).name == "Qwen3-0.6B"
    config, ids = read(folder, "config.json"), read(folder, "vocab.json")
    assert (config["class"], config["model_type"]) == ("AutoModelForCausalLM", "qwen3")
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "vocab_size": len(ids),
    }
    assert {name: config[name] for name in sizes} == sizes
    assert (config["n_inner"], config["rope_theta"]) == (None, 1e6)  # one is derived from others, one is no size
    assert "num_layers" not in config  # this model type has no such setting
    tokens = {f"{name}_token_id": ids[token] for name, token in (("bos", "<s>"), ("eos", "</s>"), ("pad", "<pad>"))}
    assert {name: config[name] for name in tokens} == tokens
    assert "decoder_start_token_id" not in config


def test_a_tokenizer_of_bytes_has_a_chat_template_and_one_of_words_has_pairs(made):
    bytes_folder, words_folder = made("Qwen/Qwen3-0.6B", "bert-base-uncased")
    for folder, named, letters in (
        (bytes_folder, ("<s>", "</s>", "<pad>", "<unk>", "<mask>"), {"a", "b"}),
        (words_folder, ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"), {"a", "##a"}),
    ):
        ids, settings = read(folder, "vocab.json"), read(folder, "tokenizer_config.json")
        assert read(folder, "tokenizer.json")["vocab"] == ids
        assert list(ids.values()) == list(range(len(ids)))
        assert letters <= set(ids)
        assert Path(folder, "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == list(ids)
        kinds = ("bos", "eos", "pad", "unk", "mask")
        assert tuple(settings[f"{kind}_token"] for kind in kinds) == named
        assert read(folder, "config.json")["pad_token_id"] == ids[named[2]]
        added = {token["content"]: int(number) for number, token in settings["added_tokens_decoder"].items()}
        assert set(named) <= set(added) == set(read(folder, "tokenizer.json")["special"])
        assert all(ids[token] == number for token, number in added.items())
    assert "chat_template" in read(bytes_folder, "tokenizer_config.json")
    settings, whole = read(words_folder, "tokenizer_config.json"), read(words_folder, "tokenizer.json")
    assert (settings["cls_token"], settings["sep_token"]) == ("[CLS]", "[SEP]")
    assert whole["pair"] == [["[CLS]", whole["vocab"]["[CLS]"]], ["[SEP]", whole["vocab"]["[SEP]"]]]


def test_models_of_audio_and_images_have_what_prepares_their_inputs(made):
    whisper, wav2vec2, vit, clip = made(
        "openai/whisper-tiny", "facebook/wav2vec2-base", "google/vit-base-patch16-224", "openai/clip-vit-base-patch32"
    )
    prepares = {folder: read(folder, "preprocessor_config.json") for folder in (whisper, wav2vec2, vit, clip)}
    assert [told["class"] for told in prepares.values()] == [
        "WhisperFeatureExtractor",
        "Wav2Vec2FeatureExtractor",
        "ViTImageProcessor",
        "CLIPImageProcessor",
    ]
    config, ids = read(whisper, "config.json"), read(whisper, "vocab.json")
    assert prepares[whisper]["feature_size"] == config["num_mel_bins"]
    # A list of tokens to suppress names those of the real vocabulary.
    assert (config["suppress_tokens"], config["begin_suppress_tokens"], config["forced_eos_token_id"]) == ([], [], None)
    assert config["decoder_start_token_id"] == ids["<s>"]
    generation = read(whisper, "generation_config.json")
    assert generation["lang_to_id"] == {token: ids[token] for token in ("<|en|>", "<|de|>")}
    assert generation["no_timestamps_token_id"] == ids["<|notimestamps|>"]
    assert read(whisper, "tokenizer_config.json")["tokenizer_class"] == "WhisperTokenizer"
    config = read(wav2vec2, "config.json")
    assert len(config["conv_dim"]) == config["num_feat_extract_layers"]
    config = read(vit, "config.json")
    assert config["image_size"] == prepares[vit]["size"]["height"] >= config["patch_size"]
    config = read(clip, "config.json")
    assert (config["text_config"]["hidden_size"], config["vision_config"]["hidden_size"]) == (64, 64)
    assert config["vision_config"]["image_size"] == prepares[clip]["crop_size"]["height"]
    assert config["text_config"]["vocab_size"] == len(read(clip, "vocab.json"))
    assert config["text_config"]["pad_token_id"] == read(clip, "vocab.json")["<pad>"]


def test_settings_that_depend_on_a_size_are_changed_with_it(made):
    neo, t5, bert = (
        read(each, "config.json") for each in made("EleutherAI/gpt-neo-125m", "t5-small", "bert-base-cased")
    )
    assert sum(times for _, times in neo["attention_types"]) * 2 == neo["num_layers"] == 2
    assert (t5["class"], t5["d_model"], t5["d_kv"], t5["num_layers"]) == ("AutoModelForSeq2SeqLM", 64, 16, 2)
    assert t5["decoder_start_token_id"] == t5["bos_token_id"]
    assert bert["decoder_start_token_id"] == "unchanged"  # it has no decoder


DATA = """
import json
from datasets import load_dataset

whole = load_dataset("imdb")
one = load_dataset("own/rows", split="train")
streamed = load_dataset("own/rows", split="train", streaming=True)
parts = load_dataset("own/rows", split=["train[:10%]", "test"])
every = load_dataset("own/rows", streaming=True)
for row in ():
    used = row["answers"], row["messages"], row["score"], row["tokens"], row["ner_tags"]
    used += row["id"], row["translation"]
print(json.dumps([
    {name: [type(part).__name__, part] for name, part in whole.items()}, one,
    [type(each).__name__ for each in (whole, one, streamed, *parts, every, every["train"])],
]))
"""


def test_generated_data_have_the_columns_that_a_script_uses(ran):
    whole, one, kinds = ran(DATA)
    assert kinds == [
        "DatasetDict",
        "Dataset",
        "IterableDataset",
        "Dataset",
        "Dataset",
        "IterableDatasetDict",
        "IterableDataset",
    ]
    assert list(whole) == ["train", "validation", "test"]
    kind, rows = whole["train"]
    assert (kind, set(rows)) == ("Dataset", {"text", "label"})  # those of the real data set
    assert set(rows["label"]) == {0, 1}
    assert set(one) == {"answers", "messages", "score", "tokens", "ner_tags", "id", "translation"}
    assert {len(values) for values in one.values()} == {len(rows["text"])} == {64}
    assert one["answers"][0]["text"] == ["few"]
    assert [turn["role"] for turn in one["messages"][0]] == ["user", "assistant"]
    assert all(0 <= score < 1 for score in one["score"])
    assert all(len(tags) == len(words) for tags, words in zip(one["ner_tags"], one["tokens"], strict=True))
    assert one["id"][:2] == ["0", "1"]
    assert one["translation"][0]["en"].startswith("row number 0 ")


MEDIA = """
import json
from PIL import Image
from datasets import load_dataset

spoken = load_dataset("librispeech_asr", split="train")
pictures = load_dataset("beans", split="train")
tokenized = load_dataset("own/rows", split="train")
sound, rate = librosa.load("a.wav")
shown = Image.open("a.png")
for row in ():
    used = row["input_ids"], row["attention_mask"]
print(json.dumps([spoken, pictures, tokenized, len(sound), rate, shown]))
"""


def test_generated_audio_and_images_need_no_file(ran):
    spoken, pictures, tokenized, length, rate, shown = ran(MEDIA)
    assert length == rate == 16_000
    assert set(spoken) == {"audio", "text"}
    assert len(spoken["audio"]) == len(spoken["text"]) == 16
    assert (len(spoken["audio"][3]["array"]), spoken["audio"][3]["sampling_rate"]) == (16_000, 16_000)
    assert spoken["audio"][0]["array"] != spoken["audio"][1]["array"]
    assert set(pictures["image"]) == {shown} == {"(64, 64, 3) uint8"}
    assert set(pictures["labels"]) == {0, 1}
    assert {len(ids) for ids in tokenized["input_ids"]} == {16}
    assert {one for mask in tokenized["attention_mask"] for one in mask} == {1}


@pytest.mark.parametrize("path", sorted(Path(pasted.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_it_needs_no_newer_python_than_what_it_is_pasted_into_and_imports_nothing_else(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
