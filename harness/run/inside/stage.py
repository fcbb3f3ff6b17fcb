"""The first process inside a sandbox: starts the command and reports how it ended. Standard library only.

Started as `python -I -S stage.py FD COMMAND...`. It writes to the file descriptor: "p" when it starts the command, "e"
and an errno if that fails, and at the end "w" and the wait status of the command. bubblewrap alone
would report a signal as an exit code of 128 or more.
"""

from __future__ import annotations

import os
import signal
import sys


def main(tell: int, command: list[str]) -> int:
    """Run the command and return its exit code as a shell does."""
    os.set_inheritable(tell, False)
    os.environ.pop("PWD", None)  # set by bubblewrap
    child = os.fork()
    if child == 0:
        # Ignored signals stay ignored through exec; Python itself ignores these two.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)  # noqa: S606 - a shell is not wanted
        except OSError as error:
            os.write(tell, b"e%d\n" % (error.errno or 1))
        finally:
            os._exit(127)
    os.write(tell, b"p\n")
    _, status = os.waitpid(child, 0)
    os.write(tell, b"w%d\n" % status)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
