"""From a combination to a ready environment: releases of the index, locks, builds, bytecode."""

from harness.environment.build import Builder, CannotBuild, Environment
from harness.environment.disk_space import DiskSpace
from harness.environment.index import Index
from harness.environment.interpreter import Interpreter, find_interpreter, foreign_lock
from harness.environment.pip_settings import PipSettings, read_pip_settings
from harness.environment.resolve import Resolution, Resolver
from harness.environment.uv import Uv
from harness.environment.watched import WatchedEnvironment, flaw_of, watched_environment
from harness.environment.workspace import Workspace
