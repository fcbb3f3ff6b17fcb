"""Which known regression a traceback looks like: by the exception, its message without what changes, and the frames.

Modelled on the crash signatures of Mozilla, which compare a few frames by function. The message must have what the
signature of the entry asks for, and half of the frames in installed packages must come again.

It also reads the exceptions and the versions of packages in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve, frozen

from harness.catalogue.blocks import Block
from harness.catalogue.entries import Entry
from harness.catalogue.tracebacks import tracebacks_of
from harness.catalogue.versions import versions_in
from harness.model import RaisedException
from harness.model.signature import normalized_message, without_end
from harness.model.text import without_folders

_SPECIFIC = 20  # characters of a message that is enough where no frames can be compared
_MESSAGE_ALONE = 0.5
_ENOUGH_FRAMES = 0.5
_INNERMOST = 2.0


@frozen
class Match:
    """An entry that a traceback looks like. `likeness` is from 0 to 1; `version` of the entry's subject is installed
    (None: not known), and `is_affected` says whether it has the bug (None: not known).
    """

    entry: Entry
    raised: RaisedException
    likeness: float
    version: str | None = None

    @property
    def is_affected(self) -> bool | None:
        """Whether the installed version has the bug; None if it is not known."""
        known = self.entry.known  # what is installed reads; of an entry about what writes, that says nothing
        return None if self.version is None or known.written else known.has(self.version)


def matches(
    failures: Sequence[RaisedException], entries: Iterable[Entry], version_of: Callable[[str], str | None]
) -> list[Match]:
    """Return the entries that one of the exceptions looks like, the best first.

    `version_of` gives the installed version of a project, None if it is not known. Entries whose window does not have
    the installed version come last.
    """
    matched = []
    for entry in entries:
        rated = [(likeness(entry, raised), raised) for raised in failures]
        best, raised = max(rated, key=lambda pair: pair[0], default=(0.0, None))
        version = version_of(entry.subject)
        if raised is not None and best > 0 and (version is not None or _shows_subject(entry, raised)):
            matched.append(Match(entry, raised, best, version))
    return sorted(matched, key=lambda match: (match.is_affected is False, -match.likeness, match.entry.name))


def likeness(entry: Entry, raised: RaisedException) -> float:
    """Return how much an exception looks like an entry: 0 for not at all, up to 1."""
    example, signature = entry.known.seen, entry.repro.signature
    if example is None or raised.name != example.exception:
        return 0.0
    wanted = (signature.message if signature is not None else None) or example.message.partition("\n")[0]
    if without_end(normalized_message(wanted)) not in normalized_message(raised.message):
        return 0.0
    common = _common_frames(example.frames, [f"{frame.file}:{frame.function}" for frame in raised.frames])
    if common is None:
        return _MESSAGE_ALONE if len(wanted) >= _SPECIFIC else 0.0
    return common if common >= _ENOUGH_FRAMES else 0.0


def _shows_subject(entry: Entry, raised: RaisedException) -> bool:
    """Whether a traceback can be of the entry's subject, which must appear if all frames seen were of others."""
    module = entry.subject.replace("-", "_")
    frames = entry.known.seen.frames if entry.known.seen is not None else ()
    is_elsewhere = bool(frames) and not any(frame.startswith(f"{module}/") for frame in frames)
    named = module in raised.message or any(frame.file.startswith(f"{module}/") for frame in raised.frames)
    return named or not is_elsewhere


def _common_frames(expected: Sequence[str], frames: Sequence[str]) -> float | None:
    """Part of the frames in installed packages that came again, the innermost counting double.

    None if there are none to compare, or if it was raised in the user's own code, as a missing attribute may be.
    Frames are compared by package, name of the file and function, as folders and lines change.
    """
    inside = [_place(frame) for frame in expected if _is_installed(frame)]
    others = {_place(frame) for frame in frames if _is_installed(frame)}
    if not inside or not frames or not _is_installed(frames[-1]):
        return None
    last = inside[-1]
    weights = {place: _INNERMOST if place == last else 1.0 for place in inside}
    return sum(weight for place, weight in weights.items() if place in others) / sum(weights.values())


def _is_installed(frame: str) -> bool:
    return not frame.startswith("/") and "/" in frame.partition(":")[0]


def _place(frame: str) -> tuple[str, str, str]:
    file, _, function = frame.rpartition(":")
    return file.split("/")[0], file.rpartition("/")[2], function.rpartition(".")[2]


def exceptions_in(text: str) -> list[RaisedException]:
    """Return the exceptions in a log, causes before what they caused, with the frames that stand above each."""
    exceptions = (exception for raised in tracebacks_of(text) for exception in reversed(list(raised.chain())))
    return [evolve(exception, message=without_folders(exception.message)) for exception in exceptions]


def installed_in(text: str) -> dict[str, str]:
    """Return the versions of packages that a log lists, by project; none of a project that it lists with several."""
    return versions_in([Block(text, is_code=True)]).installed
