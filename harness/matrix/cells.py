"""Expands axes into cells: the product of all values, minus excludes, plus includes.

The terms are those of asv and GitHub Actions. The values of a package axis are versions, or a word and a range, which
select releases. `expanded` first replaces words such as "latest 5" and ranges with the versions that can be tried. It
reads no index itself. Releases that can't be tried are listed with a reason.
"""

from __future__ import annotations

import enum
import itertools
import json
import re
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.errors import BadMatrix
from harness.model import Release, Target, name_of, normalized_name, parsed_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


Value = str | int | float | bool

# Axes in tables get a prefix; all others have plain names.
PACKAGES, PARAMETERS, MADE = "packages.", "parameters.", "made."


def project_of(axis: str) -> str:
    """The project whose releases an axis has: those that are installed, or those that make what is read; else ""."""
    return next((axis.removeprefix(prefix) for prefix in (PACKAGES, MADE) if axis.startswith(prefix)), "")


class Word(enum.StrEnum):
    """Which releases of a project to select; a range without a word selects all of its releases."""

    VERSION = "=="
    LATEST = "latest"
    PRERELEASES = "prereleases"
    EVERY = ""


@frozen
class Selection:
    """A selection of releases: a word, a count (for `latest` only) and a range. A plain version selects itself."""

    word: Word
    count: int = 1
    within: SpecifierSet = field(factory=SpecifierSet)

    @property
    def is_version(self) -> bool:
        """Whether it is a plain version, which is not looked up."""
        return self.word is Word.VERSION


@frozen
class LeftOut:
    """A release matched by a word or a range that can't be tried, with the reason."""

    project: str
    version: str
    reason: str


_NEITHER = (
    "must be a version like 4.53.0, a range like >=4.53,<5, or latest, latest 5 or prereleases, "
    "optionally followed by a range"
)
_SELECTION = re.compile(
    r"(?:(?P<word>latest|prereleases)(?=\s|$|[<>=!~])\s*)?"
    r"(?:(?P<count>-?\d+)(?=\s|$|[<>=!~])\s*)?"
    r"(?P<name>[A-Za-z0-9][\w.-]*)?(?P<within>.*)",
    re.ASCII | re.DOTALL,
)


def selection(project: str, value: str) -> Selection:
    """Parse a value of an axis of releases.

    Raises `ValueError` with a text to append to the value ("names peft, but ...").
    """
    text = value.strip()
    if value[:1].isdigit():
        if parsed_version(value) is None:
            raise ValueError(_NEITHER)
        return Selection(Word.VERSION)
    named, count, name, rest = _SELECTION.findall(text)[0]
    try:
        word, within = Word(named), SpecifierSet(rest)
    except InvalidSpecifier:
        raise ValueError(_NEITHER) from None
    is_other = bool(name) and canonicalize_name(name) != canonicalize_name(project)
    if is_other and word is not Word.EVERY:
        raise ValueError(f"names {name}, but this axis is of {project}")
    if is_other or (count and word is not Word.LATEST) or (word is Word.EVERY and not within):
        raise ValueError(_NEITHER)
    if count and int(count) < 1:
        raise ValueError("selects no release; the count must be at least 1")
    return Selection(word, int(count or 1), within)


def selections(axes: Iterable[tuple[str, tuple[Value, ...]]]) -> Iterator[tuple[str, Value, Selection]]:
    """Yield each value of an axis of releases that is not a plain version, with what it selects."""
    for axis, values in axes:
        if project := project_of(axis):
            for value in values:
                if not (wanted := selection(project, str(value))).is_version:
                    yield axis, value, wanted


def matches(axis: str, pattern: Value, value: Value) -> bool:
    """Whether an exclude's value matches a value of an axis: it is equal, or a range that contains it."""
    if not (project := project_of(axis)):
        return json.dumps(pattern) == json.dumps(value)  # since True == 1 in Python
    wanted, version = selection(project, str(pattern)), Version(str(value))
    return version == Version(str(pattern)) if wanted.is_version else wanted.within.contains(version, prereleases=True)


@frozen
class Expansion:
    """Expands the package axes of one matrix; `left_out` collects the releases that can't be tried.

    `releases_of` lists all releases of a project. A release needs to fit only one of the `targets`.
    """

    matrix: str
    releases_of: Callable[[str], Sequence[Release]]
    targets: Sequence[Target]
    left_out: dict[LeftOut, None] = field(factory=dict, init=False)

    def axis(self, axis: str, values: tuple[Value, ...], where: str = "axes.") -> tuple[Value, ...]:
        """Return the versions of an axis in order without duplicates.

        Raises `BadMatrix` if a value matches no release, except `prereleases` if the axis has another value.
        """
        project = project_of(axis)
        if not project:
            return values
        by_value = {str(value): selection(project, str(value)) for value in values}
        if all(wanted.is_version for wanted in by_value.values()):
            return values
        # A version in the file keeps its spelling, so that the cell keeps its name.
        chosen = {Version(value): value for value, wanted in by_value.items() if wanted.is_version}
        for value, wanted in by_value.items():
            if wanted.is_version:
                continue
            versions = self._chosen(project, wanted)
            if not versions and wanted.word is not Word.PRERELEASES:
                example = next((row for row in self.left_out if row.project == project), None)
                raise BadMatrix(
                    f"{self.matrix}: {where}{axis}: {value!r} matches no release of {project} that can be tried"
                    + (f" ({example.version} is left out: {example.reason})" if example else "")
                )
            for version in versions:
                chosen.setdefault(version, str(version))
        if not chosen:
            raise BadMatrix(
                f"{self.matrix}: {where}{axis}: {project} has no pre-releases now, and the axis has no other value; "
                "add one, for example 'latest'"
            )
        return tuple(chosen[version] for version in sorted(chosen))

    def _chosen(self, project: str, wanted: Selection) -> list[Version]:
        """Return the selected versions, the newest first, as many as `latest` counts."""
        most = wanted.count if wanted.word is Word.LATEST else None
        chosen: list[Version] = []
        for release in sorted(self._matching(project, wanted), key=lambda r: r.version, reverse=True):
            if (why := self._left_out_because(release)) is not None:
                self.left_out[LeftOut(release.project, str(release.version), why)] = None
                continue
            chosen.append(release.version)
            if len(chosen) == most:
                break
        return chosen

    def _matching(self, project: str, wanted: Selection) -> list[Release]:
        """Return the releases that a word and a range match, whether or not they can be tried."""
        releases = self.releases_of(project)
        # PEP 440: a range includes pre-releases if it names one.
        pre = wanted.word is Word.PRERELEASES or (wanted.word is Word.EVERY and bool(wanted.within.prereleases))
        within = [release for release in releases if wanted.within.contains(release.version, prereleases=pre)]
        if wanted.word is not Word.PRERELEASES:
            return within
        within = [release for release in within if release.version.is_prerelease]
        return within if wanted.within else self._newer_than_final(releases, within)

    def _newer_than_final(self, releases: Sequence[Release], pre: list[Release]) -> list[Release]:
        finals = [r.version for r in releases if not r.version.is_prerelease and self._left_out_because(r) is None]
        return [release for release in pre if not finals or release.version > max(finals)]

    def _left_out_because(self, release: Release) -> str | None:
        reasons = [release.left_out_because(target, prereleases=True) for target in self.targets]
        if None in reasons:
            return None
        # A hint about an option of `harness probe` does not help here.
        return next((re.sub(r" \(--[^)]*\)$", "", why) for why in reasons if why), None)


@frozen
class Cell:
    """One probe of a matrix.

    `requirements` and `hold` are PEP 508 strings, as `--with` and `--hold` of `harness probe` take them; `python`
    is a version or None (the harness's own), `as_of` an ISO date, "era" (the day of the newest release that the cell
    pins) or None; `choice` maps each axis to its value; `made` are requirements of the repro's first step.
    """

    name: str
    repro: str
    requirements: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    python: str | None = None
    device: str = "auto"
    as_of: str | None = None
    params: dict[str, Value] = field(factory=dict)
    choice: dict[str, Value] = field(factory=dict, eq=False)
    made: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of `harness probe` that run this cell."""
        words = [self.repro]
        for requirement in self.requirements:
            words += ["--with", requirement]
        for hold in ("none", *self.hold):  # a matrix ignores the repro's own holds
            words += ["--hold", hold]
        for requirement in self.made:
            words += ["--made-with", requirement]
        if self.python is not None:
            words += ["--python", self.python]
        if self.as_of is not None:
            words += ["--as-of", self.as_of]
        for name, value in self.params.items():
            words += ["--param", f"{name}={json.dumps(value)}"]
        return (*words, "--device", self.device)

    @property
    def tags(self) -> tuple[str, ...]:
        """One Python identifier per value, for `nox -t` and `nox -k`."""
        words = (_part(axis, value) for axis, value in self.choice.items())
        return tuple(re.sub(r"\W+", "_", word).strip("_") for word in words if word)


@frozen
class Matrix:
    """Axes (name to values), requirements of every cell, excludes, and includes: the values of one extra cell each.

    An exclude maps axes to values, or to ranges for packages; it drops the cells that match all of them. `left_out`
    holds the releases that could not be tried when words were replaced with versions.
    """

    name: str
    axes: dict[str, tuple[Value, ...]]
    hold: tuple[str, ...] = ()
    with_: tuple[str, ...] = ()
    include: tuple[dict[str, Value], ...] = ()
    exclude: tuple[dict[str, tuple[Value, ...]], ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def needs_index(self) -> bool:
        """Whether an axis or an include uses a word or a range, which has to be looked up."""
        return self._asks_for_releases() is not None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells: the product in the order of the axes, then the includes.

        Raises `BadMatrix` if an exclude matches nothing, no cells are left, two cells are the same, or a word or range
        has not been expanded.
        """
        if (asking := self._asks_for_releases()) is not None:
            axis, value = asking
            raise BadMatrix(
                f"{self.name}: {axis} = {value!r} must be looked up in the package index",
                hint="harness matrix FILE --list looks it up and lists the cells",
            )
        cells = [*self._product(), *map(self._included, self.include)]
        if not cells:
            raise BadMatrix(f"{self.name}: the excludes leave no cells")
        self._check_unique(cells)
        return tuple(cells)

    def _asks_for_releases(self) -> tuple[str, Value] | None:
        of_includes = ((axis, (value,)) for choice in self.include for axis, value in choice.items())
        unknown = selections(itertools.chain(self.axes.items(), of_includes))
        return next(((axis, value) for axis, value, _ in unknown), None)

    def _product(self) -> Iterator[Cell]:
        if "repro" not in self.axes:  # all cells are included ones
            if self.exclude:
                raise BadMatrix(f"{self.name}: exclude needs axes, and axes.repro is missing")
            return
        choices = [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values())]
        for number, exclusion in enumerate(self.exclude, start=1):
            if not any(_matches(choice, exclusion) for choice in choices):
                words = ", ".join(f"{axis} = {_listed(values)}" for axis, values in exclusion.items())
                raise BadMatrix(f"{self.name}: exclude {number} ({words}) matches no cell")
        for choice in choices:
            if not any(_matches(choice, exclusion) for exclusion in self.exclude):
                yield self._cell(choice)

    def _included(self, given: dict[str, Value]) -> Cell:
        single = {axis: values[0] for axis, values in self.axes.items() if len(values) == 1}
        choice = {axis: given.get(axis, single.get(axis)) for axis in (*self.axes, *given)}
        known = {axis: value for axis, value in choice.items() if value is not None}
        if "repro" not in known:
            raise BadMatrix(f"{self.name}: an include must name its repro unless axes.repro has exactly one value")
        return self._cell(known)

    def _cell(self, choice: dict[str, Value]) -> Cell:
        packages = {axis.removeprefix(PACKAGES): str(v) for axis, v in choice.items() if axis.startswith(PACKAGES)}
        named = {normalized_name(project) for project in packages}
        as_of = choice.get("as-of")
        python = choice.get("python")
        return Cell(
            name="-".join(filter(None, (_part(axis, value) for axis, value in choice.items()))),
            repro=str(choice["repro"]),
            # An axis takes precedence over the requirements of all cells.
            requirements=(
                *_without(self.with_, named),
                *(f"{project}=={v}" for project, v in packages.items()),
            ),
            hold=_without(self.hold, named),
            python=None if python is None else str(python),
            device=str(choice.get("device", "auto")),
            as_of=None if as_of in (None, "none") else str(as_of),
            params={axis.removeprefix(PARAMETERS): v for axis, v in choice.items() if axis.startswith(PARAMETERS)},
            choice=choice,
            made=tuple(f"{axis.removeprefix(MADE)}=={v}" for axis, v in choice.items() if axis.startswith(MADE)),
        )

    def _check_unique(self, cells: list[Cell]) -> None:
        by_arguments: dict[tuple[str, ...], Cell] = {}
        names: set[str] = set()
        for cell in cells:
            if (twin := by_arguments.setdefault(cell.arguments, cell)) is not cell:
                raise BadMatrix(f"{self.name}: {twin.name} is in the matrix twice")
            if cell.name in names:
                raise BadMatrix(f"{self.name}: two different cells are named {cell.name}")
            names.add(cell.name)


def expanded(
    matrix: Matrix,
    releases_of: Callable[[str], Sequence[Release]],
    targets: Sequence[Target],
) -> Matrix:
    """Replace every word and range with versions; `left_out` of the result lists matching releases that can't be tried.

    The arguments are those of `Expansion`. An exclude that matches nothing on an expanded axis is dropped.
    Raises `BadMatrix` if a value matches no release.
    """
    if not matrix.needs_index:
        return matrix
    at_work = Expansion(matrix.name, releases_of, targets)
    axes = {axis: at_work.axis(axis, values) for axis, values in matrix.axes.items()}
    looked_up = {axis for axis, values in matrix.axes.items() if axes[axis] != values}
    include = [
        {axis: at_work.axis(axis, (value,), f"include {number}.")[0] for axis, value in choice.items()}
        for number, choice in enumerate(matrix.include, start=1)
    ]

    def is_named(axis: str, patterns: Iterable[Value]) -> bool:
        return any(matches(axis, pattern, value) for pattern in patterns for value in axes[axis])

    return evolve(
        matrix,
        axes=axes,
        include=tuple(include),
        exclude=tuple(
            choice
            for choice in matrix.exclude
            if all(is_named(axis, choice[axis]) for axis in choice.keys() & looked_up)
        ),
        left_out=tuple(at_work.left_out),
    )


def text_of(value: Value) -> str:
    """A value as it is written in a matrix file or in a cell's name."""
    return value if isinstance(value, str) else json.dumps(value)


def _part(axis: str, value: Value) -> str:
    """Return the part of a cell's name for a value. It does not depend on other cells, so new values rename none."""
    if axis.startswith(PACKAGES):
        return f"{axis.removeprefix(PACKAGES)}-{value}"
    if axis.startswith(MADE):
        return f"made-{axis.removeprefix(MADE)}-{value}"
    if axis.startswith(PARAMETERS):
        return f"{axis.removeprefix(PARAMETERS)}={text_of(value)}"
    if axis == "as-of":
        return "" if value == "none" else f"as-of-{value}"
    return f"py{value}" if axis == "python" else str(value)


def _without(requirements: tuple[str, ...], projects: set[str]) -> tuple[str, ...]:
    return tuple(text for text in requirements if name_of(text) not in projects)


def _matches(choice: Mapping[str, Value], exclusion: Mapping[str, tuple[Value, ...]]) -> bool:
    return all(
        axis in choice and any(matches(axis, value, choice[axis]) for value in values)
        for axis, values in exclusion.items()
    )


def _listed(values: tuple[Value, ...]) -> str:
    return json.dumps(values[0] if len(values) == 1 else values)
