"""Names of packages as people write them: as a project, as a module, or as a name in a list of versions."""

from __future__ import annotations

import re
import sys

from harness.model import normalized_name

# Modules whose project has another name.
_PROJECTS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "flash_attn": "flash-attn",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "jwt": "pyjwt",
    "llama_cpp": "llama-cpp-python",
    "lightning_fabric": "lightning",
    "OpenSSL": "pyopenssl",
    "pkg_resources": "setuptools",
    "pytorch_lightning": "pytorch-lightning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "attr": "attrs",
}
# Names in version lists that are not those of the project.
_SAID = {
    "pytorch": "torch",
    "hugging-face-hub": "huggingface-hub",
    "hf-hub": "huggingface-hub",
    "hub": "huggingface-hub",
    "huggingfacehub": "huggingface-hub",
    "sentencetransformers": "sentence-transformers",
    "sbert": "sentence-transformers",
    "scikit-learn": "scikit-learn",
    "sklearn": "scikit-learn",
    "transformer": "transformers",
    "dataset": "datasets",
    "bnb": "bitsandbytes",
    "unsloth zoo": "unsloth-zoo",
    "unslothzoo": "unsloth-zoo",
    "lightning-ai": "lightning",
    "flashattention": "flash-attn",
    "flash attention": "flash-attn",
    "liger": "liger-kernel",
    "onnx runtime": "onnxruntime",
    "pil": "pillow",
}
# Packages that a version list of this field names; what is not here counts only where its version is pinned.
KNOWN = frozenset(
    [
        "torch",
        "torchvision",
        "torchaudio",
        "torchao",
        "torchtune",
        "torchcodec",
        "triton",
        "transformers",
        "tokenizers",
        "accelerate",
        "peft",
        "trl",
        "datasets",
        "evaluate",
        "diffusers",
        "safetensors",
        "huggingface-hub",
        "optimum",
        "sentence-transformers",
        "sentencepiece",
        "tiktoken",
        "unsloth",
        "unsloth-zoo",
        "bitsandbytes",
        "xformers",
        "flash-attn",
        "deepspeed",
        "liger-kernel",
        "lightning",
        "pytorch-lightning",
        "timm",
        "vllm",
        "sglang",
        "auto-gptq",
        "gptqmodel",
        "autoawq",
        "hqq",
        "kernels",
        "setfit",
        "gradio",
        "gradio-client",
        "openai",
        "langchain",
        "numpy",
        "pandas",
        "scipy",
        "scikit-learn",
        "pyarrow",
        "fsspec",
        "pillow",
        "opencv-python",
        "librosa",
        "soundfile",
        "matplotlib",
        "tensorflow",
        "keras",
        "jax",
        "jaxlib",
        "flax",
        "onnx",
        "onnxruntime",
        "protobuf",
        "pydantic",
        "requests",
        "tqdm",
        "einops",
        "wandb",
        "mlflow",
        "compressed-tensors",
        "mistral-common",
        "hf-transfer",
        "hf-xet",
        "nltk",
        "spacy",
        "networkx",
        "numba",
        "cupy",
        "ray",
        "dask",
        "polars",
        "sentry-sdk",
        "aiohttp",
        "httpx",
        "fastapi",
        "pytest",
        "setuptools",
        "rouge-score",
        "sacrebleu",
        "jiwer",
        "seqeval",
    ]
)
# Their frames are in nearly every traceback of this field, so they are suspected last.
LAST_SUSPECTS = frozenset({"torch", "numpy", "pandas", "pyarrow", "triton", "fsspec", "tqdm", "pydantic", "setuptools"})
# Modules that are imported for training code without being in a version list.
_STANDARD = frozenset(sys.stdlib_module_names)

_ALIAS = "|".join(
    sorted(
        {re.escape(name).replace(r"\-", "[-_ ]?") for name in (*KNOWN, *_SAID, *map(normalized_name, _PROJECTS))},
        key=len,
        reverse=True,
    )
)
NAME = rf"(?<![\w/.@-])(?:hugging ?face )?(?P<name>{_ALIAS})(?![\w/]|-(?!\d))"


def project_named(text: str) -> str | None:
    """Return the project that a name in a list or a sentence means, None if it is not a known one."""
    name = normalized_name(text.strip("`*'\" ").replace(" ", "-"))
    said = {normalized_name(key.replace(" ", "-")): value for key, value in _SAID.items()}
    name = said.get(name, name)
    return name if name in KNOWN else None


def project_of_module(module: str) -> str | None:
    """Return the project that a top-level module belongs to, by name; None for the standard library."""
    top = module.partition(".")[0]
    if top in _STANDARD or top.startswith("_") or top in ("__main__", "google"):
        return None
    return _PROJECTS.get(top, normalized_name(top))


def project_of_file(path: str) -> str | None:
    """Return the project of a file in a traceback, None if it is not an installed one."""
    text = path.replace("\\", "/")
    match = re.search(r"(?:site|dist)-packages/([A-Za-z0-9_]+)(?:/|\.py|$)", text)
    if match is None:
        # An editable install, or a checkout: .../transformers/src/transformers/trainer.py
        match = re.search(r"/([A-Za-z0-9_]+)/src/\1/", text) or re.search(r"/src/([A-Za-z0-9_]+)/", text)
        if match is None or project_of_module(match[1]) not in KNOWN:
            return None
    return project_of_module(match[1])
