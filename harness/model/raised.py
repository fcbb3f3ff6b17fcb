"""An exception as its process saw it: type, message, frames and cause."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen


@frozen
class StackFrame:
    """One frame of a traceback; sequences start with the outermost.

    `file` is relative to site-packages for installed code, and `package` is its distribution or top-level module.
    Otherwise `file` is the file name of the repro or an absolute path.
    """

    file: str
    line: int
    function: str
    package: str = ""
    text: str = ""


@frozen
class RaisedException:
    """An exception that ended a run or failed a test.

    `type` is the qualified name ("builtins.RuntimeError"); `bases` are those of its base classes; `cause` is the
    exception that it was explicitly raised from.
    """

    type: str
    message: str
    bases: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    cause: RaisedException | None = None

    @property
    def name(self) -> str:
        """The type without its module."""
        return self.type.rpartition(".")[2]

    def chain(self) -> Iterator[RaisedException]:
        """This exception, its cause, the cause of that, and so on."""
        raised: RaisedException | None = self
        while raised is not None:
            yield raised
            raised = raised.cause
