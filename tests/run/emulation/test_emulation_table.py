"""Every row of the table of the stand-in, called in a real torch."""

from __future__ import annotations

import json

import pytest
from rows import ROWS

SCRIPT = """
emulation = install(capability="8.6")
import contextlib, io, warnings
import torch
library = torch.library.Library("emulated", "DEF")
library.define("only_cuda(Tensor x) -> Tensor")
library.impl("only_cuda", lambda x: x, "CUDA")
def cpu(value): return value.device.type == "cpu"
def done(call): return call() is None
def under(context, call):
    with context: return call()
def entered(context): return under(context, lambda: True)
def gap(call):
    try: call()
    except emulation.EmulationGap: return True
def again(restore, _):
    first = torch.rand(3); restore()
    return torch.equal(first, torch.rand(3))
def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()
def saved(value):
    file = io.BytesIO(); torch.save(value, file); file.seek(0)
    return file
inside = sys.modules
told = {"names": list(inside["_harness_emulation.installing"].table(torch, emulation.CARDS["8.6"]))}
for name, expression in json.loads(os.environ["ROWS"]).items():
    try: told[name] = bool(eval(expression))
    except Exception as error: told[name] = f"{type(error).__name__}: {error}"
"""


@pytest.fixture(scope="module")
def told(torch_python, tmp_path_factory):
    return torch_python.tell(SCRIPT, tmp_path_factory.mktemp("rows"), ROWS=json.dumps(ROWS))


@pytest.mark.parametrize("name", ROWS)
def test_each_name_gives_the_right_answer(told, name):
    assert told[name] is True


def test_each_name_in_the_table_is_tested(told):
    assert set(told["names"]) <= set(ROWS)
