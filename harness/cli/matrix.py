"""`harness matrix`: the cells of a matrix file, listed as they are today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from harness.cli.wiring import open_workshop, results_option
from harness.errors import UserMistake
from harness.investigation.expansion import expanded_by_index
from harness.matrix import Cell, Matrix, read_matrix
from harness.matrix.covering import Covering, pairwise


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--list", "as_list", is_flag=True, help="List the cells and run nothing.")
@click.option("--cover", type=click.Choice(["pairs"]), help="Only cells enough to have each pair of values in one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@results_option
def matrix(file: Path, as_list: bool, cover: str | None, as_json: bool, results_folder: Path) -> None:
    """List the cells of the matrix FILE; words such as "latest" become the versions of today.

    \b
    harness matrix matrices/transformers.toml --list
    harness matrix matrices/unsloth.toml --list --cover pairs
    """
    if not as_list:
        raise UserMistake("harness matrix lists cells: add --list", hint="nox -s matrix runs them")
    asked = read_matrix(file)
    if asked.needs_index:
        workshop = open_workshop(results_folder)
        asked = expanded_by_index(asked, workshop.index, workshop.interpreter)
    covering = pairwise(asked.cells) if cover else None
    if as_json:
        click.echo(json.dumps(_document(asked, covering), indent=1))
        return
    for cell in covering.cells if covering else asked.cells:
        click.echo(cell.name)
    for row in asked.left_out:
        click.echo(f"left out: {row.project} {row.version} ({row.reason})", err=True)
    if covering:
        click.echo(_told(covering), err=True)


def _document(asked: Matrix, covering: Covering | None) -> dict[str, Any]:
    left_out = [{"project": row.project, "version": row.version, "reason": row.reason} for row in asked.left_out]
    if covering:
        left_out += [{"cell": cell.name, "reason": "pairs of its values are in others"} for cell in covering.left_out]
    return {
        "matrix": asked.name,
        "cells": [_cell(cell) for cell in (covering.cells if covering else asked.cells)],
        "left_out": left_out,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {"name": cell.name, "arguments": cell.arguments, "tags": cell.tags, "python": cell.python}


def _told(covering: Covering) -> str:
    return (
        f"{len(covering.cells)} of {len(covering.cells) + len(covering.left_out)} cells have {covering.covered} of "
        f"{covering.pairs} pairs of values; left out: {', '.join(cell.name for cell in covering.left_out) or 'none'}"
    )
