"""Answers as a search gives them, made by hand for the tests of reports."""

from __future__ import annotations

from attrs import evolve
from support import changed, make_answer

from harness.model import (
    Change,
    Device,
    Lock,
    Observation,
    Outcome,
    Pin,
    RaisedException,
    Repro,
    Signature,
    StackFrame,
    Verdict,
)
from harness.model.boundary import Candidate
from harness.model.culprit import Commit, Finding, Level, Proof, Region
from harness.model.verdict import Step
from harness.report.archive import StoredAnswer

SOURCE = '# /// script\n# dependencies = ["shop", "till"]\n# ///\nimport shop\n\nshop.sell()\n'
DIFF = "@@ -10,3 +10,3 @@\n def sell():\n-    return price(1)\n+    return price()\n"


def lock_of(**versions: str) -> Lock:
    """A lock of these distributions."""
    pins = tuple(Pin(name, version, f"{name}-{version}.whl", "ab" * 32) for name, version in versions.items())
    return Lock("3.11.7", "linux-x86_64", pins)


GOOD_LOCK = lock_of(shop="1.1", till="3.0", coin="0.9", tail="7")
BAD_LOCK = lock_of(shop="1.2", till="3.0", coin="1.0", tail="7")


def frames_of(depth: int = 3) -> tuple[StackFrame, ...]:
    """From the repro through a foreign package into the culprit's, and out again."""
    inner = tuple(StackFrame(f"tail/{n}.py", n + 1, f"step{n}", "tail", f"call({n})") for n in range(depth))
    return (
        StackFrame("sale.py", 6, "<module>", "", "shop.sell()"),
        *inner,
        StackFrame("shop/money.py", 11, "sell", "shop", "return price()"),
        StackFrame("tail/end.py", 9, "stop", "tail", "raise ValueError"),
    )


GOOD_RUN = Observation(
    key="good0000000000000000",
    outcome=Outcome.COMPLETED,
    repro="sale",
    repro_digest="d",
    device=Device.CPU,
    lock=GOOD_LOCK,
    requirements=("shop==1.1", "till"),
    started="2026-01-02T03:04:05+00:00",
    metrics={"loss": 1.5},
    log="good.log.gz",
)
BAD_RUN = evolve(
    GOOD_RUN,
    key="bad00000000000000000",
    outcome=Outcome.RAISED,
    lock=BAD_LOCK,
    requirements=("shop==1.2", "till"),
    exception=RaisedException("builtins.ValueError", "no price\nnot even a small one", frames=frames_of()),
    metrics={},
)
REVERTED = Proof("shop 1.2 with sell from 1.1", Verdict.GOOD, Verdict.GOOD, "ran to its end", GOOD_RUN)
ADVANCED = Proof("shop 1.1 with sell from 1.2", Verdict.BAD, Verdict.BAD, "ValueError", BAD_RUN)
UNPROVED = Proof("shop 1.1 with sell from 1.2", Verdict.BAD, Verdict.SKIP, "does not import")


SHOP = Change("shop", "1.1", "1.2")


def found(*proofs: Proof, package: Change = SHOP) -> tuple[Finding, ...]:
    """A culprit down to its region."""
    region = Region("shop/money.py", (10, 11), (10, 11), "sell", DIFF)
    level = Finding(Level.REGION, (package,), ("shop/money.py",), (region,), proofs, candidates=4, runs=3, unresolved=1)
    return (Finding(Level.PACKAGE, (package,), proofs=(REVERTED, ADVANCED)), level)


REPRO = Repro(name="sale", digest="d", source=SOURCE, dependencies=("shop", "till"), summary="Sells a thing.")
ANSWER = make_answer(
    "shop",
    repro=REPRO,
    requirements=("till",),
    holds=("coin<2",),
    sentence="sale fails since shop 1.2.",
    signature=Signature(exception="ValueError"),
    candidates=tuple(Candidate(f"1.{minor}", f"2025-0{minor + 1}-01") for minor in (0, 1, 2, 3, 4, 5)),
    steps=(
        Step("1.4", Verdict.BAD, "ValueError: no price", "o4", cached=False, seconds=2.5),
        Step("1.0", Verdict.GOOD, "ran to its end", "o0", cached=True, seconds=0.0),
        Step("1.2", Verdict.BAD, "ValueError: no price", BAD_RUN.key, cached=False, seconds=2.0),
        Step("1.1", Verdict.GOOD, "ran to its end", GOOD_RUN.key, False, 2.0, drift=("coin 1.0 -> 0.9 (not held)",)),
        Step("1.3", Verdict.SKIP, "failed differently: a|b `c`", "o3", cached=False, seconds=1.0),
    ),
    before="1.1",
    after="1.2",
    suspects=("1.2",),
    python="3.11.7",
    left_out={"1.3.1": "yanked: it burns"},
    sides=(GOOD_RUN, BAD_RUN),
    findings=found(REVERTED, ADVANCED),
    probes=4,
)
KEPT = StoredAnswer("ab12cd34ef", ANSWER, "2026-01-02T03:05:00+00:00")


def altering(altered: dict[str, tuple[str, ...]]) -> StoredAnswer:
    """The kept answer, with a run of each of these releases that changed files of its environment."""
    step = ANSWER.steps[0]
    return kept(steps=(*ANSWER.steps, *(evolve(step, release=name, altered=files) for name, files in altered.items())))


def kept(**changes: object) -> StoredAnswer:
    """The kept answer with parts of its answer exchanged."""
    return evolve(KEPT, answer=changed(ANSWER, **changes))


COMMIT = Commit(
    "0123456789abcdef0123456789abcdef01234567",
    "A. Author",
    "2025-06-20T12:00:00+02:00",
    "Rework | the <b>price</b> (#42)",
    pull_request=42,
    link="https://github.com/a/shop/commit/0123456789abcdef0123456789abcdef01234567",
    pull_request_link="https://github.com/a/shop/pull/42",
)
# A clear screen, a link (OSC 8), a C1 escape, and marks that show the text in another order.
HOSTILE_MARKS = "\x1b[2Jevil \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x9b2J \u202egnp.exe \u2066\u200f"


def down_to_commit(commit: Commit = COMMIT) -> tuple[Finding, ...]:
    """The culprit of the example answer, with a commit."""
    assert ANSWER.findings
    region = ANSWER.findings[-1]
    proofs = (evolve(REVERTED, sentence="commit aaaa"), evolve(ADVANCED, sentence="commit 0123"))
    finding = evolve(region, level=Level.COMMIT, proofs=proofs, commits=(commit,))
    return (*ANSWER.findings, finding)
