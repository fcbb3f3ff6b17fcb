"""What all forks have in common must not make an innocent change part of the culprit."""

from __future__ import annotations

from planted import levels, proved

# A process that was forked after the import has another id than the one that `shop_base` noted.
BASE = """\
import os

PID = os.getpid()


def check(flags):
    if flags[{culprit}] or (flags[{innocent}] and os.getpid() != PID):
        raise RuntimeError('the step is broken')
"""
MANY = 12


def shop(*, newer):
    part = "def flag():\n    return {}\n"
    init = "import shop_base\n" + "".join(f"from shop.parts import p{n}\n" for n in range(MANY))
    init += f"\n\ndef run():\n    shop_base.check([{', '.join(f'p{n}.flag()' for n in range(MANY))}])\n"
    parts = {f"shop/parts/p{n}.py": part.format(newer) for n in range(MANY)}
    return {
        "shop/__init__.py": init,
        "shop_base.py": BASE.format(culprit=10, innocent=5),
        "shop/parts/__init__.py": "",
        **parts,
    }


def test_a_bug_of_all_forks_adds_no_innocent_file(plant):
    plant.shops(shop(newer=False), shop(newer=True))
    answer = plant.answer()
    found = levels(answer)["file"]
    assert found["files"] == ["shop/parts/p10.py"], found
    assert proved(found)
