"""Puts tiny models and generated data in place of what a script downloads, by editing its text; nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
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
    name.lower(): Architecture(model_type, told["class"])
    for model_type, told in FIELD["architectures"].items()
    for name in told["checkpoints"]
}


def architecture_of(name: str) -> Architecture | None:
    """Return the architecture of a checkpoint by its name, None if it is not known and its name does not tell."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    known = _CHECKPOINTS.get(name.lower()) or next(
        (one for key, one in _CHECKPOINTS.items() if key.rpartition("/")[2] == last), None
    )
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


@frozen
class _Edit:
    """A replacement between two positions in the UTF-8 bytes of a script."""

    start: int
    end: int
    text: str


def with_stand_ins(code: str) -> StandIns:
    """Return a script (valid Python) with stand-ins for the models, data, audio and images that it downloads."""
    tree = tree_of(code)
    starts = _line_starts(code)
    schedulers = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_scheduler(node)]
    inside = {id(one) for node in schedulers for one in ast.walk(node)}
    models = {id(node): node for node in _model_names(tree) if id(node) not in inside}
    known = {_text(node): found for node in models.values() if (found := architecture_of(_text(node))) is not None}
    edits = [
        _edit(node, f"tiny_model({_source(code, node, starts)})", starts)
        for node in models.values()
        if _text(node) in known
    ]
    data, columns, kinds = _data_edits(tree, code, starts)
    edits += data
    slow = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in _GPU_OPTIMIZERS]
    edits += [_edit(node, '"adamw_torch"', starts) for node in slow]
    edits += [_edit(node, _with_its_defaults(node), starts) for node in schedulers]
    if not edits:
        return StandIns(code, unknown=_unknown(models.values(), known))
    changed = _applied(code, edits)
    if parses(changed) is not None:
        return StandIns(code, unknown=_unknown(models.values(), known))
    above = ""
    if known:
        table = "".join(f'    "{name}": ("{one.model_type}", "{one.auto_class}"),\n' for name, one in known.items())
        above += _pasted("tiny_model").replace(
            "MODELS: dict[str, Any] = {}\n", f"MODELS: dict[str, Any] = {{\n{table}}}\n"
        )
    if kinds:
        table = "".join(f"    {name!r}: {names!r},\n" for name, names in columns.items())
        above += _pasted("generated_data").replace(
            "COLUMNS: dict[str, Any] = {}\n", f"COLUMNS: dict[str, Any] = {{\n{table}}}\n"
        )
    replaced = [_model_words(name, one) for name, one in known.items()]
    replaced += [f"{what}: generated" for what in kinds]
    replaced += [f"{name}: adamw_torch, because it needs a GPU" for name in dict.fromkeys(map(_text, slow))]
    replaced += [f"{ast.unparse(node.func)}: made with its own settings" for node in schedulers]
    projects = ("transformers", "torch") if known else ()
    return StandIns(changed, above, tuple(replaced), _unknown(models.values(), known), projects)


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


def _unknown(nodes: Iterable[ast.Constant], known: dict[str, Architecture]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(node) for node in nodes if _text(node) not in known))


def _model_names(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the constants that name a model: in a call that loads one, or assigned to a name that says so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            loads = _LOADS.fullmatch(ast.unparse(node.func)) is not None
            if loads and node.args and _is_model(node.args[0]) is not None:
                is_task = ast.unparse(node.func).endswith("pipeline")
                yield from filter(None, [_is_model(node.args[1])] if is_task and len(node.args) > 1 else [])
                yield from [] if is_task else filter(None, [_is_model(node.args[0])])
            for keyword in node.keywords:
                if keyword.arg in _MODEL_WORDS or (keyword.arg == "default" and _names_model(node)):
                    yield from filter(None, [_is_model(keyword.value)])
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(isinstance(t, ast.Name) and _MODEL_NAME.fullmatch(t.id) for t in targets):
                yield from filter(None, [_is_model(node.value)])
        elif isinstance(node, ast.FunctionDef):
            yield from filter(None, map(_is_model, node.args.defaults))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in _MODEL_WORDS:
                    yield from filter(None, [_is_model(value)])


def _names_model(node: ast.Call) -> bool:
    return "model" in ((text_in(node.args[0]) if node.args else None) or "")


def _is_model(node: ast.expr) -> ast.Constant | None:
    """Return the constant if it can name a checkpoint or a folder with one."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or len(node.value) > 150:
        return None
    text = node.value
    if _NO_MODEL.search(text) or " " in text or not text:
        return None
    is_name = _HUB_NAME.fullmatch(text) is not None or architecture_of(text) is not None
    return node if is_name or text.startswith(("./", "/", "~/", "../")) else None


def _data_edits(
    tree: ast.Module, code: str, starts: list[int]
) -> tuple[list[_Edit], dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the edits of data sets, audio and images; the columns by data set; and what was replaced, in words."""
    edits: list[_Edit] = []
    names: list[str] = []
    told: dict[str, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "path"), None)
        if _DATA_SETS.fullmatch(name):
            edits.append(_edit(node.func, "generated_dataset", starts))
            text = text_in(first) or ""
            names.append(text)
            told[f"data set {text}".strip()] = None
        elif _SOUNDS.fullmatch(name):
            edits.append(_edit(node.func, "generated_audio", starts))
            told["audio"] = None
        elif _IMAGES.fullmatch(name):
            edits.append(_edit(node, "generated_image()", starts))
            told["image"] = None
        elif isinstance(node.func, ast.Attribute) and _DECODES.fullmatch(ast.unparse(node)):
            edits.append(_edit(node, _source(code, node.func.value, starts), starts))
            told["audio"] = None
    used = _columns(tree)
    columns = {name: _known_columns(name, used) for name in names if name}
    if names:
        columns[""] = used or ("text",)
    return _outermost(edits), columns, tuple(told)


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


def _line_starts(code: str) -> list[int]:
    starts = [0]
    for line in code.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _edit(node: ast.expr, text: str, starts: list[int]) -> _Edit:
    start = starts[node.lineno - 1] + node.col_offset
    return _Edit(start, starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0), text)


def _source(code: str, node: ast.expr, starts: list[int]) -> str:
    edit = _edit(node, "", starts)
    return code.encode()[edit.start : edit.end].decode()


def _outermost(edits: list[_Edit]) -> list[_Edit]:
    """Leave out edits inside the text of another."""
    return [one for one in edits if not any(o is not one and o.start <= one.start and one.end <= o.end for o in edits)]


def _applied(code: str, edits: list[_Edit]) -> str:
    data = code.encode()
    for edit in sorted(_outermost(edits), key=lambda one: one.start, reverse=True):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data.decode()


def _pasted(name: str) -> str:
    """Return the source of a module to paste, with its docstring as a comment."""
    text = (Path(__file__).parent / "pasted" / f"{name}.py").read_text(encoding="utf-8")
    docstring, _, rest = text.partition('"""\n')
    return f"# --- stand-ins: {docstring.removeprefix(chr(34) * 3)}\n{rest.strip()}\n# --- end of the stand-ins\n\n"
