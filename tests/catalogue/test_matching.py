"""A traceback of a known regression finds its entry, in every form that logs have; another one finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.catalogue.entries import all_entries
from harness.catalogue.matching import exceptions_in, installed_in, matches

ROOT = Path(__file__).parents[2]
ENTRIES = all_entries(ROOT)
TRACEBACKS = sorted((Path(__file__).parent / "tracebacks").glob("*.txt"))
SITE = "/opt/venv/lib/python3.12/site-packages/"


def found_in(text: str) -> list[str]:
    return [one.entry.name for one in matches(exceptions_in(text), ENTRIES, installed_in(text).get)]


def written(*frames: str, error: str) -> str:
    """A traceback as Python writes it; frames are "file:function", "" for the script itself."""
    lines = ["Traceback (most recent call last):"]
    for number, frame in enumerate(("", *frames), start=10):
        file, _, function = frame.rpartition(":")
        lines += [
            f'  File "{SITE + file if file else "/srv/run.py"}", line {number}, in {function or "<module>"}',
            "    f()",
        ]
    return "\n".join([*lines, error])


@pytest.mark.parametrize("path", TRACEBACKS, ids=lambda path: path.stem)
def test_a_traceback_of_another_release_finds_its_entry_first(path: Path) -> None:
    first, *_ = found_in(path.read_text(encoding="utf-8"))
    assert first.replace(":", "-") == path.stem


UNRELATED = (Path(__file__).parent / "unrelated.txt").read_text(encoding="utf-8").split("\n=====\n")


@pytest.mark.parametrize("text", UNRELATED, ids=lambda text: text.splitlines()[-1][:60])
def test_another_traceback_finds_nothing(text: str) -> None:
    assert exceptions_in(text)
    assert found_in(text) == []


def test_there_are_forty_of_them() -> None:
    assert len(UNRELATED) >= 40


FORMS = {
    "pytest": f"""
    def test_it():
>       np.array([1.5]).astype(np.int)

tests/test_it.py:5:
_ _ _ _ _ _ _ _ _ _ _ _ _ _
{SITE}numpy/__init__.py:319: in __getattr__
    raise AttributeError(__former_attrs__[attr])
E   AttributeError: module 'numpy' has no attribute 'int'.
E   `np.int` was a deprecated alias for the builtin `int`.
""",
    "ipython": f"""
---------------------------------------------------------------------------
AttributeError                            Traceback (most recent call last)
Cell In[2], line 1
----> 1 np.int

File {SITE}numpy/__init__.py:319, in __getattr__(attr)
    318 if attr in __former_attrs__:
--> 319     raise AttributeError(__former_attrs__[attr])

AttributeError: module 'numpy' has no attribute 'int'.
`np.int` was a deprecated alias for the builtin `int`.
""",
    "torchrun": written(
        "numpy/__init__.py:__getattr__", error="AttributeError: module 'numpy' has no attribute 'int'."
    ).replace("\n", "\n[rank1]: "),
    "CI": "\n".join(
        f"2026-01-02T03:04:05.6789012Z {line}"
        for line in written(
            "numpy/__init__.py:__getattr__",
            error="\x1b[31mAttributeError: module 'numpy' has no attribute 'int'.\x1b[0m",
        ).splitlines()
    ),
    "one line": "AttributeError: module 'numpy' has no attribute 'int'.",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_log_is_read(form: str) -> None:
    assert found_in(FORMS[form]) == ["numpy_int_alias"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("numpy==1.26.4", "1.26.4"),
        ("- `numpy` version: 1.26.4", "1.26.4"),
        ("numpy                 1.26.4", "1.26.4"),
        ("[pip3] numpy==1.26.4", "1.26.4"),
        ("/x/site-packages/numpy-1.26.4.dist-info/METADATA", "1.26.4"),
        ("numpy-financial==1.0.0", None),
        ("my-numpy==1.0.0", None),
        ("numpy is broken since line 12", None),
    ],
)
def test_versions_are_read_from_a_log(text: str, version: str | None) -> None:
    assert installed_in(text).get("numpy") == version


def test_a_version_outside_of_the_window_is_said_and_comes_last() -> None:
    error = "AttributeError: module 'numpy' has no attribute 'int'."
    text = written("numpy/__init__.py:__getattr__", error=error)
    (one,) = matches(exceptions_in(text), ENTRIES, lambda _: "1.22.0")
    assert one.is_affected is False
    (one,) = matches(exceptions_in(text), ENTRIES, lambda _: "1.26.0")
    assert one.is_affected is True


def test_the_users_of_another_package_find_the_entry_by_the_frames_they_share() -> None:
    frames = (
        "accelerate/accelerator.py:backward",
        "torch/_tensor.py:backward",
        "torch/autograd/__init__.py:backward",
        "torch/autograd/graph.py:_engine_run_backward",
        "torch/autograd/function.py:apply",
        "unsloth_zoo/gradient_checkpointing.py:backward",
        "torch/autograd/__init__.py:backward",
        "torch/autograd/graph.py:_engine_run_backward",
    )
    error = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after "
    text = written(*frames, error=f"{error}they have already been freed). Specify retain_graph=True if you need to.")
    assert found_in(f"transformers 4.56.2\n{text}")[0] == "whisper_lora_checkpointing"
