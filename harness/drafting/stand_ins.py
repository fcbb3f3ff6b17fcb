"""Puts tiny models and generated data in place of what a script downloads, by editing its text; nothing is run."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from harness.drafting.scripts import text_in, tree_of
from harness.drafting.source import parses
from harness.drafting.versions import FIELD

_LOADS = re.compile(
    r"(?:.*\.)?(?:from_pretrained|pipeline|SentenceTransformer|CrossEncoder|LLM|\w*Trainer|from_hub|load_model)"
)
_MODEL_WORDS = frozenset(FIELD["model-words"])
_MODEL_NAME = re.compile(
    r"(?:.*_)?(?:model|checkpoint|ckpt|tokenizer|pretrained|base|backbone)(?:_.*)?|mid|repo(?:_id)?", re.I
)
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NO_MODEL = re.compile(
    r"\.(?:py|txt|json|jsonl|csv|parquet|wav|mp3|png|jpg|yaml|yml|safetensors|bin|pt|gguf|ipynb)$", re.I
)
_SCHEDULERS = re.compile(r"(?:diffusers\.)?\w+Scheduler\.from_pretrained")
_OF_LOADING = frozenset(FIELD["loading-words"])
_DATA_SETS = re.compile(r"(?:datasets\.)?(?:load_dataset|load_from_disk)")
_SOUNDS = re.compile(r"(?:librosa\.load|sf\.read|soundfile\.read|torchaudio\.load)")
_IMAGES = re.compile(r"(?:(?:PIL\.)?Image\.open|load_image)")
_DECODES = re.compile(r".*\.cast_column\([^,]+, (?:datasets\.)?Audio\(.*\)\)", re.S)
_NOT_COLUMNS = frozenset(FIELD["not-columns"])
_TOKENIZED = ("input_ids", "attention_mask", "token_type_ids")
_ROW_NAMES = re.compile(
    r"(?:.*_)?(?:example|sample|row|item|batch|record|data|dataset|datasets|ds|elem|x|e|ex|inputs?)s?(?:_.*)?|d|b", re.I
)
_GPU_OPTIMIZERS = ("adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit", "paged_adamw_32bit", "lion_8bit")
# What has images beside text is made of too many parts to be guessed.
_NOT_GUESSED = re.compile(
    r"vl|vision|llava|omni|paligemma|pixtral|idefics|gguf|lora|adapter|diffusion|flux|sd-|-awq|-gptq|moe"
)


@frozen
class Architecture:
    """A model that can be made small and random: its `model_type`, and the class of transformers that makes it."""

    model_type: str
    auto_class: str
    is_guess: bool = False


_CHECKPOINTS = {
    name.rpartition("/")[2].lower(): Architecture(model_type, told["class"])
    for model_type, told in FIELD["architectures"].items()
    for name in told["checkpoints"]
}


def architecture_of(name: str) -> Architecture | None:
    """Return the architecture of a checkpoint by its name, None if it is not known and its name does not tell."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    known = _CHECKPOINTS.get(last)
    if known is not None or _NOT_GUESSED.search(last):
        return known
    kinds = (kind for pattern, kind in FIELD["families"].items() if re.search(pattern, last))
    return next((Architecture(kind[0], kind[1], is_guess=True) for kind in kinds), None)


@frozen
class StandIns:
    """A script with stand-ins: `code`, what goes `above` it, what was `replaced` (in words), and the `unknown` models.

    `projects` are those that the stand-ins need.
    """

    code: str
    above: str = ""
    replaced: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


_Edit = tuple[ast.expr, str]  # a part of a script, and what replaces it


def with_stand_ins(code: str) -> StandIns:
    """Return a script (valid Python) with stand-ins for the models, data, audio and images that it downloads."""
    tree = tree_of(code)
    schedulers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_scheduler(node)]
    inside = {id(one) for node in schedulers for one in ast.walk(node)}
    models = [node for node in _model_names(tree) if id(node) not in inside]
    names = dict.fromkeys(map(_text, models))
    known = {name: found for name in names if (found := architecture_of(name)) is not None}
    unknown = tuple(name for name in names if name not in known)
    slow = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in _GPU_OPTIMIZERS]
    edits, columns, kinds = _data_edits(tree, code)
    edits += [(node, f"tiny_model({_source(code, node)})") for node in models if _text(node) in known]
    edits += [(node, '"adamw_torch"') for node in slow]
    edits += [(node, _with_its_defaults(node)) for node in schedulers]
    changed = _applied(code, edits)
    if parses(changed) is not None:
        return StandIns(code, unknown=unknown)
    above = ""
    if known:
        told = {name: (one.model_type, one.auto_class) for name, one in known.items()}
        above += _pasted("tiny_model", "MODELS", told)
    if kinds:
        above += _pasted("generated_data", "COLUMNS", columns)
    replaced = [_model_words(name, one) for name, one in known.items()]
    replaced += [f"{what}: generated" for what in kinds]
    replaced += [f"{name}: adamw_torch, because it needs a GPU" for name in dict.fromkeys(map(_text, slow))]
    replaced += [f"{ast.unparse(node.func)}: made with its own settings" for node in schedulers]
    return StandIns(changed, above, tuple(replaced), unknown, ("transformers", "torch") if known else ())


def _is_scheduler(node: ast.Call) -> bool:
    """Whether a call loads a scheduler of diffusers, which is made of settings alone."""
    return _SCHEDULERS.fullmatch(ast.unparse(node.func)) is not None


def _with_its_defaults(node: ast.Call) -> str:
    """The call that makes a scheduler with its own settings, and those that the script gives."""
    given = [one for one in node.keywords if one.arg not in _OF_LOADING]
    made = ast.unparse(node.func).removesuffix(".from_pretrained")
    return f"{made}({', '.join(map(ast.unparse, given))})"


def _text(node: ast.Constant) -> str:
    return str(node.value)


def _model_words(name: str, one: Architecture) -> str:
    guess = ", by its name: check it" if one.is_guess else ""
    return f"{name}: a tiny random model of the same architecture ({one.model_type}{guess})"


def _model_names(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the constants that name a model: in a call that loads one, or assigned to a name that says so."""
    for node in map(_may_name_model, ast.walk(tree)):
        yield from (one for one in node if isinstance(one, ast.Constant) and _is_model(one))


def _may_name_model(node: ast.AST) -> list[ast.expr | None]:
    """Return the parts of a node that name a model, if they are the text of a name."""
    match node:
        case ast.Call():
            name = ast.unparse(node.func)
            at = 1 if name.endswith("pipeline") else 0  # its first argument is the task
            given: list[ast.expr | None] = list(node.args[at : at + 1]) if _LOADS.fullmatch(name) else []
            words = _MODEL_WORDS | ({"default"} if node.args and "model" in (text_in(node.args[0]) or "") else set())
            return [*given, *(keyword.value for keyword in node.keywords if keyword.arg in words)]
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return [node.value] if any(isinstance(t, ast.Name) and _MODEL_NAME.fullmatch(t.id) for t in targets) else []
        case ast.FunctionDef():
            return [*node.args.defaults]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return [value for key, value in pairs if text_in(key) in _MODEL_WORDS]
        case _:
            return []


def _is_model(node: ast.Constant) -> bool:
    """Whether a constant can name a checkpoint or a folder with one."""
    text = text_in(node) or ""
    if not text or len(text) > 150 or _NO_MODEL.search(text) or " " in text:
        return False
    is_name = _HUB_NAME.fullmatch(text) is not None or architecture_of(text) is not None
    return is_name or text.startswith(("./", "/", "~/", "../"))


def _data_edits(tree: ast.Module, code: str) -> tuple[list[_Edit], dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the edits of data sets, audio and images; the columns by data set; and what was replaced, in words."""
    edits: list[_Edit] = []
    names: list[str] = []
    told: dict[str, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if _DATA_SETS.fullmatch(name):
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "path"), None)
            names.append(text_in(first) or "")
            edits.append((node.func, "generated_dataset"))
            told[f"data set {names[-1]}".strip()] = None
        elif _SOUNDS.fullmatch(name):
            edits.append((node.func, "generated_audio"))
            told["audio"] = None
        elif _IMAGES.fullmatch(name):
            edits.append((node, "generated_image()"))
            told["image"] = None
        elif isinstance(node.func, ast.Attribute) and _DECODES.fullmatch(ast.unparse(node)):
            edits.append((node, _source(code, node.func.value)))
            told["audio"] = None
    used = _columns(tree)
    columns = {name: _known_columns(name, used) for name in names if name}
    if names:
        columns[""] = used or ("text",)
    return edits, columns, tuple(told)


def _known_columns(name: str, used: tuple[str, ...]) -> tuple[str, ...]:
    last = name.rpartition("/")[2].lower()
    known = next((columns for key, columns in FIELD["columns"].items() if key in last), ())
    return tuple(dict.fromkeys((*known, *(() if known else used)))) or ("text",)


def _columns(tree: ast.Module) -> tuple[str, ...]:
    """Return the names of the columns that a script reads."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant):
            base = node.value
            while isinstance(base, ast.Attribute) or (isinstance(base, ast.Subscript) and not _names_column(base)):
                base = base.value
            key = node.slice.value
            if isinstance(base, ast.Name) and _ROW_NAMES.fullmatch(base.id) and isinstance(key, str):
                found[key] = None
        elif isinstance(node, ast.keyword) and node.arg in ("dataset_text_field", "text_column", "input_columns"):
            found.update(dict.fromkeys(_text(one) for one in ast.walk(node.value) if isinstance(one, ast.Constant)))
    names = [name for name in found if name not in _NOT_COLUMNS]
    return tuple(name for name in names if name not in _TOKENIZED) or tuple(names)


def _names_column(node: ast.Subscript) -> bool:
    return (text_in(node.slice) or "train") not in _NOT_COLUMNS


def _source(code: str, node: ast.expr) -> str:
    return ast.get_source_segment(code, node) or ""


def _applied(code: str, edits: list[_Edit]) -> str:
    """Return the code with these replacements, without those inside another."""
    data = code.encode()
    starts = list(itertools.accumulate(map(len, data.splitlines(keepends=True)), initial=0))
    spans = [
        (
            starts[node.lineno - 1] + node.col_offset,
            starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0),
            text,
        )
        for node, text in edits
    ]
    parts, at = [], 0
    for start, end, text in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            parts += [data[at:start], text.encode()]
            at = end
    return b"".join([*parts, data[at:]]).decode()


def _pasted(name: str, table: str, values: Mapping[str, tuple[str, ...]]) -> str:
    """Return the source of a module to paste, with its docstring as a comment and the values of its table."""
    text = (Path(__file__).parent / "pasted" / f"{name}.py").read_text(encoding="utf-8")
    docstring, _, rest = text.removeprefix('"""').partition('"""\n')
    lines = "".join(
        f"    {json.dumps(key)}: ({json.dumps(some)[1:-1]}{',' * (len(some) == 1)}),\n" for key, some in values.items()
    )
    rest = rest.replace(f"{table}: dict[str, Any] = {{}}\n", f"{table}: dict[str, Any] = {{\n{lines}}}\n")
    return f"# --- stand-ins: {docstring}\n{rest.strip()}\n# --- end of the stand-ins\n\n"
