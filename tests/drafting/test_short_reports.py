"""Reports of a few lines, as many people write them: what can be told from a sentence is read."""

from __future__ import annotations

import pytest

from harness.drafting.draft import draft
from harness.drafting.source import read_report
from harness.model.repro import parse_repro


@pytest.fixture
def read(tmp_path):
    """Draft a repro from a text; returns the repro and the draft."""

    def of(text):
        path = tmp_path / "issue.md"
        path.write_text(text, encoding="utf-8")
        found = draft(read_report(str(path)), "issue")
        return parse_repro(found.source, name="issue"), found

    return of


def bounds(repro, project):
    found = repro.subjects[project]
    return found.good, found.bad


@pytest.mark.parametrize(
    "sentence",
    [
        "The loss is fine again when I go back to **peft==0.15.2**.",
        "It does not happen if I downgrade to peft==v0.15.2, same script.",
        "### Workaround\n` pip install peft==0.15.2 `\nworks.",
        "Workaround: with peft 0.15.2\neverything works",
    ],
)
def test_a_version_that_works_is_the_good_end(read, sentence):
    repro, _ = read(
        f"# Adapter is lost (peft 0.16.0)\n\nAfter updating to peft 0.16.0 the adapter is lost.\n\n{sentence}\n"
    )
    assert bounds(repro, "peft") == ("0.15.2", "0.16.0")


def test_a_list_of_pins_says_nothing_about_what_works(read):
    repro, _ = read("# Crash\n\npeft==0.16.0\ntorch==2.7.0\n\nWorks on another machine.\n")
    assert bounds(repro, "peft")[0] is None


def test_an_error_in_brackets_ends_with_them(read):
    repro, _ = read("# Saving fails [TypeError: save() got 3 arguments (2 wanted)] with adapters\n\npeft 0.16.0\n")
    assert repro.signature.exception == "TypeError"
    assert repro.signature.message.endswith("(2 wanted)")


def test_the_message_of_an_import_error_is_enough(read):
    text = (
        "# Pipelines can't be imported after an update\n\nUpdated transformers to 4.50.1.\n\n"
        "Failed to import diffusers.loaders.peft because of the following error (look up to see its traceback):\n"
        "cannot import name 'old_helper' from 'transformers.modeling_utils'\n"
    )
    repro, _ = read(text)
    assert repro.signature.exception == "ImportError"
    assert repro.signature.message == "cannot import name 'old_helper' from 'transformers.modeling_utils'"
    repro, _ = read(f"{text}\nwith:\nfrom diffusers import FluxPipeline\n")
    assert list(repro.subjects) == ["transformers"]  # of diffusers no version is told
    repro, _ = read("# Since 0.30 of diffusers\n\nit says: No module named 'diffusers.models.old_blocks'\n")
    assert repro.signature.exception == "ModuleNotFoundError"


def test_one_import_on_a_line_of_its_own_is_the_code(read):
    text = (
        "# Broken import\n\ntransformers 4.50.1, try:\nfrom diffusers import FluxPipeline, DDPMPipeline\n\nIt fails.\n"
    )
    repro, found = read(text)
    assert found.script.code == "from diffusers import FluxPipeline, DDPMPipeline"
    assert {"diffusers", "transformers==4.50.1"} <= set(repro.dependencies)
    _, found = read("# A question\n\nfrom peft import errors came up, with peft 0.16.0.\nfrom here on it is slow\n")
    assert found.script.code == ""


@pytest.mark.parametrize(
    "text",
    [
        "# Import fails\n\nOn 0.30.2, this\n\n    from diffusers.models import Old\n\nwill fail with this error\n\n"
        "    ImportError: cannot import name 'Old' from 'diffusers.models'\n",
        "# Import fails\n\nI am on v0.30.2 and `from diffusers.models import Old` gives\n"
        "ImportError: cannot import name 'Old' from 'diffusers.models'\n",
    ],
)
def test_a_version_alone_is_of_the_package_that_lacks_a_name(read, text):
    repro, found = read(text)
    assert found.told.installed == {"diffusers": "0.30.2"}
    assert "diffusers==0.30.2" in repro.dependencies


def test_a_version_alone_of_something_else_is_not_taken(read):
    text = "# Import fails\n\nOn Ubuntu 22.04.3, this fails:\n```python\nfrom diffusers import Old\n```\n"
    _, found = read(text)
    assert found.told.installed == {}


SCHEDULER = """# add_noise

diffusers 0.24.0

```python
import diffusers
import torch

scheduler = diffusers.DDIMScheduler.from_pretrained("some-lab/some-diffusion",
                                                    subfolder="scheduler", clip_sample=False)
scheduler.set_timesteps(10)
print(torch.ones(1), scheduler.timesteps)
```
"""


def test_a_scheduler_of_the_hub_is_made_with_its_own_settings(read):
    _, found = read(SCHEDULER)
    assert "scheduler = diffusers.DDIMScheduler(clip_sample=False)\n" in found.source
    assert not [gap for gap in found.gaps if "diffusion" in gap.what]
    assert any("DDIMScheduler" in text for text in found.stand_ins.replaced)


def test_the_second_argument_of_a_pipeline_is_its_model(read):
    _, found = read(
        "# It fails\n\ntransformers 4.53.0\n\n```python\nfrom transformers import pipeline\n"
        'print(pipeline("text-generation", "gpt2")("a"))\n```\n'
    )
    assert 'pipeline("text-generation", tiny_model("gpt2"))' in found.source


def test_code_that_is_only_indented_is_read(read):
    _, found = read("# It fails\n\npeft 0.16.0\n\n    model = load()\n    print(model.run(1))\n\nThat raises.\n")
    assert found.script.code == "model = load()\nprint(model.run(1))"


TWO_BLOCKS = """# Training fails

peft 0.16.0

```python
from peft import train
train(steps=1)
```

This is how I made the data:

```python
import json
rows = [json.dumps({"text": str(number)}) for number in range(10)]
with open("rows.json", "w") as file:
    file.writelines(rows)
```

Traceback (most recent call last):
  File "/home/me/run.py", line 2, in <module>
    train(steps=1)
  File "/e/lib/python3.11/site-packages/peft/__init__.py", line 7, in train
    raise ValueError("too few steps in all")
ValueError: too few steps in all
"""


def test_the_block_with_the_lines_of_the_traceback_is_the_script(read):
    _, found = read(TWO_BLOCKS)
    assert found.script.code == "from peft import train\ntrain(steps=1)"


STEPS = """# map is wrong

datasets 4.1.0

### Steps to reproduce

1. Make one

```python
import datasets
ds = datasets.Dataset.from_dict({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]})
print(ds.features, ds.num_rows, ds.column_names)
```

2. Map it

```python
assert ds.map(lambda x: {"d": x["a"]})["d"][0] == 1
```

### Workaround

```python
ds.to_pandas()
```
"""


def test_steps_in_blocks_of_their_own_are_one_script(read):
    _, found = read(STEPS)
    assert found.script.code.startswith("import datasets\n")
    assert found.script.code.endswith('["d"][0] == 1')
