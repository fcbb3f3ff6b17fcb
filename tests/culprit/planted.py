"""Planted projects: releases whose culprit is known, bisected by the real command on real environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from support import SIGNED, Harness, repro_text
from wheelhouse import Wheelhouse

BROKEN = "raise RuntimeError('the step is broken')"


class Raw(bytes):
    """Content of a file in a wheel that is not text."""

    def encode(self) -> bytes:
        """As the maker of wheels asks for it."""
        return bytes(self)


@define
class Planted:
    """An index of its own and the command that bisects over its project `shop`."""

    house: Wheelhouse
    harness: Harness
    _day: int = field(default=0, init=False)

    def add(self, name: str, version: str, files: dict[str, Any], requires: tuple[str, ...] = ()) -> None:
        """Add a release, each a day after the one before."""
        self._day += 1
        self.house.add(name, version, files=files, requires=requires, uploaded=f"2024-01-{self._day:02}T12:00:00Z")

    def shops(self, good: dict[str, Any], bad: dict[str, Any], versions: tuple[str, str] = ("1.0", "1.1")) -> None:
        """Two releases of the project, of which the second shows the bug."""
        for version, files in zip(versions, (good, bad), strict=True):
            self.add("shop", version, files)

    def answer(self, *options: str, body: str = "import shop\n\nshop.run()\n", signed: str = SIGNED) -> Any:
        """What the command says of it as JSON; it repeats runs only if `options` name a confidence."""
        folder = self.harness.folder / "repros"
        folder.mkdir(exist_ok=True)
        tool = signed + "\n[tool.harness.subjects.shop]\n"
        (folder / "shop_step.py").write_text(repro_text("shop", tool=tool, body=body), encoding="utf-8")
        chosen = options or ("--good", "1.0", "--bad", "1.1")
        chosen += () if "--confidence" in chosen else ("--confirm", "1")
        return self.harness("bisect", "shop", "--repro", "shop_step", *chosen, "--json").json

    @property
    def environments(self) -> Path:
        """Where the harness keeps what it built."""
        return Path(self.harness.environ["HARNESS_CACHE_DIR"]) / "environments"


@pytest.fixture
def plant(tmp_path: Path, harness: Harness) -> Planted:
    """An empty index."""
    house = Wheelhouse(tmp_path / "planted")
    return Planted(house, harness.with_environ(**house.environ))


def levels(answer: Any) -> dict[str, Any]:
    """The findings by their level."""
    assert answer["culprit"] is not None, answer["sentence"]
    return {finding["level"]: finding for finding in answer["culprit"]}


def told(answer: Any, label: str) -> str:
    """The text of a row that the answer begins with."""
    return next(text for name, text in answer["head"] if name == label)


def proved(finding: Any) -> bool:
    """Both ways, and nothing smaller would do."""
    return finding["proved"] and finding["minimal"] and all(p["verdict"] == p["expected"] for p in finding["proofs"])
