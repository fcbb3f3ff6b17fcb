"""The values that all other packages use: frozen, without I/O, clock or output."""

from harness.model.lock import Change, Combination, Device, Lock, Mixture, Pin
from harness.model.observation import (
    Observation,
    Outcome,
    RaisedException,
    StackFrame,
    TestOutcome,
    TestResult,
    Trace,
)
from harness.model.release import Release, Target, is_prerelease, name_of, normalized_name, parsed_version
from harness.model.repro import Bounds, Given, Made, Repro
from harness.model.signature import Signature, capture_signature
from harness.model.verdict import Judgement, Verdict, judge
