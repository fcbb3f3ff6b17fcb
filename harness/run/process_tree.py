"""Finds the descendants of this process and their memory use, with the standard library only."""

# Importing pathlib would take as long as all the rest of this module.
# ruff: noqa: PTH110, PTH123, PTH208

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Tree:
    """The descendants of this process, including those that detached from their parents."""

    def __init__(self) -> None:
        self._walk = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
        self._groups: set[int] = set()

    def members(self) -> list[int]:
        """Return their process ids, without that of this process."""
        return self._members_by_walk() if self._walk else list(self._members_by_ps())

    def memory(self, limit: int) -> int:
        """Return the memory in use, in bytes: an estimate, or the exact value if the tree may exceed `limit`."""
        if not self._walk:
            return sum(self._members_by_ps().values())
        resident, private, shared, members = 0, 0, 0, self._members_by_walk()
        for pid in members:
            try:
                fields = _read(f"/proc/{pid}/statm").split()
            except OSError:
                continue
            all_of_it, of_files = int(fields[1]) * _PAGE, int(fields[2]) * _PAGE
            resident += all_of_it
            private += all_of_it - of_files
            shared = max(shared, of_files)
        if resident <= limit:
            return min(resident, private + shared)
        # Forked workers share most pages; counting shared pages once takes milliseconds per process.
        return sum(_proportional_memory(pid) for pid in members)

    def _members_by_walk(self) -> list[int]:
        members: list[int] = []
        parents = [os.getpid()]
        while parents:
            parent = parents.pop()
            try:
                for thread in os.listdir(f"/proc/{parent}/task"):
                    children = [int(pid) for pid in _read(f"/proc/{parent}/task/{thread}/children").split()]
                    members += children
                    parents += children
            except OSError:  # it has ended in the meantime
                continue
        return members

    def _members_by_ps(self) -> dict[int, int]:
        """The memory in bytes of each descendant and each member of their process groups, for systems without /proc."""
        import subprocess

        listing = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,pgid=,rss="], capture_output=True, text=True, check=False
        ).stdout
        rows = [tuple(map(int, line.split())) for line in listing.splitlines()]
        family = {os.getpid()}
        size = 0
        while size != len(family):
            size = len(family)
            family |= {pid for pid, parent, group, _ in rows if parent in family or group in self._groups}
            self._groups |= {group for pid, _, group, _ in rows if pid in family} - {os.getpgrp(), 0, 1}
        return {pid: rss * 1024 for pid, _, _, rss in rows if pid in family and pid != os.getpid()}

    def numbered(self, inner: int) -> int | None:
        """The process id outside the sandbox of the descendant with id `inner` in its innermost namespace, or None."""
        for pid in self.members():
            try:
                lines = _read(f"/proc/{pid}/status").splitlines()
            except OSError:
                continue
            for line in lines:
                if line.startswith(b"NSpid:") and len(line.split()) > 2 and int(line.split()[-1]) == inner:
                    return pid
        return None


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _proportional_memory(pid: int) -> int:
    try:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
