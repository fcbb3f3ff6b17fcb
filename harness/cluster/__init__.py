"""Lanes on other machines: probes go to the workers of a Dask cluster that are like this machine, and to no other."""
