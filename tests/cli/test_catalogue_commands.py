"""`harness repros` shows the catalogue, `harness match` looks a traceback up; both say what to do with nothing."""

from __future__ import annotations

LOG = """numpy==1.26.4
Traceback (most recent call last):
  File "/srv/train.py", line 3, in <module>
    x.astype(np.int)
  File "/srv/venv/lib/python3.11/site-packages/numpy/__init__.py", line 319, in __getattr__
    raise AttributeError(__former_attrs__[attr])
AttributeError: module 'numpy' has no attribute 'int'.
"""


def matched(harness, text, *words):
    (harness.folder / "train.log").write_text(text)
    return harness("match", "train.log", *words)


def test_all_are_listed_and_one_is_shown(harness):
    listed = harness("repros")
    assert listed.code == 0
    assert "numpy_int_alias" in listed.stdout
    shown = harness("repros", "numpy_int_alias").stdout
    for text in (
        "releases: numpy from 1.24.0 on",
        "workaround: Write int",
        "harness bisect numpy --repro numpy_int_alias",
    ):
        assert text in shown


def test_words_choose_and_nothing_found_is_a_mistake(harness):
    *found, _, counted = harness("repros", "numpy", "attribute").stdout.splitlines()
    assert all("numpy" in line for line in found)
    assert counted == f"{len(found)} known regressions; harness repros NAME shows one"
    none = harness("repros", "numpy", "quaternion")
    assert none.code == 2
    assert "no known regression with 'numpy quaternion'" in none.stderr


def test_a_known_traceback(harness):
    found = matched(harness, LOG)
    assert found.code == 0
    assert found.stdout.startswith("looks like a known regression of numpy: 1.26.4 has it\nnumpy_int_alias: ")


def test_an_installed_version_that_does_not_have_it(harness):
    found = matched(harness, LOG.replace("1.26.4", "1.23.0"))
    assert found.code == 3
    assert "but 1.23.0 does not have it" in found.stdout


def test_an_unrelated_traceback_and_a_log_without_one(harness):
    assert matched(harness, LOG.replace("'int'", "'quaternion'")).code == 1
    nothing = matched(harness, "epoch 1: loss 0.5\n")
    assert nothing.code == 2
    assert "no exception in train.log" in nothing.stderr
    missing = harness("match", "gone.log")
    assert missing.code == 2
    assert "can't read gone.log" in missing.stderr
