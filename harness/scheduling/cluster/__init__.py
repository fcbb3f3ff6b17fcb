"""Lanes on other machines: probes go to the workers of a Dask cluster that are like this machine, and to no other."""

from harness.scheduling.cluster.connection import Connection
from harness.scheduling.cluster.prober import ClusterProber

__all__ = ["ClusterProber", "Connection"]
