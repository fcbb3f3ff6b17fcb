"""A reader of a report, who has its files, an index, and uv."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from uv import find_uv_bin
from wheelhouse import Wheelhouse


@pytest.fixture
def reader(tmp_path, uv_cache):
    """Run the commands of a report as its reader would: a folder with the report's files, an index, and uv."""

    def running(report: str, house: Wheelhouse, **files: str) -> list[tuple[str, int, str]]:
        saved = dict(re.findall(r"<summary>(\S+): every package.*?```text\n(.*?)\n```", report, re.DOTALL))
        saved |= re.findall(r"<summary>The repro, (\S+)</summary>\n\n```python\n(.*?)\n```", report, re.DOTALL)
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("UV_", "PIP_", "HARNESS_"))}
        found = []
        for number, command in enumerate(re.findall(r"```sh\n(.*?)\n```", report, re.DOTALL)):
            folder = tmp_path / f"reader{number}"
            folder.mkdir()
            for name, text in {**saved, **files}.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(f"{text}\n", encoding="utf-8")
            ended = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env={
                    **environ,
                    **house.environ,
                    "UV_CACHE_DIR": str(uv_cache),
                    "PATH": f"{Path(find_uv_bin()).parent}:{os.environ['PATH']}",
                },
                capture_output=True,
                text=True,
            )
            found.append((command, ended.returncode, ended.stdout + ended.stderr))
        return found

    return running
