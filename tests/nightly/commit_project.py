"""The app as a project that builds itself, for nights that take its commits."""

from __future__ import annotations

import json

from simulation import APP

# A build backend of the project itself (PEP 517): it needs nothing from an index.
BACKEND = """
import pathlib, tomllib, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    needs = "".join(f"Requires-Dist: {one}\\n" for one in project["dependencies"])
    name = "app-2.0.dev0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.write("app.py")
        inside = "app-2.0.dev0.dist-info"
        head = "Metadata-Version: 2.1\\nName: app\\nVersion: 2.0.dev0\\n"
        link = "Project-URL: Source, https://github.com/example/app\\n"
        wheel.writestr(f"{inside}/METADATA", head + link + needs)
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{inside}/RECORD", "")
    return name
"""
PYPROJECT = """
[project]
name = "app"
version = "2.0.dev0"
dependencies = {needs}
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def app(body: str = "pass") -> dict[str, str | None]:
    """The app at a commit."""
    return {"app.py": APP.format(body=body)}


def needs(*names: str) -> dict[str, str | None]:
    """The dependencies that the app declares."""
    return {"pyproject.toml": PYPROJECT.format(needs=json.dumps(names))}
