"""Builds a project once as a wheel, and unpacks it as an installer would."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from harness.request.project_files import make_repository
from harness.request.pyproject import read_ini, read_toml

if TYPE_CHECKING:
    from harness.environment import Interpreter, Uv, Workspace

_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit)\b.*")
INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")
# A copy has no git history from which a build could take its version.
_VERSION_VARIABLES = ("SETUPTOOLS_SCM_PRETEND_VERSION", "PDM_BUILD_SCM_VERSION", "POETRY_DYNAMIC_VERSIONING_BYPASS")


@frozen
class Wheels:
    """Builds projects as wheels, each content once, with the interpreter of the probes."""

    workspace: Workspace
    uv: Uv
    interpreter: Interpreter

    def unpacked(self, home: Path, day: str, version: str) -> tuple[Path | None, str]:
        """Return the folder of the unpacked wheel of `home / "tree"`, or None and the reason ("" if not installable).

        `version` is for a project that takes its version from git. The build uses the packages of `day` (ISO 8601),
        because build tools may have changed since, and today's if that fails.
        """
        site, note = home / f"built-{self.interpreter.cache_tag}", home / f"not-built-{self.interpreter.cache_tag}.txt"
        if site.is_dir():
            return site, ""
        if note.is_file():
            return None, note.read_text(encoding="utf-8")
        if not _is_installable(home / "tree"):
            return None, ""
        words = ""
        for date in dict.fromkeys((day, "")):
            with tempfile.TemporaryDirectory(prefix="build-", dir=self.workspace.building) as folder:
                wheel, why = self._wheel(home / "tree", Path(folder), date, version)
                if wheel is not None:
                    _unpack(wheel, Path(folder, "site"))
                    Path(folder, "site").rename(site)
                    return site, ""
                words = words or why
        note.write_text(words, encoding="utf-8")
        return None, words

    def _wheel(self, tree: Path, folder: Path, day: str, version: str) -> tuple[Path | None, str]:
        source = folder / "source"
        shutil.copytree(tree, source, symlinks=True)
        make_repository(source)
        newest = ("--exclude-newer", day) if day else ()
        variables = {**self.uv.extra_environment, **dict.fromkeys(_VERSION_VARIABLES, version)}
        answer = evolve(self.uv, extra_environment=variables).call(
            "build", "--wheel", *newest, "--python", self.interpreter.path, "--out-dir", folder / "out", source,
            cwd=folder,
        )  # fmt: skip
        wheel = next((folder / "out").glob("*.whl"), None) if answer.returncode == 0 else None
        return wheel, _last_words(answer.words)


def _is_installable(tree: Path) -> bool:
    if (tree / "setup.py").is_file():
        return True
    pyproject = read_toml(tree / "pyproject.toml")
    if "project" in pyproject or "build-system" in pyproject or "poetry" in pyproject.get("tool", {}):
        return True
    return read_ini(tree / "setup.cfg").has_option("metadata", "name")


def _unpack(wheel: Path, site: Path) -> None:
    """Unpack a wheel like an installer; console scripts become small programs in `bin`."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    for data in list(site.glob("*.data")):
        for kind in ("purelib", "platlib"):
            if (data / kind).is_dir():
                shutil.copytree(data / kind, site, dirs_exist_ok=True)
        if (data / "scripts").is_dir():
            shutil.copytree(data / "scripts", site / "bin", dirs_exist_ok=True)
        shutil.rmtree(data)
    for points in site.glob("*.dist-info/entry_points.txt"):
        settings = ConfigParser(interpolation=None, delimiters=("=",))
        settings.optionxform = str  # type: ignore[method-assign,assignment]
        settings.read(points, encoding="utf-8")
        for name, where in settings.items("console_scripts") if settings.has_section("console_scripts") else ():
            module, _, attribute = where.split("[")[0].strip().partition(":")
            (site / "bin").mkdir(exist_ok=True)
            program = (
                "#!/usr/bin/env python\nimport sys\n"
                "from importlib import import_module\nfrom operator import attrgetter\n"
                f"sys.exit(attrgetter({attribute!r})(import_module({module!r}))())\n"
            )
            (site / "bin" / name).write_text(program, encoding="utf-8")
    for script in (site / "bin").glob("*"):
        script.chmod(0o755)


def _last_words(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip() and not line.strip().startswith("hint")]
    raised = [line for line in lines if _RAISED.match(line)]
    return (raised or lines or ["no error message"])[-1]
