"""What is installed on a machine without a GPU instead of gigabytes that no run there can call.

PyTorch's builds for CPUs, where uv can get them, are a tenth of what a build for CUDA downloads. The release is the one
that was resolved from the main index, which has dates; only the file differs. uv knows where the builds are. What it
found is remembered, also that it can't reach them, so that a machine without them asks seldom.

PyTorch's builds for CUDA need NVIDIA's libraries to be loaded, but call them only for tensors on a GPU. In their place
are their metadata, which say that they are installed, and libraries with the same names whose functions return an
error. These are in the ELF format for x86-64, with the names of elf(5).
"""

from __future__ import annotations

import mmap
import platform
import re
import struct
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from packaging.version import InvalidVersion, Version

from harness.environment.attempt import read_lock
from harness.environment.workspace import Workspace, site_packages
from harness.errors import IndexFault, NoNetwork
from harness.events import SILENT, Note, Reporter
from harness.model import Lock, Pin
from harness.model.text import counted, listed
from harness.records import read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.environment.interpreter import Interpreter
    from harness.environment.uv import Uv


BACKEND = "cpu"
_PROJECTS = ("torch", "torchvision", "torchaudio")
_ASK_AGAIN_S = 86400.0
_QUICKLY = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
# Their own code for CUDA is chosen by PyTorch's build (`torch.version.cuda`), also with the stand-in for CUDA.
_NEED_CUDA = re.compile(
    "apex|auto-gptq|bitsandbytes|causal-conv1d|deepspeed|fbgemm-gpu|flash-attn|flashinfer-python|gptqmodel"
    "|liger-kernel|mamba-ssm|sglang|torch-tensorrt|torchcodec|torchrec|unsloth|unsloth-zoo|vllm|xformers"
)


@frozen
class _Known:
    """The builds that were found by what was asked for, and when uv could not reach them (seconds since the epoch)."""

    builds: dict[str, tuple[Pin, ...]] = field(factory=dict)
    unreachable: float = 0.0


@frozen
class CpuBuilds:
    """The builds for CPUs that uv finds for one interpreter; `reporter` is told once if it can't reach them."""

    uv: Uv
    interpreter: Interpreter
    workspace: Workspace
    reporter: Reporter = SILENT
    _builds: dict[str, tuple[Pin, ...]] = field(factory=dict, init=False, repr=False, eq=False)
    _asking: threading.Lock = field(factory=threading.Lock, init=False, repr=False, eq=False)

    def of(self, lock: Lock) -> tuple[Pin, ...]:
        """The builds of the releases of PyTorch in a lock, () unless there is one for each, and nothing needs CUDA."""
        if any(_NEED_CUDA.fullmatch(pin.name) for pin in lock.pins):
            return ()
        requirements = " ".join(f"{pin.name}=={pin.version}" for pin in lock.pins if pin.name in _PROJECTS)
        with self._asking:
            if requirements not in self._builds:
                self._builds[requirements] = self._known().builds.get(requirements) or self._ask(requirements)
            return self._builds[requirements]

    @property
    def _path(self) -> Path:
        return self.workspace.records / f"cpu-builds-{self.interpreter.cache_tag}-{self.interpreter.platform}.json"

    def _known(self) -> _Known:
        return read_record(self._path, _Known) or _Known()

    def _ask(self, requirements: str) -> tuple[Pin, ...]:
        known = self._known()
        if not requirements or 0 <= time.time() - known.unreachable < _ASK_AGAIN_S:
            return ()
        uv = evolve(self.uv, extra_environment={**self.uv.extra_environment, **_QUICKLY})
        options = ("--no-deps", "--torch-backend", BACKEND)
        try:
            answer, lock = uv.compile(requirements.split(), *options, python=self.interpreter.path)
        except (NoNetwork, IndexFault):
            write_record(self._path, evolve(known, unreachable=time.time()))
            self.reporter.report(Note("uv can't reach PyTorch's builds for CPUs, so those for CUDA are installed"))
            return ()
        pins = read_lock(lock, self.interpreter).pins
        if answer.returncode != 0 or not all(_is_for_cpu(pin) and pin.sha256 for pin in pins):
            return ()
        write_record(self._path, evolve(known, builds={**known.builds, requirements: pins}))
        return pins


def _is_for_cpu(pin: Pin) -> bool:
    """Whether a build is one for CPUs: "2.7.0+cpu", "2.6.0+cpu.cxx11.abi"."""
    return pin.version.partition("+")[2].partition(".")[0] == BACKEND


# Those that only PyTorch's own libraries call. The runtime of CUDA is small, and is called when PyTorch is imported.
_LEFT_OUT = re.compile(
    r"nvidia-(?:cuda-)?(cublas|cudnn|cufft|curand|cusolver|cusparselt|cusparse|nccl|nvjitlink|nvrtc|nvshmem)(-cu\d+)?"
)
_TEXT = "this library of NVIDIA was left out, because the machine has no GPU"
_METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\nSummary: {}\n"


def uncalled(lock: Lock) -> tuple[Pin, ...]:
    """The pins of a lock whose libraries no run can call on a machine without a GPU."""
    version = lock.version_of("torch")
    if version is None or "+" in version or sys.platform != "linux" or platform.machine() != "x86_64":
        return ()
    return tuple(pin for pin in lock.pins if _LEFT_OUT.fullmatch(pin.name))


def left_out(pins: Sequence[Pin]) -> str:
    """A sentence about what was left out."""
    libraries = (
        f"{counted(len(pins), 'package')} of NVIDIA's libraries left out, because no GPU is here to call them on"
    )
    return f"{libraries} (--torch-backend none installs them)"


def replaced_by(builds: Sequence[Pin]) -> str:
    """A sentence about builds for CPUs that were installed instead."""
    names = listed([f"{pin.name} {pin.version}" for pin in builds])
    return f"{names} instead of the build for CUDA, because no GPU is here (--torch-backend none installs that)"


def stand_in(pins: Sequence[Pin], folder: Path) -> None:
    """Put metadata and empty libraries into a new environment for what was left out."""
    packages = site_packages(folder)
    for pin in pins:
        info = packages / f"{pin.name.replace('-', '_')}-{pin.version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(_METADATA.format(pin.name, pin.version, _TEXT), encoding="utf-8")
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n", encoding="utf-8")
    stems = {match[1]: pin for pin in pins if (match := _LEFT_OUT.fullmatch(pin.name))}
    libraries = [path for path in packages.rglob("*.so*") if path.is_file()]
    present = {path.name for path in libraries}
    needed = {name for path in libraries for name in needed_by(path, symbols=False).libraries} - present
    missing = {name: _stem(name) for name in needed if any(_stem(name).startswith(stem) for stem in stems)}
    symbols: dict[str, dict[str, str]] = {name: {} for name in missing}
    for path in libraries:
        needs = needed_by(path)
        if not needs.libraries & missing.keys():
            continue
        for wanted in needs.symbols:
            # A function without a version begins with the name of its library.
            begins = [name for name, stem in missing.items() if wanted.name.lower().startswith(stem)]
            library = wanted.library or max(begins, key=lambda name: len(missing[name]), default="")
            if library in symbols:
                symbols[library].setdefault(wanted.name, wanted.version)
    place = packages / "torch" / "lib"  # where PyTorch's own libraries look first
    for name, functions in symbols.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(empty_library(name, functions, _version_codes(stems), _TEXT))


def _stem(library: str) -> str:
    """The name that the functions of a library begin with, in small letters."""
    return library.removeprefix("lib").partition(".so")[0].partition("_")[0].lower()


def _version_codes(pins: dict[str, Pin]) -> dict[str, bytes]:
    """The code of functions that PyTorch asks for the version of a library, on any machine."""
    try:
        major, minor, patch = (*Version(pins["cudnn"].version).release, 0, 0)[:3]
    except (KeyError, InvalidVersion):
        return {}
    number = major * (10000 if major >= 9 else 1000) + minor * 100 + patch
    return {"cudnnGetVersion": returns(number), "cudnnGetProperty": writes_one_of((major, minor, patch))}


_EHDR, _PHDR, _SHDR = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_SYM, _DYN = struct.Struct("<IBBHQQ"), struct.Struct("<QQ")
_VERNEED, _VERNAUX = struct.Struct("<HHIII"), struct.Struct("<IHHII")
_VERDEF, _VERDAUX = struct.Struct("<HHHHIII"), struct.Struct("<II")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_X86_64, _SHARED = 62, 3
_DYNAMIC, _DYNSYM, _VERSIONS_NEEDED, _VERSIONS = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF  # types of sections
_NEEDED, _NULL = 1, 0  # tags of the dynamic section
_PAGE = 4096


@frozen
class ImportedSymbol:
    """A symbol that a library takes from another one; `library` and `version` are "" where it names none."""

    name: str
    library: str = ""
    version: str = ""


@frozen
class Needs:
    """The libraries that a library needs, and all symbols that it takes from others."""

    libraries: frozenset[str] = frozenset()
    symbols: frozenset[ImportedSymbol] = frozenset()


def needed_by(path: Path, *, symbols: bool = True) -> Needs:
    """What a shared library needs, nothing for any other file; without its `symbols`, it is read sooner."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _needs(data, symbols)
    except (OSError, ValueError, struct.error, IndexError, StopIteration):
        return Needs()


def _needs(data: mmap.mmap, symbols: bool) -> Needs:
    _, kind, machine, _, _, _, start, _, _, _, _, size, count, _ = _EHDR.unpack_from(data)
    if data[:7] != _MAGIC or machine != _X86_64 or kind != _SHARED:
        return Needs()
    sections = [_SHDR.unpack_from(data, start + number * size) for number in range(count)]
    by_type = {section[1]: section for section in sections}

    def text(section: Sequence[int], offset: int) -> str:
        begin = sections[section[6]][4] + offset
        return data[begin : data.find(b"\0", begin)].decode()

    dynamic = by_type.get(_DYNAMIC, ())
    if not dynamic:
        return Needs()
    entries = _DYN.iter_unpack(data[dynamic[4] : dynamic[4] + dynamic[5]])
    libraries = frozenset(text(dynamic, value) for tag, value in entries if tag == _NEEDED)
    if not symbols:
        return Needs(libraries)
    versions = dict(_versions(data, by_type[_VERSIONS_NEEDED], text)) if _VERSIONS_NEEDED in by_type else {}
    table, marks = by_type[_DYNSYM], by_type.get(_VERSIONS)
    imported = set()
    for number, row in enumerate(_SYM.iter_unpack(data[table[4] : table[4] + table[5]])):
        if row[3] == 0 and row[0]:  # undefined, with a name
            mark = struct.unpack_from("<H", data, marks[4] + 2 * number)[0] if marks else 0
            imported.add(ImportedSymbol(text(table, row[0]), *versions.get(mark & 0x7FFF, ("", ""))))
    return Needs(libraries, frozenset(imported))


def _versions(data: mmap.mmap, section: Sequence[int], text: object) -> Iterator[tuple[int, tuple[str, str]]]:
    """The library and the version behind each number of a version."""
    at = section[4]
    while True:
        _, count, library, first, following = _VERNEED.unpack_from(data, at)
        inner = at + first
        for _ in range(count):
            _, _, number, name, step = _VERNAUX.unpack_from(data, inner)
            yield number, (text(section, library), text(section, name))  # type: ignore[operator]
            inner += step
        if not following:
            return
        at += following


def returns(number: int) -> bytes:
    """The machine code of a function that returns a number."""
    return b"\xb8" + struct.pack("<I", number) + b"\xc3"  # mov eax, number; ret


def writes_one_of(numbers: tuple[int, int, int]) -> bytes:
    """That of `int f(int which, int *out)`: it writes the number `which` (0, 1 or 2), and returns 0."""
    jumps = b"\x83\xff\x01\x74\x0b\x77\x12"  # cmp edi, 1; je second; ja third
    return jumps + b"".join(b"\xc7\x06" + struct.pack("<I", number) + b"\x31\xc0\xc3" for number in numbers)


def empty_library(soname: str, symbols: Mapping[str, str], codes: Mapping[str, bytes], words: str) -> bytes:
    """A library with functions of these names, each with its version ("": none).

    A function has its machine code in `codes`. Where there is none, it returns 1, which is an error in every library of
    CUDA, or the text `words` if its name says that it returns a text.
    """
    names = bytearray(b"\0")

    def named(name: str) -> int:
        names.extend(name.encode() + b"\0")
        return len(names) - len(name.encode()) - 1

    begin = _EHDR.size + 4 * _PHDR.size
    code = bytearray(returns(1).ljust(8, b"\0") + b"\x48\x8d\x05\x01\0\0\0\xc3" + words.encode() + b"\0")
    fails, speaks = begin, begin + 8  # the second: lea rax, [rip + 1]; ret
    table, marks = bytearray(_SYM.pack(0, 0, 0, 0, 0, 0)), bytearray(struct.pack("<H", 0))
    versions = sorted(set(filter(None, symbols.values())))
    for name, version in symbols.items():
        at = speaks if name.endswith(("String", "Name")) else fails
        if name in codes:
            at = begin + len(code)
            code += codes[name]
        table += _SYM.pack(named(name), 0x12, 0, 1, at, 0)  # a global function
        marks += struct.pack("<H", versions.index(version) + 2 if version else 1)
    defined = bytearray()
    for number, version in enumerate([soname, *versions], start=1):
        following = 0 if number == len(versions) + 1 else _VERDEF.size + _VERDAUX.size
        is_base = 1 if number == 1 else 0
        defined += _VERDEF.pack(1, is_base, number, 1, _hash(version), _VERDEF.size, following)
        defined += _VERDAUX.pack(named(version), 0)
    count = len(symbols) + 1
    # One bucket for all: a chain in their order.
    chain = struct.pack(f"<{3 + count}I", 1, count, int(count > 1), *[0, *range(2, count), 0][:count])
    own = named(soname)
    parts, places = bytearray(), []
    for part in (code, table, names, chain, marks, defined):
        parts += b"\0" * (-(begin + len(parts)) % 8)
        places.append(begin + len(parts))
        parts += part
    _, symbols_at, names_at, chain_at, marks_at, defined_at = places
    dynamic = [(14, own), (4, chain_at), (5, names_at), (6, symbols_at), (10, len(names)), (11, _SYM.size)]
    if versions:
        dynamic += [(0x6FFFFFF0, marks_at), (0x6FFFFFFC, defined_at), (0x6FFFFFFD, len(versions) + 1)]
    tail = b"".join(_DYN.pack(*entry) for entry in [*dynamic, (_NULL, 0)])
    size = begin + len(parts)
    at = -(-size // _PAGE) * _PAGE
    head = _EHDR.pack(_MAGIC.ljust(16, b"\0"), 3, _X86_64, 1, 0, _EHDR.size, 0, 0, _EHDR.size, _PHDR.size, 4, 0, 0, 0)
    head += _PHDR.pack(1, 5, 0, 0, 0, size, size, _PAGE)  # to read and to execute
    head += _PHDR.pack(1, 6, at, at, at, len(tail), len(tail), _PAGE)  # to read and to write
    head += _PHDR.pack(2, 6, at, at, at, len(tail), len(tail), 8)
    head += _PHDR.pack(0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # the stack is not executable
    return (head + bytes(parts)).ljust(at, b"\0") + tail


def _hash(name: str) -> int:
    """The hash of a version's name (System V ABI)."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value
