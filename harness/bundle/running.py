"""Runs the probes of this bundle without network, and writes their results to `observed/`.

    python run.py                   run the probes that have not run yet
    python run.py --what-is-there   list the packages of this Python (for `harness bundle --installed`)

It needs only the standard library. Verdicts come from `harness absorb` on the machine that made the bundle.
Exit codes: 0 all have run, 2 wrong machine or incomplete bundle, 3 some could not run, 6 can't write here, 130 stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import shutil
import site
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOOLS = HERE / "harness-run"
NOT_PASSED = re.compile(r"PIP_|UV_|PYTHON|VIRTUAL_ENV$|CONDA_PREFIX$")
SHORTEST_SECRET = 8
MOST_READ = 1 << 28  # the harness reads less


class Problem(Exception):
    """A probe can't be run here; the message is one sentence that says why."""


class NotHere(Exception):
    """No probe of this bundle can be run here; the message is one sentence that says why."""


def main() -> int:
    """Run the probes that have not been run; return the exit code."""
    parser = argparse.ArgumentParser(description="Run the probes of this bundle that have not been run yet.")
    parser.add_argument("--what-is-there", action="store_true", help="list installed packages and exit")
    if parser.parse_args().what_is_there:
        for name, version in installed_here().items():
            print(f"{name}=={version}")
        return 0
    try:
        bundle = read(HERE / "bundle.json")
        check_here(bundle)
        (HERE / "observed").mkdir(exist_ok=True)
        return run_all([read(HERE / "probes" / key / "probe.json") for key in bundle["probes"]])
    except NotHere as error:
        return told("error", str(error), 2)
    except OSError as error:
        return told("error", f"can't write to {HERE}: {error.strerror or error}", 6)
    except KeyboardInterrupt:
        return told("stopped", "run python run.py again to continue", 130)


def told(kind: str, words: str, code: int) -> int:
    """Print why the script ends; return `code`."""
    print(f"{kind}: {words}", file=sys.stderr)
    return code


def run_all(probes: list[dict[str, Any]]) -> int:
    """Run each probe that has no results yet; return the exit code."""
    failed = 0
    for i, probe in enumerate(probes, 1):
        where, kept = f"{i} of {len(probes)}  {probe['label']}", HERE / "observed" / probe["probe"]["key"]
        trouble = kept.with_name(f"{kept.name}.problem.txt")
        if kept.is_dir():
            print(f"{where}: already run", flush=True)
            continue
        trouble.unlink(missing_ok=True)
        try:
            run_one(probe, kept, where)
        except Problem as problem:
            failed += 1
            print(f"{where}: could not run: {problem}", flush=True)
            trouble.write_text(f"{problem}\n", encoding="utf-8")
    print(f"{len(probes) - failed} of {len(probes)} have run; copy this folder back: harness absorb {HERE.name}")
    return 3 if failed else 0


def run_one(probe: dict[str, Any], kept: Path, where: str) -> None:
    """Create the environment of a probe, run it, keep its results, and remove the environment. Raises `Problem`."""
    key = probe["probe"]["key"]
    launch = tools()
    gpus = launch.told_by(probe["gpu_query"]) if probe["gpu_query"] else ""
    if gpus is None:
        raise Problem("no NVIDIA GPU found (nvidia-smi lists none)")
    check_node_packages(probe["from_node"])
    print(f"{where}: creating its environment with {len(probe['packed'])} wheels", flush=True)
    begun = time.monotonic()
    folder = HERE / "environments" / key
    part = kept.with_name(f"{kept.name}.part")
    given = HERE / "environments" / f"{key}-given"
    for leftover in (folder, part, given):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        python = make_environment(probe, folder)
        folders = unpack_given(probe["given"], given)
        there = called([str(python), "-I", __file__, "--what-is-there"], "its environment can't be read")
        record = {
            "key": key,
            "setup_s": time.monotonic() - begun,
            "gpus": gpus,
            "visible_gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "requirements": digest(HERE / "probes" / probe["probe"]["key"] / "requirements.txt"),
            **this_python(),
            "installed": dict(line.split("==", 1) for line in there.splitlines()),
        }
        print(f"{where}: running, at most {probe['probe']['repro']['timeout']:g} s", flush=True)
        part.mkdir(parents=True)
        ended = run_under_guard(probe, python, part, record, folders)
        part.rename(kept)
    finally:
        for path in (folder, given):
            shutil.rmtree(path, ignore_errors=True)
    how = f"exit code {ended['returncode']}" if ended["reason"] == "ended" else f"stopped, {ended['reason']}"
    print(f"{where}: ended after {ended['seconds']:.1f} s ({how})", flush=True)


def make_environment(probe: dict[str, Any], folder: Path) -> Path:
    """Create a virtual environment with the probe's wheels, without pip; return its interpreter. Raises `Problem`."""
    called([sys.executable, "-m", "venv", "--without-pip", str(folder)], "can't create a virtual environment")
    python = folder / "bin" / "python"
    if probe["from_node"]:
        # --system-site-packages would add the packages of the base interpreter, not of the environment that we run in.
        packages = next(folder.glob("lib*/python*/site-packages"))
        lines = [f"import site; site.addsitedir({path!r})\n" for path in package_folders()]
        (packages / "zz_node_packages.pth").write_text("".join(lines), encoding="utf-8")
    requirements = HERE / "probes" / probe["probe"]["key"] / "requirements.txt"
    if probe["packed"]:
        options = ["--no-index", "--find-links", str(HERE / "wheels"), "--no-deps", "--require-hashes", "--no-compile"]
        called(
            [str(python), str(HERE / "installer" / "pip"), "install", *options, "--requirement", str(requirements)],
            "can't install its wheels",
        )
    return python


def unpack_given(given: dict[str, str], target: Path) -> dict[str, str]:
    """Unpack the folders that a probe is given, by the names of their variables. Raises `Problem`."""
    folders = {}
    for variable, sha256 in given.items():
        archive, folder = HERE / "given" / f"{sha256}.tar.gz", target / variable
        try:
            if digest(archive) != sha256:
                raise Problem(f"given/{archive.name} was changed")
            folder.mkdir(parents=True)
            with tarfile.open(archive) as tar:
                # Its hash is that of the archive that the harness made; older Pythons have no filters.
                options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                tar.extractall(folder, **options)  # noqa: S202
        except (OSError, tarfile.TarError) as error:
            raise Problem(f"given/{archive.name} can't be unpacked: {error}") from error
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o555)
        folders[variable] = str(folder)
    return folders


def run_under_guard(
    probe: dict[str, Any], python: Path, part: Path, record: dict[str, Any], folders: dict[str, str]
) -> dict[str, Any]:
    """Run a probe as the harness does: the same folders, environment, guard and child driver. Raises `Problem`.

    Keeps its results in `part` and adds how it ran to `record`; returns how it ended. `folders` are those that it is
    given, by the names of variables.
    """
    launch = tools()
    sent = probe["probe"]
    repro, device, pass_env = sent["repro"], sent["combination"]["device"], sent["pass_env"]
    source = (HERE / "probes" / sent["key"] / repro["path"]).read_bytes()
    limits = launch.Limits(repro["timeout"], repro["memory"])
    before = states(python.parent.parent)
    with launch.scratch_folder(Path(tempfile.gettempdir())) as scratch, scratch.log.open("x+b") as log:
        argv = launch.script_command(
            scratch,
            python=python,
            inside=TOOLS / "inside",
            name=repro["path"],
            source=source.decode(),
            capability=sent["capability"] if device == "emulated" else None,
        )
        env = launch.process_environment(
            scratch,
            ours=os.environ,
            python=python,
            pass_env=pass_env,
            extra={
                **probe["variables"],
                **launch.given_variables(scratch, repro["step"], folders),
                "HARNESS_ROOT": str(HERE),
            },
        )
        started = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        ended = guarded(launch.guard_request(argv, limits, env=env, cwd=scratch.work, output=scratch.log))
        secrets = [os.environ[name] for name in pass_env if len(os.environ.get(name, "")) >= SHORTEST_SECRET]
        launch.keep_log(io.BytesIO(without(secrets, launch.bounded(log))), part / "log.gz")
        for path in (scratch.report, scratch.metrics):
            if path.is_file():
                with path.open("rb") as file:
                    (part / path.name).write_bytes(without(secrets, file.read(MOST_READ)))
            elif path.exists():  # the harness says why it does not read it
                (part / path.name).mkdir()
    files = {path.name: digest(path) for path in sorted(part.iterdir()) if path.is_file()}
    script = hashlib.sha256(source).hexdigest()
    after = states(python.parent.parent)
    altered = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    record.update(started=started, ended=ended, memory=limits.bytes, script=script, files=files, altered=altered)
    (part / "run.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return ended


def states(folder: Path) -> dict[str, int]:
    """The change time of each file of an environment, by its path, without bytecode."""
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc" and (path.is_symlink() or path.is_file()))
    return {str(path.relative_to(folder)): path.lstat().st_ctime_ns for path in files}


def tools() -> Any:
    """The harness's own module that prepares runs, which needs only the standard library."""
    if str(TOOLS) not in sys.path:
        sys.path.insert(0, str(TOOLS))
    import launch  # type: ignore[import-not-found]

    return launch


def guarded(line: bytes) -> dict[str, Any]:
    """Let the guard run a probe; returns how it ended. Raises `Problem`.

    When its pipe is closed, also on Ctrl-C, the guard ends every process that it started.
    """
    with tools().started_guard(TOOLS / "guard.py", os.environ) as guard:
        guard.stdin.write(line)
        said = guard.stdout.read()
    try:
        ended: dict[str, Any] = json.loads(said)
    except ValueError:
        raise Problem(f"its guard failed: {said.decode(errors='replace').strip() or 'no error message'}") from None
    if "problem" in ended:
        raise Problem(f"its interpreter can't be started: {os.strerror(ended['problem'])}")
    return ended


def without(secrets: list[str], content: bytes) -> bytes:
    """Replace the values of passed variables in a result, since the machine that absorbs it can't know them."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
    for form in sorted(forms, key=len, reverse=True):
        content = content.replace(form.encode(), b"<secret>")
    return content


def called(argv: list[str], complaint: str) -> str:
    """Run a command and return its output. Raises `Problem` if it fails."""
    env = {name: value for name, value in os.environ.items() if not NOT_PASSED.match(name)}
    env.update(PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_NO_CACHE_DIR="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    ended = subprocess.run(argv, env=env, cwd=HERE, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        lines = [line.strip() for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no error message"]
        raise Problem(f"{complaint}: {errors[-1]}")
    return ended.stdout


def check_here(bundle: dict[str, Any]) -> None:
    """Check that the bundle is complete and for this Python and platform. Raises `NotHere`."""
    if not (TOOLS.is_dir() and (HERE / "installer").is_dir()):
        raise NotHere(f"{TOOLS.name} or installer is missing; the bundle is incomplete")
    pythons = (bundle, this_python())
    wanted, found = (f"{p['implementation']} {p['python'].rpartition('.')[0]} on {p['platform']}" for p in pythons)
    if wanted != found:
        hint = "start it with that Python, or use harness bundle --python"
        raise NotHere(f"this bundle is for {wanted}, this is {found}; {hint}")


def check_node_packages(wanted: dict[str, str]) -> None:
    """Check that the packages that were not packed are installed with exactly their versions. Raises `Problem`."""
    here = installed_here() if wanted else {}
    wrong = [
        f"{name} {there} (here: {here.get(name, 'none')})" for name, there in wanted.items() if here.get(name) != there
    ]
    if wrong:
        raise Problem(
            f"neither packed nor installed here: {', '.join(wrong)}; make the bundle again with a new --installed list"
        )


def this_python() -> dict[str, str]:
    """The version, implementation and platform of this Python, as in `bundle.json`."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system().lower()}-{platform.machine().lower()}",
    }


def package_folders() -> list[str]:
    """The site-packages folders of this Python, without the user's, which a probe does not see."""
    kinds = ("site-packages", "dist-packages")
    return [path for path in sys.path if Path(path).name in kinds and path != site.getusersitepackages()]


def installed_here() -> dict[str, str]:
    """Versions by normalised name; of two distributions with the same name the first counts, as for imports."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions(path=package_folders()):
        name = one.metadata["Name"]
        if name:
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), one.version)
    return dict(sorted(found.items()))


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> dict[str, Any]:
    """Read a JSON file of the bundle. Raises `NotHere`."""
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotHere(f"{path} can't be read ({error}); the bundle is incomplete") from error
    return told


if __name__ == "__main__":
    sys.exit(main())
