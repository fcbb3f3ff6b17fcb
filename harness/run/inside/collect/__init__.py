"""What reads the results of tests out of pytest and unittest: a folder that goes on PYTHONPATH and is never installed.

    _harness_pytest    a plugin, loaded by `-p _harness_pytest`
    _harness_unittest  run as `python -m _harness_unittest` where `python -m unittest` was asked for
    _harness_tests     what both write: one line of JSON for each test, as soon as it has ended

The names are such that no package of the probed environment has them. The standard library only, Python 3.9 and later.
"""
