"""From a combination to a ready environment: releases of the index, locks, builds, bytecode."""

from harness.environment.build import Builder, Environment, Uninstallable
from harness.environment.compiling import Unresolvable
from harness.environment.disk import Room
from harness.environment.index import Index
from harness.environment.interpreter import Interpreter, find_interpreter, foreign_lock
from harness.environment.mixing import Mixer
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.environment.resolve import Resolution, Resolver
from harness.environment.uv import Uv
from harness.environment.workspace import Workspace

__all__ = [
    "Builder",
    "Environment",
    "Index",
    "Interpreter",
    "Mixer",
    "PipSettings",
    "Resolution",
    "Resolver",
    "Room",
    "Uninstallable",
    "Unresolvable",
    "Uv",
    "Workspace",
    "find_interpreter",
    "foreign_lock",
    "read_pip_settings",
]
