"""Decides which probe runs when and where: the main loop, lanes, local and Dask probers."""
