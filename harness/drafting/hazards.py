"""Says what is risky in a script, by reading it: network, shell, deletes, code from elsewhere, files outside."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from attrs import frozen

from harness.drafting.scripts import text_in, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLS = {
    "runs another program": r"(?:os\.(?:system|popen|exec\w+|spawn\w+)|subprocess\.\w+|pty\.spawn|get_ipython\(\).*)",
    "deletes files": r"(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs)|.*\.(?:unlink|rmdir|rmtree))",
    "runs code from a text": r"(?:eval|exec|compile|__import__|importlib\.import_module|runpy\.\w+)",
    "unpickles a file, which can run code": r"(?:pickle|dill|cloudpickle|joblib|torch)\.(?:load|loads)",
    "sends data to the network": (
        r"(?:.*\.)?(?:push_to_hub|upload_file|upload_folder|create_repo|notebook_login|login|wandb\.init)"
    ),
    "uses the network": (
        r"(?:requests|httpx|urllib\.request|urllib3|aiohttp|wget|gdown)\.\w+|urlopen|urlretrieve"
        r"|(?:.*\.)?(?:hf_hub_download|snapshot_download|load_image|load_state_dict_from_url)|socket\.\w+|torch\.hub\.\w+"
    ),
    "replaces the environment's packages": r"pip\.main|pip\._internal\.\w+",
}
_SHUTIL_WRITES = re.compile(r"(?:shutil\.(?:move|copy\w*)|os\.(?:rename|replace|chmod|chown|symlink|makedirs|mkdir))")
_OUTSIDE = re.compile(r"^(?:/(?!dev/null)|~|\.\./|[A-Za-z]:\\)")
_SAVES = re.compile(
    r"(?:.*\.)?(?:save_pretrained|save_to_disk|to_csv|to_json|write_text|write_bytes|save|savefig|save_model"
    r"|write_video)"
)
_MODELS = ("model", "model_name", "pretrained_model_name_or_path", "path")
_FOLDERS = ("output_dir", "save_directory", "logging_dir", "cache_dir", "save_path")
_HUB = re.compile(
    r"(?:.*\.)?(?:from_pretrained|load_dataset|pipeline|SentenceTransformer|load_lora_weights|from_single_file)"
)


@frozen
class Hazard:
    """Something risky in a script: `line` counts from 1, `code` is that line."""

    line: int
    what: str
    code: str


def hazards_of(code: str) -> tuple[Hazard, ...]:
    """Return what is risky in a script that is Python, in order of its lines. Nothing of it is run."""
    lines = code.splitlines()
    found = {
        (number, what): Hazard(number, what, lines[number - 1].strip())
        for node in ast.walk(tree_of(code))
        for number, what in _of_node(node)
    }
    for number, line in enumerate(lines, start=1):
        if re.match(r"^\s*(?:pass\s+)?#\s*(?:!|%(?:pip|conda|run|sx|system)|%%(?:bash|sh))", line):
            found[number, "shell"] = Hazard(number, "was a notebook command, and is not run", line.strip())
    return tuple(found[key] for key in sorted(found))


def _of_node(node: ast.AST) -> Iterator[tuple[int, str]]:
    if not isinstance(node, ast.Call):
        return
    name = ast.unparse(node.func)
    is_safe = name == "torch.load" and any(one.arg == "weights_only" and _is_true(one.value) for one in node.keywords)
    for what, pattern in _CALLS.items():
        if re.fullmatch(pattern, name) and not is_safe:
            yield node.lineno, what
    for keyword in node.keywords:
        if (risk := _of_keyword(keyword)) is not None:
            yield keyword.value.lineno, risk
    models = [*node.args[:1], *(one.value for one in node.keywords if one.arg in _MODELS)]
    if _HUB.fullmatch(name) and any(map(_is_hub_name, models)):
        yield node.lineno, "downloads from the hub"
    mode = text_in(node.args[1]) if len(node.args) > 1 else "r"
    opens = name in ("open", "io.open") and (mode is None or not set(mode).isdisjoint("wax+"))
    writes = opens or _SAVES.fullmatch(name) or _SHUTIL_WRITES.fullmatch(name)
    if writes and any(map(_is_outside, node.args[:2])):
        yield node.lineno, "writes outside its own folder"


def _of_keyword(keyword: ast.keyword) -> str | None:
    if keyword.arg == "trust_remote_code" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value):
        return "runs code that a model or a data set brings (trust_remote_code)"
    if keyword.arg == "push_to_hub" and _is_true(keyword.value):
        return "sends data to the network"
    if keyword.arg in _FOLDERS and _is_outside(keyword.value):
        return f"writes outside its own folder ({keyword.arg})"
    if keyword.arg == "shell" and _is_true(keyword.value):
        return "runs another program through a shell"
    return None


def _is_hub_name(node: ast.expr) -> bool:
    text = text_in(node)
    return text is not None and not text.startswith((".", "/", "~"))


def _is_outside(node: ast.expr) -> bool:
    return _OUTSIDE.match(text_in(node) or "") is not None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
