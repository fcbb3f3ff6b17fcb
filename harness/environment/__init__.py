"""From a combination to a ready environment: releases of the index, locks, builds, bytecode."""

from harness.environment.build import Builder, Environment
from harness.environment.compiling import Unresolvable
from harness.environment.disk_space import DiskSpace
from harness.environment.index import Index
from harness.environment.install import Uninstallable
from harness.environment.interpreter import Interpreter, find_interpreter, foreign_lock
from harness.environment.mixing import flaw_of
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.environment.resolve import Resolution, Resolver
from harness.environment.uv import Uv
from harness.environment.watched import Altered, CannotBuild, WatchedEnvironment, watched_environment
from harness.environment.workspace import Workspace

__all__ = [
    "Altered",
    "Builder",
    "CannotBuild",
    "DiskSpace",
    "Environment",
    "Index",
    "Interpreter",
    "PipSettings",
    "Resolution",
    "Resolver",
    "Uninstallable",
    "Unresolvable",
    "Uv",
    "WatchedEnvironment",
    "Workspace",
    "find_interpreter",
    "flaw_of",
    "foreign_lock",
    "read_pip_settings",
    "watched_environment",
]
