"""Starts zygotes: processes to fork probes from, each with the modules that none of its probes changes."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from attrs import define

from harness.model import Device
from harness.run.devices import hidden, passed_variables
from harness.run.forking import Zygote, ZygoteFailed
from harness.run.launch import process_environment, repro_variables, scratch_folder
from harness.run.runner import INSIDE, Job, search_path
from harness.run.sandbox import FileAccess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager


class CannotFork(Exception):
    """Probes can't be forked; the message is a short reason."""


@define
class Zygotes:
    """The current zygote, started when a fork needs it. It has only imported modules that do not depend on `left_out`.

    `start` starts a zygote that leaves out some files; all files must be unchanged when it is called. `every` has all
    files that a candidate may change.
    """

    start: Callable[[frozenset[str]], AbstractContextManager[Zygote]]
    every: frozenset[str]
    left_out: frozenset[str]
    _running: contextlib.ExitStack
    _zygote: Zygote | None = None

    def fits(self, files: Iterable[str]) -> bool:
        """Whether there is a zygote, and it has imported nothing that depends on these files."""
        return self._zygote is not None and self.left_out.issuperset(files)

    def started_for(self, files: Iterable[str]) -> Zygote:
        """Return a zygote for these files, and start it if needed. After the first, a zygote fits all files.

        Raises `CannotFork`.
        """
        if self._zygote is None or not self.fits(files):
            if self._zygote is not None or not self.left_out.issuperset(files):
                self.left_out = self.every
            self._running.close()
            self._zygote = self._running.enter_context(self.start(self.left_out))
        return self._zygote


@contextlib.contextmanager
def zygote_of(job: Job, modules: tuple[str, ...]) -> Iterator[Zygote]:
    """Start a zygote that imports these modules, in the same sandbox as a run; stop it with the context.

    Raises `CannotFork`.
    """
    with scratch_folder(job.scratch_root) as folder:
        env = process_environment(
            folder,
            ours=os.environ,
            python=job.python,
            pass_env=(*job.pass_env, *passed_variables()),
            pycache_prefix=job.pycache_prefix,
            extra={
                **repro_variables(job.repro.params, job.device.value, job.hash_seed),
                **search_path(folder, job.repro),
                **(hidden() if job.device is Device.CPU else {}),
            },
        )
        access = FileAccess(
            scratch=job.scratch_root,
            work=folder.work,
            python=job.python,
            readable=(*job.readable, job.invoked_from.absolute(), INSIDE.parent),
            writable=(job.pycache_prefix,) if job.pycache_prefix is not None else (),
        )
        emulation = {"package": str(INSIDE / "emulation"), "capability": job.capability}
        try:
            zygote = Zygote.start(
                job.python,
                modules,
                env=env,
                scratch_root=job.scratch_root,
                emulation=emulation if job.device is Device.EMULATED else None,
                sandbox=job.sandbox.around(access) if job.sandbox is not None else (),
                timeout=job.repro.timeout,
            )
        except ZygoteFailed as error:
            raise CannotFork(str(error)) from error
        try:
            yield zygote
        finally:
            zygote.close()
