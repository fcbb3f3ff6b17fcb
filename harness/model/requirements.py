"""Requirements as text (PEP 508): which project and version they name, and what is left without pins or bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier, SpecifierSet

from harness.errors import UserMistake
from harness.model.release import is_prerelease, name_of, normalized_name, parsed_version

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_LOWER = (">", ">=", "~=", "==", "===")


def required_name(text: str) -> str:
    """Return the normalised name of the project that a requirement is for. Raises `UserMistake`."""
    try:
        return name_of(text)
    except InvalidRequirement as error:
        raise UserMistake(
            f"{text!r} is not a requirement: {str(error).splitlines()[0]}", hint="for example 'torch==2.8.0'"
        ) from error


def exact_version(requirement: str) -> tuple[str, str] | None:
    """The project and the version that a requirement names with == or ===, None if it names none."""
    parsed = Requirement(requirement)
    exact = (pin.version for pin in parsed.specifier if pin.operator in ("==", "===") and "*" not in pin.version)
    return next(((normalized_name(parsed.name), version) for version in exact), None)


def pinned_prereleases(requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the names of projects that are pinned to a pre-release."""
    return tuple(name for name, version in filter(None, map(exact_version, requirements)) if is_prerelease(version))


def unpinned(text: str) -> str:
    """Return a requirement without its version if that is exact; otherwise unchanged."""
    if exact_version(text) is None:
        return text
    requirement = Requirement(text)
    requirement.specifier = SpecifierSet()
    return str(requirement)


def unbounded(text: str) -> str:
    """Return a requirement with its extras and without its versions."""
    requirement = Requirement(text)
    return requirement.name + (f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else "")


def merged_requirements(
    own: tuple[str, ...], given: tuple[str, ...], left_out: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Merge requirements: `own` without those for projects in `left_out`, replaced by `given` for the same project.

    Other given requirements come last. Raises `UserMistake` for an invalid requirement.
    """
    by_name: dict[str, list[str]] = {}
    for requirement in given:
        by_name.setdefault(required_name(requirement), []).append(requirement)
    merged: list[str] = []
    replaced = set(by_name)
    for text in own:
        name = name_of(text)
        if name in by_name:
            merged += by_name.pop(name)
        elif name not in left_out and name not in replaced:
            merged.append(text)
    return (*merged, *(requirement for rest in by_name.values() for requirement in rest))


def without_lower_bound(text: str) -> str:
    """Return a requirement without its lower bounds: `==1.2` becomes `<=1.2`, `~=1.2` and `==1.*` become `<2`.

    Unchanged if it has none.
    """
    requirement = Requirement(text)
    if all(part.operator not in _LOWER for part in requirement.specifier):
        return text
    requirement.specifier = SpecifierSet(",".join(filter(None, map(_upper_part, requirement.specifier))))
    return str(requirement)


def at_least(text: str, version: str | None) -> str:
    """Return a requirement with a version as its lower bound; None sets none."""
    requirement, lowest = Requirement(text), parsed_version(version)
    if lowest is not None:
        requirement.specifier &= SpecifierSet(f">={lowest.public}")
    return str(requirement)


def _upper_part(specifier: Specifier) -> str:
    """Return what a specifier says about newer releases, "" if that is nothing."""
    operator, text = specifier.operator, specifier.version
    if operator not in _LOWER:
        return str(specifier)
    version = parsed_version(text.removesuffix(".*"))
    if operator in (">", ">=") or version is None:
        return ""
    if operator == "~=" or text.endswith(".*"):
        fixed = version.release if text.endswith(".*") else version.release[:-1]
        epoch = f"{version.epoch}!" if version.epoch else ""
        return f"<{epoch}{'.'.join(map(str, (*fixed[:-1], fixed[-1] + 1)))}"
    return f"<={version.public}"
