"""Probes on other machines: a prober over the workers of a Dask cluster that match this machine."""

from harness.scheduling.cluster.dask import Connection
from harness.scheduling.cluster.prober import ClusterProber

__all__ = ["ClusterProber", "Connection"]
