"""What is installed in a container image of the user's own docker or podman, as its Python lists it.

Nothing is pulled, and the container has no network and is gone afterwards.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import uuid

from harness.environment.interpreter import Installed, direct_url
from harness.errors import UserMistake
from harness.model.text import one_line
from harness.run.result import valid

PREFIXES = ("docker://", "podman://")
_LONGEST_S, _REMOVAL_S = 120.0, 20.0
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*")
_LISTING = (
    "import json,platform\n"
    "from importlib.metadata import distributions\n"
    "def row(d): return [d.metadata['Name'] or '',d.version or '',d.read_text('direct_url.json') or '{}']\n"
    "print(json.dumps([platform.python_version(),list(map(row,distributions()))]))"
)
_NO_PROGRAM = (126, 127)  # of docker and podman, if the image lacks the program
_NOT_THERE = re.compile(r"no such image|unable to find image|image not known|not found locally", re.IGNORECASE)
_NO_DAEMON = re.compile(r"cannot connect|permission denied|daemon running", re.IGNORECASE)


def installed_in_image(address: str) -> Installed:
    """List the packages of an image such as docker://python:3.12. Raises `UserMistake` if it can't be run."""
    program, _, image = address.partition("://")
    if _IMAGE.fullmatch(image) is None:
        raise UserMistake(f"{address} names no image", hint=f"for example {program}://python:3.12")
    if shutil.which(program) is None:
        raise UserMistake(
            f"{address}: {program} is not on this machine",
            hint="install it, or write the image's `pip freeze` to a file and name that",
        )
    ended = _run(program, image, "python")
    if ended.returncode in _NO_PROGRAM:
        ended = _run(program, image, "python3")
    if ended.returncode in _NO_PROGRAM:
        raise UserMistake(f"{address} has no Python on its PATH")
    if ended.returncode:
        raise _refused(program, image, ended.stderr)
    try:
        printed = valid(json.loads(ended.stdout), tuple[str, tuple[tuple[str, str, str], ...]])
    except ValueError:
        printed = None
    if printed is None:
        raise UserMistake(
            f"{address}: its Python does not list its packages, but prints {one_line(ended.stdout, 80)!r}"
        )
    version, rows = printed
    return Installed(version, tuple((name, release, direct_url(origin)) for name, release, origin in rows if name))


def _run(program: str, image: str, python: str) -> subprocess.CompletedProcess[str]:
    name = f"harness-{uuid.uuid4().hex[:12]}"
    own = ["--rm", "--name", name, "--pull", "never", "--network", "none", "--entrypoint", python]
    argv = [program, "run", *own, image, "-I", "-c", _LISTING]
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LONGEST_S,
            check=False,
        )
    except OSError as error:
        raise UserMistake(f"{program} can't be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise UserMistake(
            f"{program} did not run {image} within {_LONGEST_S:g} s", hint="does it run by hand?"
        ) from error
    finally:
        # What is still running after Ctrl-C, or after the time.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, "rm", "--force", name], capture_output=True, timeout=_REMOVAL_S, check=False)


def _refused(program: str, image: str, words: str) -> UserMistake:
    # The lines after the first one are about its own help.
    line = one_line(words.strip().partition("\n")[0].removeprefix(f"{program}: ") or "it prints no reason", 200)
    if _NO_DAEMON.search(words):
        return UserMistake(f"{program} can't be used: {line}", hint=f"does `{program} info` work?")
    if _NOT_THERE.search(words):
        return UserMistake(f"{program} has no image {image} on this machine", hint=f"{program} pull {image}")
    return UserMistake(f"{program} can't run {image}: {line}")
