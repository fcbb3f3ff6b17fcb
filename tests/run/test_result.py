"""From the end of a process to an outcome, case by case."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve

from harness.model import Device, Outcome, RaisedException, Signature
from harness.run.launch import Limits
from harness.run.process import Ended, EndReason
from harness.run.result import _KILLED, Ran, as_the_bug, classify
from harness.run.result import ChildReport as Report

LIMITS = Limits(300, 2**30)
DONE = Ended(returncode=0, reason=EndReason.ENDED, seconds=1.0, peak_memory=1)
KILLED = evolve(DONE, returncode=-9)


def of(ended=DONE, report=None, device=Device.CPU, printed="", *, is_command=False):
    return classify(ended, report, device=device, limits=LIMITS, printed=printed, is_command=is_command)


def raised(
    type_="builtins.RuntimeError",
    message="",
    *,
    bases=("builtins.Exception",),
    cause=None,
    chain=(),
    stage="script",
):
    exception = RaisedException(type_, message, bases=bases, cause=cause)
    return Report("raised", stage=stage, exception=exception, chain=((type_, message), *chain))


def of_raised(*arguments, device=Device.CPU, **more):
    return of(evolve(DONE, returncode=1), raised(*arguments, **more), device)


@pytest.mark.parametrize(
    ("ended", "report", "outcome", "detail"),
    [
        (evolve(DONE, reason=EndReason.OUTPUT), None, Outcome.TOO_MUCH_OUTPUT, "printed more than 1.0 GiB"),
        (DONE, Report("completed"), Outcome.COMPLETED, "ran to its end"),
        (evolve(KILLED, reason=EndReason.TIMEOUT), None, Outcome.TIMED_OUT, "timed out after 300 s"),
        (
            evolve(KILLED, reason=EndReason.TIMEOUT),
            Report("completed"),
            Outcome.TIMED_OUT,
            "timed out after 300 s: the script ended, its process did not",
        ),
        (
            evolve(KILLED, reason=EndReason.MEMORY),
            None,
            Outcome.OUT_OF_MEMORY,
            "used more than 1.0 GiB of memory",
        ),
        (
            evolve(KILLED, oom_killed=True),
            None,
            Outcome.OUT_OF_MEMORY,
            "killed by the system: out of memory",
        ),
        (
            evolve(DONE, returncode=137, oom_killed=True),
            None,
            Outcome.OUT_OF_MEMORY,
            "killed by the system: out of memory",
        ),
        (KILLED, None, Outcome.MACHINE_FAILED, "killed by SIGKILL from outside, not at a limit of the run"),
        (evolve(DONE, returncode=137), None, Outcome.EXITED, "exit code 137"),
        (evolve(DONE, oom_killed=True), Report("completed"), Outcome.COMPLETED, "ran to its end"),
        (evolve(DONE, returncode=-11), None, Outcome.CRASHED, "killed by SIGSEGV"),
        (
            evolve(DONE, returncode=-11),
            Report("completed"),
            Outcome.CRASHED,
            "killed by SIGSEGV after the script had ended",
        ),
        (
            evolve(DONE, returncode=125),
            None,
            Outcome.DECLINED,
            "exit code 125: the repro can't tell",
        ),
        (
            evolve(DONE, returncode=125),
            Report("exit"),
            Outcome.DECLINED,
            "exit code 125: the repro can't tell",
        ),
        (evolve(DONE, returncode=3), Report("exit"), Outcome.EXITED, "exit code 3"),
        (evolve(DONE, returncode=3), Report("completed"), Outcome.EXITED, "exit code 3"),
        (
            evolve(DONE, returncode=1),
            Report("exit", message="no\ndata"),
            Outcome.EXITED,
            "exit code 1: no data",
        ),
    ],
)
def test_the_end_of_a_process_gives_the_outcome(ended, report, outcome, detail):
    assert of(ended, report) == (outcome, detail)


@pytest.mark.parametrize("report", [None, Report("exit"), Report("forked")])
def test_exit_code_0_without_a_final_report_is_not_success(report):
    assert of(DONE, report)[0] is Outcome.NO_REPORT


def test_exit_code_0_of_a_command_is_success():
    assert of(DONE, None, is_command=True) == (Outcome.COMPLETED, "ran to its end")


def test_a_killed_guard_is_not_a_crash():
    assert of(evolve(KILLED, reason=EndReason.LOST))[0] is Outcome.NO_REPORT


def test_an_exception_is_reported_with_its_message():
    assert of_raised("builtins.ModuleNotFoundError", "No module named 'x'") == (
        Outcome.RAISED,
        "ModuleNotFoundError: No module named 'x'",
    )
    assert of_raised("a.b.Odd")[1] == "Odd"


def test_an_exception_outranks_a_hang_at_exit():
    for ended in (evolve(KILLED, reason=EndReason.TIMEOUT), evolve(DONE, returncode=-11)):
        assert of(ended, raised(message="boom")) == (Outcome.RAISED, "RuntimeError: boom")


@pytest.mark.parametrize(
    ("type_", "bases", "message"),
    [
        ("builtins.MemoryError", (), ""),
        ("numpy._core._exceptions._ArrayMemoryError", ("builtins.MemoryError",), "Unable to allocate 1 TiB"),
        ("torch.OutOfMemoryError", ("builtins.RuntimeError",), "CUDA out of memory. Tried to allocate 2 GiB"),
        ("torch.cuda.OutOfMemoryError", (), "x"),
        ("builtins.RuntimeError", (), "CUDA out of memory."),
        ("builtins.RuntimeError", (), "CUDA error: out of memory"),
        ("builtins.RuntimeError", (), "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        ("builtins.OSError", (), "[Errno 12] Cannot allocate memory"),
    ],
)
@pytest.mark.parametrize("device", list(Device))
def test_out_of_memory_is_recognised_on_every_device(type_, bases, message, device):
    assert of_raised(type_, message, bases=bases, device=device)[0] is Outcome.OUT_OF_MEMORY
    wrapped = RaisedException(type_, message, bases=bases)
    assert of_raised(message="step failed", cause=wrapped, device=device)[0] is Outcome.OUT_OF_MEMORY


_NO_DRIVER = "Found no NVIDIA driver on your system."


_TOO_OLD = "CUDA driver version is insufficient for CUDA runtime version"


_NO_KERNEL = "CUDA error: no kernel image is available for execution on the device"


_NOT_COMPILED = "Torch not compiled with CUDA enabled"


_BUSY = "CUDA error: all CUDA-capable devices are busy or unavailable"


_LIBCUDA = "libcuda.so.1: cannot open shared object file"


@pytest.mark.parametrize(
    ("message", "on_cuda", "on_emulated"),
    [
        (_NO_DRIVER, Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        (_TOO_OLD, Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        (_NO_KERNEL, Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        (_NOT_COMPILED, Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        (_BUSY, Outcome.MACHINE_FAILED, Outcome.EMULATION_GAP),
        (_LIBCUDA, Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        ("uncorrectable ECC error encountered", Outcome.MACHINE_FAILED, Outcome.RAISED),
        ("CUDA error: unspecified launch failure", Outcome.MACHINE_FAILED, Outcome.EMULATION_GAP),
        ("no CUDA-capable device is detected", Outcome.DEVICE_FAILED, Outcome.EMULATION_GAP),
        ("invalid device context", Outcome.RAISED, Outcome.EMULATION_GAP),
        ("CUDA error: an illegal memory access was encountered", Outcome.RAISED, Outcome.EMULATION_GAP),
        ("Trying to backward through the graph a second time", Outcome.RAISED, Outcome.RAISED),
    ],
)
def test_device_messages_are_read_per_device(message, on_cuda, on_emulated):
    assert of_raised(message=message, device=Device.CPU)[0] is Outcome.RAISED
    assert of_raised(message=message, device=Device.CUDA)[0] is on_cuda
    assert of_raised(message=message, device=Device.EMULATED)[0] is on_emulated


@pytest.mark.parametrize("device", list(Device))
def test_a_gap_counts_anywhere_in_the_chain(device):
    gap = ("_harness_emulation.gaps.EmulationGap", "torch.cuda.Graph")
    found = of_raised(message="step failed", chain=(("builtins.KeyError", "x"), gap), device=device)
    assert found == (Outcome.EMULATION_GAP, "EmulationGap: torch.cuda.Graph")


def test_an_unrelated_handled_exception_is_ignored():
    chain = (("builtins.OSError", _LIBCUDA),)
    assert of_raised(message="boom", chain=chain, device=Device.EMULATED)[0] is Outcome.RAISED


def test_a_stand_in_that_fails_to_install_is_a_gap():
    outcome, detail = of_raised("builtins.ImportError", "no torch", stage="emulation", device=Device.EMULATED)
    assert outcome is Outcome.EMULATION_GAP
    assert detail == "the stand-in for CUDA can't be set up: ImportError: no torch"


@pytest.mark.parametrize(
    ("printed", "outcome"),
    [
        ("E   torch.OutOfMemoryError: CUDA out of memory. Tried\n", Outcome.OUT_OF_MEMORY),
        ("  what():  CUDA out of memory.\n", Outcome.OUT_OF_MEMORY),
        (f"RuntimeError: {_NO_KERNEL}\n", Outcome.DEVICE_FAILED),
        ("it once said CUDA out of memory here\n", Outcome.EXITED),
        ("AssertionError: 2 != 3\n", Outcome.EXITED),
    ],
)
def test_without_a_report_error_lines_are_read(printed, outcome):
    assert of(evolve(DONE, returncode=1), printed=printed, device=Device.CUDA)[0] is outcome
    assert of(printed=printed, device=Device.CUDA, is_command=True)[0] is Outcome.COMPLETED


def test_with_a_report_output_is_not_read():
    printed = "RuntimeError: CUDA out of memory\n"
    assert of(evolve(DONE, returncode=3), Report("exit"), printed=printed)[0] is Outcome.EXITED


def test_every_end_has_an_outcome_and_one_line_of_detail():
    reports = (
        None,
        Report("completed"),
        Report("exit", message="a\nb"),
        raised(message="a\nb"),
        Report("raised"),
    )
    codes = (0, 1, 125, 127, 137, 255, -6, -9, -11, -40, -64)
    for reason, code, oom, report, device in itertools.product(EndReason, codes, (True, False), reports, Device):
        ended = evolve(DONE, reason=reason, returncode=code, oom_killed=oom)
        outcome, detail = of(ended, report, device, printed="ValueError: a\n")
        assert outcome.ran
        assert detail
        assert "\n" not in detail
        assert (outcome is Outcome.COMPLETED) <= (code == 0)


SERVER_FAILED = "503 Server Error: Service Unavailable for url: https://huggingface.co/model"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HTTPError", SERVER_FAILED),
        ("HTTPError", "429 Client Error: Too Many Requests for url: https://huggingface.co/model"),
        ("HTTPStatusError", "Server error '502 Bad Gateway' for url 'https://huggingface.co/model'"),
        ("ClientResponseError", "429, message='Too Many Requests', url='https://huggingface.co/model'"),
        ("HTTPError", "HTTP Error 503: Service Unavailable"),
        ("OSError", "[Errno 28] No space left on device"),
    ],
)
def test_servers_and_disks_fail_a_run_on_any_device(name, message):
    for device in Device:
        assert of_raised(f"some.{name}", message, device=device)[0] is Outcome.MACHINE_FAILED
    assert of(evolve(DONE, returncode=1), printed=f"{name}: {message}\n")[0] is Outcome.MACHINE_FAILED
    caused = raised(cause=RaisedException(f"some.{name}", message))
    assert of(evolve(DONE, returncode=1), caused)[0] is Outcome.MACHINE_FAILED


@pytest.mark.parametrize(
    "message",
    [
        "500 Server Error: Internal Server Error for url: http://localhost:8000/step",
        "Server error '500 Internal Server Error' for url 'http://testserver/step'",
        "Server error '503 Service Unavailable' for url 'https://www.example.org/step'",
        "Server error '503 Service Unavailable' for url 'http://api.test:8000/step'",
        "404 Client Error: Not Found for url: https://huggingface.co/model",
    ],
)
def test_a_server_of_the_test_and_a_missing_page_are_no_fault_of_the_machine(message):
    assert of_raised("some.HTTPError", message)[0] is Outcome.RAISED


def test_what_the_driver_printed_counts_whatever_was_raised():
    printed = "NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n"
    run = (evolve(DONE, returncode=1), raised(message="boom"))
    assert of(*run, Device.CUDA, printed)[0] is Outcome.MACHINE_FAILED
    assert of(*run, Device.CPU, printed)[0] is Outcome.RAISED


def ran(outcome, message="", *, exit_code=1, detail=""):
    exception = RaisedException("builtins.RuntimeError", message) if message else None
    return Ran(outcome=outcome, detail=detail or message, exit_code=exit_code, exception=exception)


LAUNCH, MEMORY = "CUDA error: unspecified launch failure", "CUDA out of memory. Tried to allocate 2 GiB"


@pytest.mark.parametrize(
    ("signature", "result", "outcome"),
    [
        (Signature(exception="RuntimeError"), ran(Outcome.MACHINE_FAILED, LAUNCH), Outcome.MACHINE_FAILED),
        (Signature(message="launch failure"), ran(Outcome.MACHINE_FAILED, LAUNCH), Outcome.MACHINE_FAILED),
        (Signature(message=LAUNCH), ran(Outcome.MACHINE_FAILED, LAUNCH), Outcome.RAISED),
        (Signature(message=LAUNCH, captured=True), ran(Outcome.MACHINE_FAILED, LAUNCH), Outcome.MACHINE_FAILED),
        (Signature(exception="RuntimeError"), ran(Outcome.OUT_OF_MEMORY, MEMORY), Outcome.OUT_OF_MEMORY),
        (Signature(exception="torch.OutOfMemoryError"), ran(Outcome.OUT_OF_MEMORY, MEMORY), Outcome.RAISED),
        (Signature(output="CUDA out of memory"), ran(Outcome.OUT_OF_MEMORY), Outcome.EXITED),
        (Signature(crash=True), ran(Outcome.MACHINE_FAILED, exit_code=None, detail=_KILLED), Outcome.MACHINE_FAILED),
        (Signature(exit_code=137), ran(Outcome.MACHINE_FAILED, exit_code=None, detail=_KILLED), Outcome.EXITED),
    ],
)
def test_a_failure_of_the_machine_is_the_bug_only_if_the_signature_names_it(signature, result, outcome):
    assert as_the_bug(result, signature, Device.CUDA).outcome is outcome
