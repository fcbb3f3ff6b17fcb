"""Copies folders for the harness, in a process of its own: standard library only.

Started as `python copy_folders.py FROM TO [FROM TO...]`; the exit code is the number of the system's error. In a thread
of the harness, each of thousands of system calls would wait for the lock of the interpreter, which other threads hold.
"""

# ruff: noqa: PTH102, PTH118, PTH123, PTH211 - for speed

from __future__ import annotations

import os
import sys

_LARGE = 2**20  # bytes


def copy_folder(source: str, target: str) -> None:
    """Copy a folder with the files below it, and their times; a large file, which is compiled, is linked."""
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            place = os.path.join(target, entry.name)
            if entry.is_dir():
                copy_folder(entry.path, place)
            else:
                copy_file(entry.path, place)


def copy_file(source: str, target: str) -> None:
    """Copy a file with its times, or link a large one."""
    with open(source, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if status.st_size > _LARGE:
            os.symlink(source, target)
            return
        with open(target, "xb", buffering=0) as copy:
            copy.write(file.read())
            os.fchmod(copy.fileno(), status.st_mode)
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


if __name__ == "__main__":
    try:
        for number in range(1, len(sys.argv), 2):
            copy_folder(*sys.argv[number : number + 2])
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        sys.exit(error.errno or 1)
