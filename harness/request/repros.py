"""Finds repros: a path, the `repros/` of the working directory, or those shipped with the harness."""

from __future__ import annotations

import difflib
from pathlib import Path

from harness.errors import BadRepro
from harness.model import Repro, normalized_name
from harness.model.repro import parse_repro

_SHIPPED = Path(__file__).parent.parent / "_repros"


def list_repros(where: Path | None = None) -> list[Repro]:
    """Return every valid repro, sorted by name; one in the working directory hides a shipped one of the same name."""
    found = {path.stem: path for folder in _folders(where) for path in sorted(folder.glob("*.py"))}
    repros = []
    for name in sorted(found):
        try:
            repros.append(read_repro(found[name]))
        except BadRepro:
            continue
    return repros


def find_repro(name: str, where: Path | None = None) -> Repro:
    """Return a repro by name or path. Raises `BadRepro`."""
    path = Path(name).expanduser()
    if path.suffix == ".py" or "/" in name:
        return read_repro(path)
    for folder in reversed(_folders(where)):
        if (folder / f"{name}.py").is_file():
            return read_repro(folder / f"{name}.py")
    known = [repro.name for repro in list_repros(where)]
    close = difflib.get_close_matches(name, known, n=1)
    raise BadRepro(
        f"no repro named {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
        hint=f"known repros: {', '.join(known) or 'none'}; a path to a file works too",
    )


def repro_for_subject(subject: str, where: Path | None = None) -> Repro:
    """Return the repro that fits a subject best. Raises `BadRepro` if none names it.

    Repros that name it earlier come first; then those with both bounds, and of these those of a regression.
    """
    name = normalized_name(subject)
    naming = [repro for repro in list_repros(where) if name in repro.subjects]
    if not naming:
        raise BadRepro(
            f"no repro names {subject} as its subject",
            hint='name one with --repro PATH, or give a command with --run "COMMAND"',
        )

    def fit(repro: Repro) -> tuple[int, bool, bool]:
        bounds = repro.subjects[name]
        known = bounds.good is not None and bounds.bad is not None
        return list(repro.subjects).index(name), not known, known and not bounds.is_regression

    return min(naming, key=fit)


def read_repro(path: Path) -> Repro:
    """Read one repro. Raises `BadRepro`."""
    try:
        source = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRepro(f"can't read the repro {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRepro(f"the repro {path} is not text in UTF-8") from error
    return parse_repro(source, name=path.stem, path=str(path))


def _folders(where: Path | None) -> list[Path]:
    """Return the folders with repros, the less important first. A checkout has the shipped ones in `repros/`."""
    checkout = Path(__file__).parent.parent.parent / "repros"
    return [folder for folder in (checkout, _SHIPPED, (where or Path.cwd()) / "repros") if folder.is_dir()]
