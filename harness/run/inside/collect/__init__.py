"""Plugins that record test results of pytest and unittest. This folder goes on PYTHONPATH and is never installed.

    _harness_pytest    a plugin, loaded by `-p _harness_pytest`
    _harness_unittest  replaces `python -m unittest`: run as `python -m _harness_unittest`
    _harness_report    describes how a process ended; the child driver uses it, too
    _harness_tests     the record that both write: one line of JSON when a test starts and one when it ends

No probed package has these names. Standard library only, Python 3.9 and later.
"""
