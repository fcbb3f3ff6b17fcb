"""Which probe runs when and where: the one loop, lanes, local and Dask probers."""
