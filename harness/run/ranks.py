"""A script that a launcher runs in several processes, its ranks: the launcher's command, and how such a run ended.

Each rank reports for itself. The launcher stops all of them when one fails, so the first to fail says what happened.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from attrs import evolve

from harness.errors import MissingProgram
from harness.model import Device, Repro
from harness.run.process import Ended, EndReason
from harness.run.result import Unreadable, read_report

# torchrun on one machine takes a free port by itself; accelerate's launcher calls torchrun's code, and takes one for 0.
_COMMANDS = {
    "torchrun": "-m torch.distributed.run --standalone --nproc-per-node {ranks}",
    "accelerate": "-m accelerate.commands.launch --multi_gpu --num_processes {ranks} --num_machines 1 "
    "--mixed_precision no --dynamo_backend no --main_process_port 0",
}
_ON_CPU = {"accelerate": {"ACCELERATE_USE_CPU": "true"}}
# What torchrun prints last (torch/distributed/elastic/multiprocessing/errors).
_CAUSE = re.compile(r"Root Cause \(first observed failure\):\n(?:.*\n){1,6}?\s*exitcode\s*: (?P<code>-?\d+) \(pid")
# What Python itself prints of a module to run (runpy.py).
_MISSING = re.compile(
    r"(?:No module named|finding module specification for) '?(torch\.distributed|accelerate\.commands)"
)


def launcher(repro: Repro, device: Device, env: dict[str, str]) -> list[str]:
    """The words between Python and a script that start its ranks, none without a launcher; adds to `env` what it reads.

    Both launchers choose gloo where no GPU is visible, if the script names no backend.
    """
    if not repro.launch:
        return []
    if device is Device.CPU:
        env.update(_ON_CPU.get(repro.launch, {}))
    return _COMMANDS[repro.launch].format(ranks=repro.ranks).split()


def first_to_fail(ended: Ended, tail: str, report: Path, repro: Repro) -> tuple[Ended, Path]:
    """How the first rank to fail ended, and its report: that of rank 0 if none failed, a missing one if none is known.

    Without a launcher, that of the only process. `report` is the path without the number of the rank; `tail` is the end
    of the log, where the launcher writes why. Raises `MissingProgram` if the environment lacks the launcher.
    """
    if not repro.launch:
        return ended, report
    ends: dict[Path, str] = {}
    for path in (report.with_name(f"{report.name}.{rank}") for rank in range(repro.ranks)):
        with contextlib.suppress(Unreadable):
            if (written := read_report(path)) is not None:
                ends[path] = written.end
    if not ends and ended.returncode == 1 and (missing := _MISSING.search(tail)):
        package = missing[1].partition(".")[0]
        raise MissingProgram(f"{repro.launch} is not in the environment: add {package} to the repro's dependencies")
    causes = [int(match["code"]) for match in _CAUSE.finditer(tail)]
    if ended.reason is EndReason.ENDED and ended.returncode > 0 and causes:
        ended = evolve(ended, returncode=causes[-1])
    if ended.signal is not None:
        return ended, report
    failed = [path for path, end in ends.items() if end != "completed"]
    if failed:
        return ended, min(failed, key=lambda path: path.stat().st_mtime_ns)
    return ended, next(iter(ends)) if len(ends) == repro.ranks else report
