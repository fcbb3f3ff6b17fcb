"""A hook runs once, after the import, and leaves no trace in the module."""

from __future__ import annotations

import importlib
import itertools
import sys

import pytest

from harness.run.inside.emulation.installing import after_import

_numbers = itertools.count()


@pytest.fixture
def module_name(tmp_path):
    name = f"emulated_module_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text("value = 1\nlast = 'line'\n", encoding="utf-8")
    before = list(sys.meta_path)
    sys.path.insert(0, str(tmp_path))
    yield name
    sys.path.remove(str(tmp_path))
    sys.modules.pop(name, None)
    sys.meta_path[:] = before


def test_the_module_is_complete_when_the_hook_runs(module_name):
    seen = []
    after_import(module_name, lambda module: seen.append(module.last))
    assert seen == []
    importlib.import_module(module_name)
    assert seen == ["line"]


def test_the_hook_runs_once(module_name):
    seen = []
    after_import(module_name, lambda module: seen.append(1))
    module = importlib.import_module(module_name)
    importlib.reload(module)
    assert seen == [1]


def test_the_module_keeps_its_own_loader(module_name):
    after_import(module_name, lambda module: None)
    module = importlib.import_module(module_name)
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"


def test_the_hook_runs_at_once_for_an_imported_module(module_name):
    module = importlib.import_module(module_name)
    seen = []
    after_import(module_name, seen.append)
    assert seen == [module]


def test_a_missing_module_is_an_import_error(module_name):
    after_import(module_name + "_absent", lambda module: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(module_name + "_absent")
