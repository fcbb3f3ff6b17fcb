"""Probes on other machines: executors, and a prober over the workers of one that match this machine.

An executor is one module here: `SCHEMES` with the schemes of its addresses, and a class `Connection` with
the public members of Dask's. Its workers call `prober.answer` with each task and
describe themselves by `prober.look_around`. Nothing else knows which executor it is.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from harness.events import Reporter
from harness.probing.cluster import dask
from harness.probing.cluster.prober import ClusterProber

__all__ = ["ClusterProber", "connect"]


def connect(address: str, reporter: Reporter) -> dask.Connection:
    """Connect to the executor with the scheme of an address; without a known scheme, to Dask's.

    `reporter` receives one warning about each worker that is left out. Raises `NoWorkers` if nothing answers there,
    `UserMistake` if what the executor needs is not installed.
    """
    scheme = address.partition("://")[0]
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    chosen = next((module for module in modules if scheme in getattr(module, "SCHEMES", ())), dask)
    workers: dask.Connection = chosen.Connection.open(address, reporter)
    return workers
