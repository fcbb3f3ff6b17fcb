"""Puts tiny models and generated data in place of what a script downloads, by editing its text; nothing is run."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from harness.drafting.known import FIELD
from harness.drafting.scripts import text_in
from harness.drafting.source import parses, tree_of

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


def with_stand_ins(code: str) -> StandIns:
    """Return a script (valid Python) with stand-ins for the models, data, audio and images that it downloads."""
    tree, found = tree_of(code), _Replacements(code)
    found.visit(tree)
    known = {name: one for name, one in found.models.items() if one is not None}
    unknown = tuple(name for name in found.models if name not in known)
    changed = _applied(code, found.edits)
    if parses(changed) is not None:
        return StandIns(code, unknown=unknown)
    told = {name: (one.model_type, one.auto_class) for name, one in known.items()}
    above = _pasted("tiny_model", "MODELS", told) if known else ""
    columns = _columns_of(found.data_sets, _columns(tree))
    above += _pasted("generated_data", "COLUMNS", columns) if found.generated else ""
    replaced = [_model_words(name, one) for name, one in known.items()]
    replaced += [*(f"{what}: generated" for what in found.generated), *found.others]
    return StandIns(changed, above, tuple(replaced), unknown, ("transformers", "torch") if known else ())


class _Replacements(ast.NodeVisitor):
    """The edits of a script: parts of it, each with what replaces it.

    `models` maps names to architectures (None: not known), `data_sets` are names; `generated` and `others` are words
    for what is replaced.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self.edits: list[tuple[ast.expr, str]] = []
        self.models: dict[str, Architecture | None] = {}
        self.data_sets: list[str] = []
        self.generated: dict[str, None] = {}
        self.others: dict[str, None] = {}

    def generic_visit(self, node: ast.AST) -> None:
        for one in _may_name_model(node):
            if one is not None and _is_model(name := text_in(one) or ""):
                self.models[name] = architecture_of(name)
                if self.models[name] is not None:
                    self.edits.append((one, f"tiny_model({self._source(one)})"))
        super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value in _GPU_OPTIMIZERS:
            self.edits.append((node, '"adamw_torch"'))
            self.others[f"{node.value}: adamw_torch, because it needs a GPU"] = None

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        if _SCHEDULERS.fullmatch(name):  # made of settings alone; what it names is no model
            given = ", ".join(ast.unparse(one) for one in node.keywords if one.arg not in _OF_LOADING)
            self.edits.append((node, f"{name.removesuffix('.from_pretrained')}({given})"))
            self.others[f"{name}: made with its own settings"] = None
            return
        if _DATA_SETS.fullmatch(name):
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "path"), None)
            self.data_sets.append(text_in(first) or "")
            self._generate(f"data set {self.data_sets[-1]}".strip(), node.func, "generated_dataset")
        elif _SOUNDS.fullmatch(name):
            self._generate("audio", node.func, "generated_audio")
        elif _IMAGES.fullmatch(name):
            self._generate("image", node, "generated_image()")
        elif isinstance(node.func, ast.Attribute) and _DECODES.fullmatch(ast.unparse(node)):
            self._generate("audio", node, self._source(node.func.value))
        self.generic_visit(node)

    def _generate(self, what: str, node: ast.expr, text: str) -> None:
        self.edits.append((node, text))
        self.generated[what] = None

    def _source(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.code, node) or ""


def _model_words(name: str, one: Architecture) -> str:
    guess = ", by its name: check it" if one.is_guess else ""
    return f"{name}: a tiny random model of the same architecture ({one.model_type}{guess})"


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


def _is_model(text: str) -> bool:
    """Whether a text can name a checkpoint or a folder with one."""
    if not text or len(text) > 150 or _NO_MODEL.search(text) or " " in text:
        return False
    is_name = _HUB_NAME.fullmatch(text) is not None or architecture_of(text) is not None
    return is_name or text.startswith(("./", "/", "~/", "../"))


def _columns_of(data_sets: Iterable[str], used: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each data set, and of any other one (""): known ones, else those that the script reads."""
    named = {name: _known_columns(name) or used or ("text",) for name in data_sets if name}
    return {**named, "": used or ("text",)} if data_sets else {}


def _known_columns(name: str) -> tuple[str, ...]:
    last = name.rpartition("/")[2].lower()
    return tuple(next((columns for key, columns in FIELD["columns"].items() if key in last), ()))


def _columns(tree: ast.Module) -> tuple[str, ...]:
    """Return the names of the columns that a script reads."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant):
            base = node.value
            while isinstance(base, ast.Attribute) or (isinstance(base, ast.Subscript) and not _is_column(base.slice)):
                base = base.value
            key = node.slice.value
            if isinstance(base, ast.Name) and _ROW_NAMES.fullmatch(base.id) and isinstance(key, str):
                found[key] = None
        elif isinstance(node, ast.keyword) and node.arg in ("dataset_text_field", "text_column", "input_columns"):
            found.update(dict.fromkeys(filter(None, map(text_in, ast.walk(node.value)))))
    names = [name for name in found if name not in _NOT_COLUMNS]
    return tuple(name for name in names if name not in _TOKENIZED) or tuple(names)


def _is_column(key: ast.expr) -> bool:
    return (text_in(key) or "train") not in _NOT_COLUMNS


def _applied(code: str, edits: Iterable[tuple[ast.expr, str]]) -> str:
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
    lines = "".join(f"    {json.dumps(key)}: {json.dumps(some)},\n" for key, some in values.items())
    rest = rest.replace(f"{table}: dict[str, Any] = {{}}\n", f"{table}: dict[str, Any] = {{\n{lines}}}\n")
    return f"# --- stand-ins: {docstring}\n{rest.strip()}\n# --- end of the stand-ins\n\n"
