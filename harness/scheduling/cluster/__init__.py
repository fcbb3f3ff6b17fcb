"""Lanes on other machines: sends probes to the workers of a Dask cluster that match this machine."""

from harness.scheduling.cluster.connection import Connection
from harness.scheduling.cluster.prober import ClusterProber

__all__ = ["ClusterProber", "Connection"]
