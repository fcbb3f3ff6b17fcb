"""A run sees fresh folders and no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.run.scratch_folder import ScratchFolder, process_environment, scratch_folder

PYTHON = Path("/envs/a/bin/python")


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
        ("http://[broken", False),
    ],
)
def test_a_proxy_passes_only_without_credentials(url, passes):
    assert ("https_proxy" in environment({"https_proxy": url})) is passes


def test_every_cache_and_folder_is_inside_the_sandbox():
    made = environment({"HOME": "/home/me", "XDG_CACHE_HOME": "/home/me/.cache", "TMPDIR": "/tmp"})
    places = (
        "HOME TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME HF_HOME TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR "
        "TORCH_EXTENSIONS_DIR CUDA_CACHE_PATH NUMBA_CACHE_DIR MPLCONFIGDIR"
    )
    assert all(made[name].startswith("/scratch/r1/") for name in places.split())


def test_programs_of_the_environment_come_first():
    assert environment({"PATH": "/usr/bin"})["PATH"] == "/envs/a/bin:/usr/bin"


def test_runs_are_repeatable_and_write_bytecode():
    made = environment({}, pycache_prefix=Path("/cache/pyc"))
    assert (made["PYTHONHASHSEED"], made["PYTHONPYCACHEPREFIX"]) == ("0", "/cache/pyc")
    assert "PYTHONPYCACHEPREFIX" not in environment({})


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
