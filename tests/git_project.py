"""Real git repositories for tests: each commit is a set of files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from attrs import define


@define
class GitProject:
    """A repository with a work tree; commits are one day apart, so that histories are reproducible.

    `day` (an ISO date) is that of the newest commit instead.
    """

    folder: Path
    commits: int = 0
    day: str = ""

    def git(self, *arguments: str) -> str:
        """Run git in the repository; returns what it prints."""
        day = f"{self.day}T12:00:00Z" if self.day else f"{1_700_000_000 + 86_400 * self.commits} +0000"
        environment = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A. Author",
            "GIT_AUTHOR_EMAIL": "author@example.org",
            "GIT_COMMITTER_NAME": "A. Author",
            "GIT_COMMITTER_EMAIL": "author@example.org",
            "GIT_AUTHOR_DATE": day,
            "GIT_COMMITTER_DATE": day,
        }
        ended = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return ended.stdout.strip()

    def commit(self, subject: str, files: dict[str, str | None], day: str = "") -> str:
        """Write or remove (None) files and commit all; returns the hash."""
        self.day = day
        for path, text in files.items():
            place = self.folder / path
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
        self.commits += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def merge(self, branch: str, subject: str) -> str:
        """Merge a branch, never by fast forward; returns the hash."""
        self.commits += 1
        self.git("merge", "--quiet", "--no-ff", "--message", subject, branch)
        return self.git("rev-parse", "HEAD")


def new_project(folder: Path) -> GitProject:
    """An empty repository on the branch main."""
    folder.mkdir(parents=True)
    project = GitProject(folder)
    project.git("init", "--quiet", "--initial-branch=main")
    return project
