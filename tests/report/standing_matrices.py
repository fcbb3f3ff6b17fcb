"""Matrices and how they stand, made by hand for the tests of tables and pages."""

from __future__ import annotations

import itertools

from answers import BAD_RUN, GOOD_RUN, lock_of
from attrs import evolve

from harness.matrix import Cell
from harness.matrix.page import MatrixResult
from harness.matrix.running import CellResult, CellRun
from harness.model import Combination, Judgement, Observation, Outcome, Repro, Signature, Verdict
from harness.probing import Probe

REPRO = Repro(name="sale", digest="d", dependencies=("shop", "till"), summary="Sells a thing.")
SIGNATURE = Signature(exception="ValueError", message="no price")


def cell_of(**choice: str) -> Cell:
    """A cell of axes: `shop`, `till` are packages, `case` and `size` parameters, else plain ones."""
    axes = {"shop": "packages.shop", "till": "packages.till", "case": "parameters.case", "size": "parameters.size"}
    named = {axes.get(axis, axis.replace("_", "-")): value for axis, value in choice.items()}
    packages = {axis: value for axis, value in choice.items() if axis in ("shop", "till")}
    return Cell(
        name="-".join(["sale", *(f"{axis}-{value}" for axis, value in choice.items())]),
        repro="sale",
        requirements=tuple(f"{name}=={version}" for name, version in packages.items()),
        python=choice.get("python"),
        params={axis: value for axis, value in choice.items() if axis in ("case", "size")},
        choice={"repro": "sale", **named},
    )


def run_of(cell: Cell, verdict: Verdict, **more: object) -> CellRun:
    """A run of a cell that has this verdict."""
    observation: Observation = {
        Verdict.GOOD: evolve(GOOD_RUN, duration_s=2.0),
        Verdict.BAD: evolve(BAD_RUN, duration_s=3.0),
        Verdict.SKIP: evolve(GOOD_RUN, outcome=Outcome.UNRESOLVABLE, detail="nothing fits", lock=None, metrics={}),
    }[verdict]
    shop = str(cell.choice.get("packages.shop", "1.0"))
    if observation.lock is not None:
        observation = evolve(
            observation, lock=lock_of(shop=shop, till="3.0", coin="0.9" if verdict is Verdict.GOOD else "1.0")
        )
    observation = evolve(observation, **{"key": f"key of {cell.name}", **more})
    reasons = {Verdict.GOOD: "ran to its end", Verdict.BAD: "ValueError: no price", Verdict.SKIP: "nothing fits"}
    probe = Probe(REPRO, Combination("3.11.7", ("till", *cell.requirements)))
    return CellRun(cell, probe, observation, Judgement(verdict, reasons[verdict]), SIGNATURE, cached=False)


def stand(letters: str, cells: list[Cell]) -> tuple[CellResult, ...]:
    """Cells by a letter each: g(ood), b(ad), s(kip), ? (not run)."""
    verdicts = {verdict.value[0]: verdict for verdict in Verdict}
    return tuple(
        CellResult(cell, run_of(cell, verdicts[letter]) if letter != "?" else None)
        for letter, cell in zip(letters, cells, strict=True)
    )


def matrix_of(standings: tuple[CellResult, ...], **more: object) -> MatrixResult:
    """A matrix that stands so."""
    told = {"name": "till", "written": "2026-01-02T03:05:00+00:00", "command": "harness matrix matrices/till.toml"}
    return MatrixResult(results=standings, **{**told, **more})  # type: ignore[arg-type]


SMALL = matrix_of(
    stand(
        "gbbs?",
        [
            cell_of(shop="1.9", case="whole"),
            cell_of(shop="1.10", case="whole"),
            cell_of(shop="1.10", case="half"),
            cell_of(shop="1.11", case="whole"),
            cell_of(shop="1.11", case="half"),
        ],
    )
)


def large(releases: int = 20) -> MatrixResult:
    """A cell for each release, Python, companion and case: ten times as many as releases and more."""
    axes = itertools.product(
        [f"1.{n}" for n in range(releases)], ["3.10", "3.11", "3.12"], ["2.0", "3.0"], ["whole", "half"]
    )
    cells = [cell_of(shop=shop, python=python, till=till, case=case) for shop, python, till, case in axes]
    return matrix_of(stand("".join("gbs?ggbb"[n % 8] for n in range(len(cells))), cells))
