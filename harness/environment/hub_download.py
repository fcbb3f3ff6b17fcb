"""Downloads files of a hub's repository with its own client; runs in an environment that has `huggingface_hub`.

The job is JSON on stdin: kind, id, revision, files and folder. What failed is JSON on the last line of stdout.
"""

import json
import sys
from fnmatch import fnmatch
from pathlib import Path


def main() -> dict[str, str]:
    """Download, and say what failed: "gated", "repository", "revision", "file" or "network"; empty if nothing did."""
    from huggingface_hub import errors as hub  # type: ignore[import-not-found,unused-ignore]
    from huggingface_hub import snapshot_download  # type: ignore[import-not-found,unused-ignore]

    job = json.load(sys.stdin)
    where = {"repo_type": job["kind"], "revision": job["revision"], "local_dir": job["folder"]}
    # The first is a kind of the last.
    kinds = {
        "gated": hub.GatedRepoError,
        "revision": hub.RevisionNotFoundError,
        "repository": hub.RepositoryNotFoundError,
    }
    try:
        snapshot_download(job["id"], allow_patterns=job["files"], **where)
    except Exception as error:  # noqa: BLE001 - its HTTP library has errors of its own
        failed = next((kind for kind, type_ in kinds.items() if isinstance(error, type_)), "network")
        told = error.__cause__ or error
        return {"failed": failed, "words": f"{type(told).__name__}: {told}".splitlines()[0][:300]}
    folder = Path(job["folder"])
    there = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    for wanted in job["files"]:
        if not any(fnmatch(name, wanted) for name in there):
            return {"failed": "file", "words": wanted}
    return {}


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 - it is what is asked for
