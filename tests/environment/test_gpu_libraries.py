"""Without a GPU, NVIDIA's libraries are left out: PyTorch's own libraries load, and find functions that fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve
from support import make_parts
from wheelhouse import Wheelhouse, free_port_url

from harness.environment import Environment, PipSettings
from harness.environment.without_gpu import needed_by, uncalled
from harness.environment.workspace import site_packages
from harness.model import Combination, Lock, Outcome, Pin
from harness.model.repro import parse_repro
from harness.probing import Probe

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a compiler of C"
)

LIBRARIES = {
    "libcublas.so.12": "int cublasCreate_v2(void) { return 0; }\n",
    "libcudnn.so.9": "long cudnnGetVersion(void) { return 0; }\n"
    "int cudnnGetProperty(int n, int *out) { return 0; }\n"
    "char *cudnnGetErrorString(int n) { return 0; }\n",
    "libnccl.so.2": "int ncclInit(void) { return 0; }\n",
}
WITH_VERSIONS = ("libcublas.so.12", "libcudnn.so.9")
TORCH = """
int cublasCreate_v2(void); long cudnnGetVersion(void); char *cudnnGetErrorString(int); int ncclInit(void);
int cudnnGetProperty(int, int *);
int (*taken)(void) = ncclInit; /* must be there when the library is loaded */
int create(void) { return cublasCreate_v2(); }
long version(void) { return cudnnGetVersion(); }
int part(int n) { int out = -1; return cudnnGetProperty(n, &out) ? -2 : out; }
char *words(void) { return cudnnGetErrorString(1); }
"""
INIT = """
import ctypes, os
_C = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libtorch_cuda.so"))
_C.words.restype = ctypes.c_char_p
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """An index with a torch that needs three libraries, and the packages that have them."""
    folder = tmp_path_factory.mktemp("compiled")

    def compiled(name, source, *options):
        (folder / "source.c").write_text(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / name, folder / "source.c", *options], check=True)
        return (folder / name).read_bytes()

    for name, source in LIBRARIES.items():
        (folder / "versions").write_text(f"{name} {{ global: *; }};\n")
        versions = [f"-Wl,--version-script={folder / 'versions'}"] if name in WITH_VERSIONS else []
        compiled(name, source, f"-Wl,-soname,{name}", *versions)
    torch = compiled(
        "libtorch_cuda.so",
        TORCH,
        "-Wl,-z,lazy,--no-as-needed,-rpath,$ORIGIN/../../nvidia/lib:$ORIGIN",
        *(str(folder / name) for name in LIBRARIES),
    )
    made = Wheelhouse(tmp_path_factory.mktemp("house"))
    requires = ("nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.5.1.17", "nvidia-nccl-cu12==2.26.2")
    files = {"torch/__init__.py": INIT, "torch/lib/libtorch_cuda.so": torch}
    made.add("torch", "2.7.0", files=files, requires=requires)
    for requirement, name in zip(requires, LIBRARIES, strict=True):
        project, _, version = requirement.partition("==")
        content = (folder / name).read_bytes()
        made.add(project, version, files={f"nvidia/lib/{name}": content, f"{name[:6]}.bin": content * 200})
    return made


@pytest.fixture
def parts(tmp_path, house, interpreter):
    """The parts of a probe on a machine without a GPU that can't reach PyTorch's builds for CPUs."""
    parts = make_parts(tmp_path, PipSettings(index_url=house.url), tmp_path / "uv", interpreter)
    uv = parts.builder.uv
    uv = evolve(uv, extra_environment={**uv.extra_environment, "ALL_PROXY": free_port_url(), "NO_PROXY": ""})
    builder = evolve(parts.builder, uv=uv, has_gpu_libraries=False)
    return evolve(parts, builder=builder, prober=evolve(parts.prober, builder=builder))


def ran(parts, body):
    imports = "import torch\nfrom importlib.metadata import version\n"
    repro = parse_repro(f"# /// script\n# dependencies = ['torch']\n# ///\n{imports}{body}", name="x")
    prepared = parts.prober.prepare(Probe(repro, Combination(parts.resolver.interpreter.version, ("torch",))))
    return parts.prober.execute(prepared)


def test_torch_loads_and_its_calls_fail(parts):
    seen = ran(
        parts,
        "assert torch._C.create() == 1\n"
        "assert torch._C.version() == 90501\n"
        "assert [torch._C.part(n) for n in (0, 1, 2)] == [9, 5, 1]\n"
        "assert torch._C.words().startswith(b'this library of NVIDIA was left out')\n"
        "assert version('nvidia-cudnn-cu12') == '9.5.1.17'\n",
    )
    assert seen.outcome is Outcome.COMPLETED, seen.exception
    assert seen.drift == (
        "3 packages of NVIDIA's libraries left out, because no GPU is here to call them on "
        "(--torch-backend none installs them)",
    )
    assert seen.altered == ()
    assert seen.lock.version_of("nvidia-cublas-cu12") == "12.6.4.1"
    assert not list(parts.workspace.root.rglob("libnc*.bin"))


def test_a_gpu_gets_an_environment_of_its_own(parts):
    lock = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, ("torch",))).lock
    without, full = parts.builder.build(lock), evolve(parts.builder, has_gpu_libraries=True).build(lock)
    assert isinstance(without, Environment)
    assert isinstance(full, Environment)
    assert without.folder != full.folder
    assert full.clashes == ()
    assert (site_packages(full.folder) / "nvidia" / "lib" / "libcublas.so.12").exists()
    assert not (site_packages(without.folder) / "nvidia").exists()
    assert parts.builder.build(lock) == without  # compared with its manifest


def test_where_the_user_gets_the_environment_nothing_is_left_out(parts, tmp_path):
    lock = parts.resolver.resolve(Combination(parts.resolver.interpreter.version, ("torch",))).lock
    parts.builder.give(lock, tmp_path / "mine")
    assert (site_packages(tmp_path / "mine") / "nvidia" / "lib" / "libcublas.so.12").exists()


def test_only_what_no_cpu_calls_is_left_out():
    cuda = ("nvidia-cublas-cu12", "nvidia-cudnn-cu13", "nvidia-cusparselt-cu12", "nvidia-nvshmem", "nvidia-cuda-nvrtc")
    kept = ("nvidia-cuda-runtime-cu12", "nvidia-ml-py", "nvidia-cuda-cupti", "nvidia-cudnn-frontend", "triton", "numpy")
    pins = [Pin(name, "1.0") for name in (*cuda, *kept)]
    assert {pin.name for pin in uncalled(Lock("3.11", "linux", [*pins, Pin("torch", "2.7.0")]))} == set(cuda)
    assert uncalled(Lock("3.11", "linux", pins)) == ()
    assert uncalled(Lock("3.11", "linux", [*pins, Pin("torch", "2.7.0+cu128")])) == ()


def test_a_file_that_is_no_library_needs_nothing(tmp_path):
    for content in (b"", b"INPUT(libc.so.6)", b"\x7fELF\x02\x01\x01" + bytes(80), b"\x7fELF\x01"):
        (tmp_path / "x.so").write_bytes(content)
        assert needed_by(tmp_path / "x.so").libraries == frozenset()
    assert needed_by(Path("/nowhere")).libraries == frozenset()
