"""Bisections of real releases, with the answers that are known for them.

Not collected by a plain `pytest`: each takes minutes, and the package index is needed. `nox -s e2e` runs all of
them, `nox -s e2e -- quick` the one named so. Each starts with no results, so that every probe is run. Plain bisections
of the known regressions are in `nox -s truth`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from wheelhouse import Wheelhouse

from harness.run.launch import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    Bisect = Callable[..., dict[str, Any]]

SESSION = Path(__file__).with_name("agent_session.txt")
WHISPER = ("--repro", "whisper_lora_checkpointing")


@pytest.fixture
def bisect(tmp_path: Path) -> Bisect:
    """The answer of `harness bisect` by its own JSON, down to the release unless said otherwise."""

    def run(*words: str, expected: int = 0) -> dict[str, Any]:
        depth = () if "--depth" in words else ("--depth", "release")
        command = [sys.executable, "-m", "harness", "bisect", *depth, *words, "--json"]
        command += ["--results", str(tmp_path / "results")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == expected, ended.stderr + ended.stdout
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer

    return run


def test_quick_bisection_around_the_change(bisect: Bisect) -> None:
    """Three releases, three runs: 4.53.0 broke the training step."""
    answer = bisect("transformers", "--good", "4.52.4", "--bad", "4.53.1")
    assert (answer["last_good"], answer["first_bad"]) == ("4.52.4", "4.53.0")
    assert answer["suspects"] == ["4.53.0"]
    assert [change["name"] for change in answer["lock_changes"]] == ["transformers"]


def test_quick_unsloth_on_the_stand_in_for_cuda(bisect: Bisect) -> None:
    """Good and bad runs of unsloth without a GPU, each with the companions of its own day."""
    ends = ("--good", "2025.6.5", "--bad", "2025.6.6")  # stepping back to them takes 30 GB
    answer = bisect("unsloth-zoo", *ends, "--device", "emulated")
    assert (answer["last_good"], answer["first_bad"]) == ("2025.6.5", "2025.6.6")
    first = answer["lock_changes"][0]
    assert (first["name"], first["before"], first["after"]) == ("transformers", "4.52.4", "4.53.0")


HANG = """
# /// script
# dependencies = ["torch==2.13.0", "gather"]
# [tool.harness]
# gpus = 2
# launch = "torchrun"
# timeout = 60
# [tool.harness.signature]
# hang = true
# ///
import torch, torch.distributed as dist
import gather
dist.init_process_group()
gather.total(torch.ones(1))
dist.barrier()
dist.destroy_process_group()
"""


def test_quick_a_rank_that_does_not_join_a_collective_of_torch(bisect: Bisect, tmp_path: Path) -> None:
    """A package skips a collective on one rank from 1.3 on; the stacks of both ranks are in the log."""
    builds = Wheelhouse(tmp_path / "builds")
    for minor in range(1, 5):
        skip = "    if dist.get_rank() == 1:\n        return\n" if minor >= 3 else ""
        code = f"import torch.distributed as dist\n\ndef total(tensor):\n{skip}    dist.all_reduce(tensor)\n"
        builds.add("gather", f"1.{minor}", files={"gather.py": code}, requires=("torch",))
    (tmp_path / "hang.py").write_text(HANG, encoding="utf-8")
    words = ("--repro", str(tmp_path / "hang.py"), "--index", builds.url, "--device", "cpu", "--depth", "region")
    answer = bisect("gather", *words, "--confirm", "1")
    assert (answer["last_good"], answer["first_bad"]) == ("1.2", "1.3")
    logs = [read_log(path) for path in (tmp_path / "results").rglob("*.log.gz")]
    assert any("rank 0 at the time limit" in log and "rank 1 at the time limit" in log for log in logs)
    assert any("in all_reduce" in log and "in barrier" in log for log in logs)


def test_the_lines_behind_unsloth(bisect: Bisect) -> None:
    """Users met it with unsloth-zoo 2025.6.6; the cause is the same call in transformers."""
    answer = bisect("unsloth-zoo", "--device", "emulated", "--depth", "region")
    finest = answer["culprit"][-1]
    assert finest["packages"] == ["transformers 4.52.4 -> 4.53.0"]
    assert [region["function"] for region in finest["regions"]] == ["WhisperDecoder.forward"]
    assert finest["proved"]


def test_the_release_of_unsloth_that_works_around_it(bisect: Bisect) -> None:
    """With transformers and peft held, 2025.11.4 rewrites the decoder so that it works."""
    held = ("--hold", "transformers==4.56.2", "--hold", "peft==0.17.1")
    answer = bisect("unsloth-zoo", "--find-fix", "--bad", "2025.11.3", "--good", "2025.12.8", *held)
    assert (answer["last_bad"], answer["first_good"]) == ("2025.11.3", "2025.11.4")


def test_the_pre_release_that_fixed_it(bisect: Bisect) -> None:
    """Among pre-releases it is the second candidate of 5.0.0."""
    answer = bisect("transformers", "--find-fix", "--bad", "4.57.6", "--good", "5.10.4", "--pre")
    assert (answer["last_bad"], answer["first_good"]) == ("5.0.0rc1", "5.0.0rc2")


def test_peft_did_not_break_it(bisect: Bisect) -> None:
    """With transformers held at a broken release every peft fails, so peft is not to blame."""
    answer = bisect("peft", *WHISPER, "--good", "0.15.2", "--bad", "0.18.1", expected=1)
    assert answer["status"] == "not-a-regression"


def test_peft_with_a_transformers_that_works(bisect: Bisect) -> None:
    """With transformers held at the last good release there is no failure to find."""
    held = ("--hold", "transformers==4.52.4")
    answer = bisect("peft", *WHISPER, "--good", "0.15.2", "--bad", "0.18.1", *held, expected=1)
    assert answer["status"] == "no-failure"


def test_the_history_of_the_bug(tmp_path: Path) -> None:
    """One window, 4.53.0 to 4.57.6, with less than a third of the releases run; asked again, nothing runs."""
    command = [sys.executable, "-m", "harness", "history", "transformers", "--from", "4.50.0", "--to", "5.10.4"]
    command += ["--json", "--results", str(tmp_path / "results")]
    first, again = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    history = json.loads(first.stdout)
    (window,) = history["windows"]
    assert (window["last_good"], window["first_bad"]) == ("4.52.4", "4.53.0")
    assert (window["last_bad"], window["fixed_in"]) == ("4.57.6", "5.0.0")
    assert history["probes"] * 3 < history["tried"]
    assert json.loads(again.stdout)["probes"] == 0


def finest_of(answer: dict[str, Any]) -> tuple[bool, list[str], list[str], list[str]]:
    """Whether it is proved, and packages, files and functions of the finest level."""
    finest = answer["culprit"][-1]
    assert finest["level"] == "region"
    functions = [region["function"] for region in finest["regions"]]
    return finest["proved"], [text.split()[0] for text in finest["packages"]], finest["files"], functions


TRAINER = (["transformers"], ["transformers/trainer.py"])


def test_the_lines_that_fixed_it_in_a_file_that_cannot_be_reverted(bisect: Bisect) -> None:
    """trainer.py of 4.47.1 imports what 4.48.0 lacks; the lines are found inside it."""
    answer = bisect(
        *("transformers", "--repro", "gradient_accumulation", "--param", "case=full-window-fix", "--find-fix"),
        *("--depth", "region"),
    )
    assert (answer["last_bad"], answer["first_good"]) == ("4.47.1", "4.48.0")
    assert finest_of(answer) == (True, *TRAINER, ["Trainer.get_batch_samples"])


def test_a_dependency_that_cannot_be_imported_is_a_skip(tmp_path: Path) -> None:
    """peft 0.18.0 needs a module that transformers 4.51.3 lacks: that is not the bug."""
    pins = ("unsloth-zoo==2025.11.3", "unsloth==2025.11.2", "transformers==4.51.3", "peft==0.18.0")
    asked = [word for pin in pins for word in ("--with", pin)]
    command = [sys.executable, "-m", "harness", "probe", "unsloth_whisper_lora", "--device", "emulated", *asked]
    command += ["--hold", "torch==2.8.0", "--as-of", "2026-01-20", "--results", str(tmp_path / "results")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3, ended.stderr
    assert ended.stdout.startswith("skipped failed differently")
    assert "No module named 'transformers.modeling_layers'" in ended.stdout


def test_quick_question_of_an_agent(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The session that the guide for agents shows: asked by the client of the protocol's SDK, polled, and pinned."""
    import anyio
    from mcp import Client, StdioServerParameters

    source = '# /// script\n# dependencies = ["numpy"]\n# ///\nimport numpy\nnumpy.ones(4, dtype=numpy.float_)\n'
    (tmp_path / "step.py").write_text(source, encoding="utf-8")
    words = ["-m", "harness", "mcp", "--folder", str(tmp_path), "--sandbox", "auto"]
    environ = {name: value for name, value in os.environ.items() if name != "HARNESS_RESULTS"}
    lines = []

    async def session() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=words, env=environ)) as client:

            async def called(tool: str, **given: Any) -> Any:
                result = await client.call_tool(tool, given)
                return result.content[0].text if result.is_error else result.structured_content

            async def shown(tool: str, **given: Any) -> None:
                lines.append(f"-> {tool} {json.dumps(given)}")
                record = await called(tool, **given)
                if not isinstance(record, str) and record["state"] == "running":
                    lines.append(f'<- {{"id": ..., "state": "running", "next": "{record["next"]}", ...}}')
                    lines.append('-> status {"id": ...}')
                while not isinstance(record, str) and record["state"] == "running":
                    record = await called("status", id=record["id"], wait_s=60)
                lines.append(f"<- {record if isinstance(record, str) else json.dumps(_of_every_day(record))}")

            await shown("bisect", subject="numpy", repro="step.py", good="1.26.4", wait_s=0)
            await shown("pin")
            await shown("bisect", run="rm -rf ~")

    anyio.run(session)
    text = "".join(f"{line}\n" for line in lines)
    if pytestconfig.getoption("--update-golden"):
        SESSION.write_text(text, encoding="utf-8")
    assert text == SESSION.read_text(encoding="utf-8")


def _of_every_day(record: dict[str, Any]) -> dict[str, Any]:
    """The part of a record that is the same on each day and each machine."""
    untrusted = record["untrusted"]
    if "answer" in untrusted:
        part: Any = {"answer": {name: untrusted["answer"][name] for name in ("sentence", "constraints")}}
    else:
        part = {"text": untrusted["text"]}
    return {"state": record["state"], "exit_code": record["exit_code"], "untrusted": part}
