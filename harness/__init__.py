"""Reproduce a regression, bisect it over releases, and find what broke it.

`harness.ask`, `harness.bisect`, `harness.history`, `harness.probe` and `harness.results` are the commands as functions;
`Request`, `Policy` and `Settings` have their options; see `harness.api`. They are imported on first use, so that
`import harness` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness._version import __version__ as __version__

if TYPE_CHECKING:
    from harness.api import ask as ask
    from harness.api import bisect as bisect
    from harness.api import history as history
    from harness.api import probe as probe
    from harness.api import results as results
    from harness.question.request import Policy as Policy
    from harness.question.request import Request as Request
    from harness.settings import Settings as Settings

_PUBLIC = {
    **dict.fromkeys(("ask", "bisect", "history", "probe", "results"), "harness.api"),
    **dict.fromkeys(("Policy", "Request"), "harness.question.request"),
    "Settings": "harness.settings",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
