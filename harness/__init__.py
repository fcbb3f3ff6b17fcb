"""Reproduce a regression, bisect it over releases, and find what broke it.

`harness.bisect`, `harness.history`, `harness.probe` and `harness.results` are the commands as functions, and `Settings`
has their options; see `harness.api`. They are imported on first use, so that `import harness` itself is fast.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import bisect as bisect
    from harness.api import history as history
    from harness.api import probe as probe
    from harness.api import results as results
    from harness.settings import Settings as Settings

__version__ = "0.1.0"

_PUBLIC = {
    "bisect": "harness.api",
    "history": "harness.api",
    "probe": "harness.api",
    "results": "harness.api",
    "Settings": "harness.settings",
}


class _Package(ModuleType):
    """The class of this package: its public functions take precedence over subpackages of the same name.

    `harness.bisect` is both a public function and an internal subpackage. Importing the subpackage would replace the
    function, because the import system sets each submodule as an attribute of its parent. Imports by full name,
    `from harness.bisect.answer import Answer`, don't need that attribute.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_PUBLIC[name]), name)
        super().__setattr__(name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        if name in _PUBLIC and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_PUBLIC})


sys.modules[__name__].__class__ = _Package
