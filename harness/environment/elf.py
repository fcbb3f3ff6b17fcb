"""Shared libraries in the ELF format for x86-64: what one needs from others, and an empty one that has these names.

The names of the structures and fields are those of elf(5).
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

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
class Wanted:
    """A symbol that a library takes from another one; `library` and `version` are "" where it names none."""

    name: str
    library: str = ""
    version: str = ""


@frozen
class Needs:
    """The libraries that a library needs, and all symbols that it takes from others."""

    libraries: frozenset[str] = frozenset()
    symbols: frozenset[Wanted] = frozenset()


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
    found = set()
    for number, row in enumerate(_SYM.iter_unpack(data[table[4] : table[4] + table[5]])):
        if row[3] == 0 and row[0]:  # undefined, with a name
            mark = struct.unpack_from("<H", data, marks[4] + 2 * number)[0] if marks else 0
            found.add(Wanted(text(table, row[0]), *versions.get(mark & 0x7FFF, ("", ""))))
    return Needs(libraries, frozenset(found))


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
