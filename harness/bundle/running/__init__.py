"""The modules that are copied into a bundle and run there: standard library only, Python 3.9 and later."""
