"""The files of a run: fresh folders and no secrets before it, a log that is kept and read up to its damage after it."""

from __future__ import annotations

import gzip
import io
import marshal
import random
from pathlib import Path

import pytest

from harness.run.launch import (
    LOG_KEPT,
    OUTPUT_LIMIT,
    Limits,
    ScratchFolder,
    guard_request,
    keep_log,
    physical_memory,
    process_environment,
    read_log,
    repro_variables,
    scratch_folder,
)

PYTHON = Path("/envs/a/bin/python")
WHOLE = gzip.compress(random.Random(0).randbytes(200_000).hex().encode())


def test_a_verdict_on_the_cpu_never_comes_from_a_gpu():
    assert repro_variables({"layers": 2}, "cpu", 3) == {
        "HARNESS_PARAMS": '{"layers": 2}',
        "HARNESS_DEVICE": "cpu",
        "PYTHONHASHSEED": "3",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert "CUDA_VISIBLE_DEVICES" not in repro_variables({}, "cuda", 0)


def test_the_memory_limit_is_as_requested_or_nine_tenths_of_the_machine():
    assert Limits(1, memory=5).bytes == 5
    assert Limits(1).bytes == int(physical_memory() * 0.9)


def test_the_instructions_to_the_guard_follow_their_size():
    request = guard_request(["a"], Limits(1.5, 9), env={"B": "c\nd"}, cwd=Path("/"), output=Path("/log"))
    size, _, written = request.partition(b"\n")
    assert len(written) == int(size)
    told = marshal.loads(written)
    assert (told.pop("output_limit"), told.pop("sandbox")) == (OUTPUT_LIMIT, [])
    assert told == {
        "argv": ["a"],
        "env": {"B": "c\nd"},
        "cwd": "/",
        "wall_s": 1.5,
        "memory": 9,
        "output": "/log",
    }


def test_a_long_log_keeps_head_and_tail(tmp_path):
    lines = b"".join(b"%09d\n" % number for number in range(3_000_000))
    keep_log(io.BytesIO(lines), tmp_path / "log.gz")
    kept = gzip.decompress((tmp_path / "log.gz").read_bytes())
    assert kept.startswith(lines[: LOG_KEPT // 2])
    assert kept.endswith(lines[-(LOG_KEPT // 2) :])
    assert b"\n[harness: %d bytes of output left out here]\n" % (len(lines) - LOG_KEPT) in kept
    assert len(kept) < LOG_KEPT + 200


class Broken(io.BytesIO):
    """A log that cannot be read."""

    def read(self, size: int | None = -1) -> bytes:
        """Fail like a disk."""
        raise OSError("gone")


def test_a_log_is_kept_completely_or_not_at_all(tmp_path):
    keep_log(io.BytesIO(b"stepping\n"), tmp_path / "logs" / "one.gz")
    assert gzip.decompress((tmp_path / "logs" / "one.gz").read_bytes()) == b"stepping\n"
    with pytest.raises(OSError, match="gone"):
        keep_log(Broken(), tmp_path / "logs" / "two.gz")
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["one.gz"]


def environment(ours, **more):
    return process_environment(ScratchFolder(Path("/scratch/r1")), ours=ours, python=PYTHON, **more)


@pytest.mark.parametrize(
    "name",
    [
        "LANG",
        "LC_ALL",
        "TZ",
        "SSL_CERT_FILE",
        "LD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "OMP_WAIT_POLICY",
    ],
)
def test_harmless_variables_pass(name):
    assert environment({name: "value"})[name] == "value"


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "NVIDIA_API_KEY", "WANDB_API_KEY", "UV_INDEX_URL",
     "PIP_INDEX_URL", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "LD_PRELOAD", "OMP_NUM_THREADS_KEY"],
)  # fmt: skip
def test_all_other_variables_are_removed(name):
    assert name not in environment({name: "value"})


def test_waiting_threads_take_no_cpu_time_from_other_runs():
    assert environment({})["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_requested_variable_passes():
    assert environment({"HF_TOKEN": "secret", "OTHER": "x"}, pass_env=("HF_TOKEN",))["HF_TOKEN"] == "secret"


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        ("http://proxy:3128", True),
        ("proxy:3128", True),
        ("http://user:word@proxy:3128", False),
        ("user:word@proxy:3128", False),
    ],
)
def test_a_proxy_passes_only_without_credentials(url, passes):
    assert ("https_proxy" in environment({"https_proxy": url})) is passes


def test_every_cache_and_folder_is_inside_the_sandbox():
    ours = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR", "HF_HOME", "TRITON_CACHE_DIR"), "/home/me/x")
    made = environment(ours)
    assert all(
        made[name].startswith("/scratch/r1/") for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    )
    assert "/home/me/x" not in made.values()


def test_programs_of_the_environment_come_first():
    assert environment({"PATH": "/usr/bin"})["PATH"] == "/envs/a/bin:/usr/bin"


def test_extra_variables_take_precedence():
    assert environment({}, extra={"PYTHONHASHSEED": "7"})["PYTHONHASHSEED"] == "7"


def test_the_download_cache_of_the_user_is_shared_if_present(tmp_path):
    hub = tmp_path / ".cache" / "huggingface" / "hub"
    assert "HF_HUB_CACHE" not in environment({"HOME": str(tmp_path)})
    hub.mkdir(parents=True)
    assert environment({"HOME": str(tmp_path)})["HF_HUB_CACHE"] == str(hub)
    assert environment({"HF_HOME": str(hub.parent)})["HF_HUB_CACHE"] == str(hub)


def test_the_folder_is_removed_with_read_only_content(tmp_path):
    with scratch_folder(tmp_path / "scratch") as place:
        locked = place.work / "locked" / "deeper"
        locked.mkdir(parents=True)
        (locked / "file").write_text("x")
        (locked / "file").chmod(0o400)
        locked.chmod(0o500)
        locked.parent.chmod(0o000)
        (place.work / "link").symlink_to("/")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_folder_is_removed_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), scratch_folder(tmp_path):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_the_work_folder_starts_empty(tmp_path):
    with scratch_folder(tmp_path) as place:
        assert list(place.work.iterdir()) == []
        assert place.home.is_dir()
        assert place.temporary.is_dir()


def damaged(position):
    data = bytearray(WHOLE)
    for i in range(position, min(position + 40, len(data))):
        data[i] ^= 0x5A
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", WHOLE[:30_000], damaged(0), damaged(12), damaged(60_000), damaged(len(WHOLE) - 8), WHOLE + b"x"],
)
def test_a_damaged_log_is_read_up_to_the_damage(tmp_path, data):
    path = tmp_path / "log.gz"
    path.write_bytes(data)
    text = gzip.decompress(WHOLE).decode()
    assert read_log(path)[:1000] in (text[:1000], "")
    assert len(read_log(path)) <= len(text)


def test_a_missing_log_is_empty(tmp_path):
    assert read_log(tmp_path / "none") == ""
    assert read_log(tmp_path) == ""


def test_a_decompression_bomb_is_read_in_part(tmp_path):
    path = tmp_path / "log.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert LOG_KEPT <= len(read_log(path)) < LOG_KEPT + (1 << 20)


@pytest.mark.parametrize("name", ["NVIDIA_API_KEY", "NVIDIA_NGC_CLI", "NVIDIA_NIM", "LC_TOKEN", "LC_MINE"])
def test_a_variable_is_not_passed_for_the_beginning_of_its_name(tmp_path, name):
    with scratch_folder(tmp_path) as scratch:
        assert name not in process_environment(scratch, ours={name: "nvapi-hush"}, python=PYTHON)
