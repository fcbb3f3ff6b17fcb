"""Reads the files of conda and pixi: environment.yml, conda-lock.yml, pixi.lock, and says what PyPI may have of them.

conda installs its own builds, which no index has. Most of them are releases of PyPI, many under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from packaging.requirements import InvalidRequirement, Requirement

from harness.errors import UserMistake
from harness.model import parsed_version
from harness.model.text import listed

SUFFIXES = (".yml", ".yaml")
PIXI = "pixi.lock"
_MOST_BRACKETS = 500
# Lists and tables in one line that hold something; a package's extras, as in httpx[cli], are none.
_BRACKETS = re.compile(r"(?<![\w.\-\]])[\[{](?!\s*[\]}])")
_NESTED_LIST = re.compile(r"(?:[-?] ){50}")
_SPEC = re.compile(r"(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>[^\[]*)")
_EXACT = re.compile(r"={1,2}\s*(?P<version>\d[\w.!+]*)(?P<build>=[^=]*)?")
_BUILD = re.compile(r"(?<=[\w.*])=[^=]*$")  # numpy=1.24.3=py311h64a7726_0
_PREFIX = re.compile(r"(?:=\s*)?(?P<version>\d[\w.!+]*?)(?:\.?\*)?")  # =1.24, 1.24.*
_FILE = re.compile(r"(?P<name>[^/]+)-(?P<version>[^-/]+)-[^-/]+?\.(?:conda|tar\.bz2)$")
_PURL = re.compile(r"pkg:pypi/(?P<name>[\w.-]+)")
_CALLED = {  # conda's packages that are called otherwise on PyPI
    "dask-core": "dask",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python",
    "py-opencv": "opencv-python",
    "pytables": "tables",
    "python-graphviz": "graphviz",
    "pytorch": "torch",
}
_PLATFORMS = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("darwin", "x86_64"): "osx-64",
    ("darwin", "arm64"): "osx-arm64",
    ("win32", "AMD64"): "win-64",
}
_LEFT_OUT = ("python", "pip", "wheel")


@frozen
class CondaPackage:
    """A package that conda installs; `requirement` is what PyPI may have of it, "" if it is nothing of Python."""

    name: str
    version: str
    requirement: str = ""


@frozen
class CondaFile:
    """A file's packages: those of conda, and those of pip as requirement lines or as tables of a lock."""

    packages: tuple[CondaPackage, ...] = ()
    lines: tuple[str, ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()
    python: str = ""
    notes: tuple[str, ...] = ()


def read_conda(path: Path, environment: Mapping[str, str]) -> CondaFile:
    """Read a file for the platform that the marker variables name.

    Raises `UserMistake`; of a damaged file also what its values lead to, such as `TypeError`.
    """
    content = _content(path)
    platform = _PLATFORMS.get((environment["sys_platform"], environment["platform_machine"]), "")
    if isinstance(content, dict) and "environments" in content:
        return _pixi(path, content, platform)
    if isinstance(content, dict) and isinstance(content.get("package"), list):
        rows = [row for row in content["package"] if row["platform"] == platform]
        if not rows:
            raise _no_platform(path, platform, {row["platform"] for row in content["package"]})
        conda = [
            _of_lock(row["name"], row["version"], row["dependencies"]) for row in rows if row["manager"] == "conda"
        ]
        return _locked(conda, [row for row in rows if row["manager"] == "pip"])
    if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
        raise UserMistake(f"{path} is not a conda environment file: it has no list of dependencies")
    return _environment(content["dependencies"])


def _content(path: Path) -> Any:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        if len(_BRACKETS.findall(text)) > _MOST_BRACKETS or _NESTED_LIST.search(text):
            raise UserMistake(f"{path} is nested too deeply for a file of conda")  # parsing would take minutes
        # A lock has megabytes, for which the parser in Python takes half a minute.
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - either is safe
    except OSError as error:
        raise UserMistake(f"can't read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserMistake(f"{path} is not a conda environment file: it is not YAML") from error


def _environment(listed_packages: Iterable[Any]) -> CondaFile:
    """Read environment.yml: what `conda env export` wrote has exact versions, what a person wrote mostly has not."""
    parts = [part for part in listed_packages if isinstance(part, str)]
    lines = [str(line) for part in listed_packages if isinstance(part, dict) for line in part.get("pip", ())]
    specs = [spec for part in parts if (spec := _SPEC.match((part.partition("::")[2] or part).strip())) is not None]
    exact = {spec["name"].lower(): _EXACT.fullmatch(spec["versions"].strip()) for spec in specs}
    python = exact.get("python")
    has_builds = any(match is not None and match["build"] for match in exact.values())
    is_export = all(exact.values()) and (has_builds or (python is not None and python["version"].count(".") > 1))
    packages = []
    for spec in specs:
        name = spec["name"].lower()
        match = exact[name]
        if is_export and match is not None:
            requirement = _requirement(name, f"=={match['version']}")
        else:
            versions = _BUILD.sub("", spec["versions"].strip())
            prefix = _PREFIX.fullmatch(versions)
            requirement = _requirement(name, f"=={prefix['version']}.*" if prefix else versions) or _requirement(name)
        packages.append(CondaPackage(name, match["version"] if match is not None else "", requirement))
    version = python["version"] if python is not None else ""
    return CondaFile(_without_tools(packages), tuple(lines), python=version)


def _pixi(path: Path, content: Mapping[str, Any], platform: str) -> CondaFile:
    """Read the default environment of pixi.lock, or its first one; `kind`, `conda` and `pypi` name a package's kind."""
    environments = content["environments"]
    name = "default" if "default" in environments else min(environments)
    rows = environments[name]["packages"]
    if platform not in rows:
        raise _no_platform(path, platform, rows)
    packages = {_address(package): package for package in content["packages"]}
    conda, tables = [], []
    for row in rows[platform]:
        address = _address(row)
        package = packages.get(address, {})
        if "pypi" in row:
            is_elsewhere = "://" not in address or address.startswith("git+")
            tables.append({**({"path": address} if is_elsewhere else {}), **_named(package)})
        elif (file := _FILE.search(address)) is not None:
            depends = [str(text).split(" ")[0] for text in package.get("depends") or ()]
            conda.append(_of_lock(file["name"], file["version"], depends, package.get("purls")))
    others = [other for other in environments if other != name]
    notes = (f"{path}: the environment {name}, and not {listed(others)}",) if others else ()
    return _locked(conda, tables, notes)


def _address(package: Mapping[str, Any]) -> str:
    return str(next((package[key] for key in ("conda", "pypi", "url", "path") if key in package), ""))


def _named(package: Mapping[str, Any]) -> dict[str, str]:
    return {"name": str(package["name"]), "version": str(package.get("version", ""))}


def _of_lock(name: str, version: Any, depends: Iterable[str], purls: list[str] | None = None) -> CondaPackage:
    """Return a package of a lock: one of Python if a name on PyPI is given, or if it depends on Python."""
    names = [match["name"] for purl in purls or () if (match := _PURL.match(str(purl))) is not None]
    is_python = bool(names) if purls is not None else "python" in depends
    known = parsed_version(str(version)) is not None
    return CondaPackage(
        name, str(version), _requirement(names[0] if names else name, f"=={version}") if is_python and known else ""
    )


def _requirement(name: str, versions: str = "") -> str:
    """Return the requirement of a package by its name on PyPI, "" if it can't be one, as for 1.8|1.9."""
    try:
        return str(Requirement(f"{_CALLED.get(name, name)}{versions}"))
    except InvalidRequirement:
        return ""


def _locked(
    packages: list[CondaPackage], tables: Iterable[Mapping[str, Any]], notes: tuple[str, ...] = ()
) -> CondaFile:
    python = next((package.version for package in packages if package.name == "python"), "")
    rows = tuple({key: row[key] for key in ("name", "version", "path") if key in row} for row in tables)
    return CondaFile(_without_tools(packages), tables=rows, python=python, notes=notes)


def _without_tools(packages: Iterable[CondaPackage]) -> tuple[CondaPackage, ...]:
    return tuple(package for package in packages if package.name not in _LEFT_OUT)


def _no_platform(path: Path, platform: str, known: Iterable[str]) -> UserMistake:
    return UserMistake(
        f"{path} has no packages for {platform or 'this machine'}: it has those of {listed(sorted(map(str, known)))}",
        hint="lock it for this platform too, or name another end",
    )
