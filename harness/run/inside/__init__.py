"""Code that runs inside a probed environment: standard library only, Python 3.9 and later."""
