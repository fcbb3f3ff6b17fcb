"""Downloads files of a hub's repository with its own client; runs in an environment that has `huggingface_hub`.

The job is JSON on stdin: kind, id, revision, files and folder. What happened is JSON on the last line of stdout.
"""

import json
import sys
from fnmatch import fnmatch
from pathlib import Path


def main() -> dict[str, object]:
    """Download, and say what failed: "gated", "repository", "revision", "file" or "network"."""
    from huggingface_hub import HfApi, hf_hub_download  # type: ignore[import-not-found,unused-ignore]
    from huggingface_hub import errors as hub  # type: ignore[import-not-found,unused-ignore]

    job = json.load(sys.stdin)
    where = {"repo_id": job["id"], "repo_type": job["kind"], "revision": job["revision"]}
    try:
        there = None
        names = []
        for wanted in job["files"]:
            if not any(mark in wanted for mark in "*?["):
                names.append(wanted)
                continue
            there = HfApi().list_repo_files(**where) if there is None else there
            found = sorted(name for name in there if fnmatch(name, wanted))
            if not found:
                return {"failed": "file", "words": wanted}
            names += found
        for name in dict.fromkeys(names):
            try:
                hf_hub_download(filename=name, local_dir=job["folder"], **where)
            except hub.EntryNotFoundError as error:
                if isinstance(error, hub.LocalEntryNotFoundError):
                    return {"failed": "network", "words": _line(error.__cause__ or error)}
                return {"failed": "file", "words": name}
    except hub.GatedRepoError:
        return {"failed": "gated", "words": ""}
    except hub.RevisionNotFoundError:
        return {"failed": "revision", "words": ""}
    except hub.RepositoryNotFoundError:
        return {"failed": "repository", "words": ""}
    except (hub.HfHubHTTPError, OSError) as error:
        return {"failed": "network", "words": _line(error)}
    except Exception as error:  # noqa: BLE001 - its HTTP library has errors of its own
        return {"failed": "network", "words": _line(error)}
    return {"files": [name for name in names if Path(job["folder"], name).is_file()]}


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 - it is what is asked for
