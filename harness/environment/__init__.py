"""From a combination to a ready environment: releases of the index, locks, builds, bytecode."""

from harness.environment.build import Builder, Environment, Uninstallable
from harness.environment.compiling import Unresolvable
from harness.environment.disk import Room
from harness.environment.index import Index
from harness.environment.interpreter import Interpreter, find_interpreter, foreign_lock
from harness.environment.mixing import flaw_of
from harness.environment.occupation import Altered, CannotBuild, Occupied, occupied
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.environment.resolve import Resolution, Resolver
from harness.environment.uv import Uv
from harness.environment.workspace import Workspace

__all__ = [
    "Altered",
    "Builder",
    "CannotBuild",
    "Environment",
    "Index",
    "Interpreter",
    "Occupied",
    "PipSettings",
    "Resolution",
    "Resolver",
    "Room",
    "Uninstallable",
    "Unresolvable",
    "Uv",
    "Workspace",
    "find_interpreter",
    "flaw_of",
    "foreign_lock",
    "occupied",
    "read_pip_settings",
]
