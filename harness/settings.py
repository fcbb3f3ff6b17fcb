"""The settings of a question: where it runs, with which other packages, and how much it may use.

Each setting is one field with its command-line option, so a shared option is added only here.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Factory, evolve, fields, frozen

from harness.arguments import OptionGroup, Options, Trait, documented, option_field, with_types
from harness.errors import UserMistake
from harness.model import normalized_name
from harness.model.lock import NO_SOURCE
from harness.repository.declared import read_toml
from harness.run.inside.emulation.card import DEFAULT_CAPABILITY
from harness.store import OWN_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_S = 7 * 24 * 3600  # of one run
NO_BACKEND = "none"  # for `torch_backend`: what the index has, unchanged
# The indexes of nightly builds that `--nightly` knows, with their projects.
_BACKEND, COMMIT = "{backend}", "{commit}"  # a name of `torch_backend`; the hash of a commit, which has a folder
_NIGHTLY = {
    f"https://download.pytorch.org/whl/nightly/{_BACKEND}": "torch torchaudio torchvision",
    "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple": "awkward boost-histogram contourpy cython "
    "dipy h5py ipython matplotlib networkx numcodecs numpy pandas pillow pyarrow pywavelets scikit-image scikit-learn "
    "scipy shapely statsmodels sunpy sympy tables xarray zarr",
    f"https://wheels.vllm.ai/{COMMIT}": "vllm",
}
_REPOSITORIES = {"vllm": "https://github.com/vllm-project/vllm"}
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


_question = partial(option_field, group=OptionGroup.QUESTION)
_run = partial(option_field, group=OptionGroup.RUNS)
_limit = partial(option_field, group=OptionGroup.LIMITS)
_lane = partial(option_field, group=OptionGroup.LANES)


def results_folder() -> Path:
    """The folder for results if none is named: that of the environment, else that of the project around.

    It is HARNESS_RESULTS; else the nearest of these, from the working directory up to the root of a repository: what
    pyproject.toml names as `results` in `[tool.harness]`, or `.harness`. If there is none yet, it is `.harness` in the
    nearest project, or in the working directory.
    """
    if named := os.environ.get("HARNESS_RESULTS"):
        return Path(named)
    start = Path.cwd()
    root = None
    for folder in (start, *start.parents):
        if folder == Path.home() and folder != start:
            break
        if (own := _results_in(folder)) is not None:
            return _relative(own, start)
        if root is None and any((folder / name).exists() for name in _PROJECT_FILES):
            root = folder
        if (folder / ".git").exists():
            break
    return _relative((root or start) / OWN_FOLDER, start)


def _results_in(folder: Path) -> Path | None:
    settings = read_toml(folder / "pyproject.toml").get("tool", {}).get("harness", {})
    named = settings.get("results") if isinstance(settings, dict) else None
    if isinstance(named, str) and named:
        return folder / named
    own = folder / OWN_FOLDER
    return own if own.is_dir() else None


def _relative(folder: Path, start: Path) -> Path:
    return Path(os.path.relpath(folder, start))


def _is_url(text: str) -> bool:
    return "://" in text.partition("=")[0]


def repository_of_builds(project: str) -> str:
    """Return the repository whose commits the known index of a project has, "" if none is known."""
    return _REPOSITORIES.get(project, "")


@documented
@frozen(kw_only=True, field_transformer=with_types)
class Settings(Options):
    """The settings of one question or command.

    Requirements are PEP 508 texts, dates are ISO 8601, `timeout` is in seconds and `max_disk` in bytes. Raises
    `UserMistake`, which names the argument, for a value of a wrong type or out of range.
    """

    with_: tuple[str, ...] = _question(
        (), "--with", "Install this too, or instead of the repro's own requirement.", metavar="REQ"
    )
    made_with: tuple[str, ...] = _question(
        (),
        "--made-with",
        "Run the repro's first step, which writes the files that it reads, with this instead.",
        metavar="REQ",
        not_for=(Trait.COMMAND,),
    )
    hold: tuple[str, ...] = _question(
        (),
        "--hold",
        "Keep this version where the releases allow it; the answer says where they do not. none ignores the "
        "repro's own holds.",
        metavar="REQ",
    )
    python: str | None = _question(
        None, "--python", "Python to use: a version (3.12) or a path.", metavar="X", not_for=(Trait.PYTHONS,)
    )
    as_of: str | None = _question(
        None,
        "--as-of",
        "Other packages as they were on the day of each release, on one day, or close to those of the bad end.",
        metavar="era|DATE|none",
        not_for=(Trait.PACKAGES,),
    )
    device: str = _question(
        "auto", "--device", "Where the repro runs.", choices=("auto", "cpu", "cuda", "emulated"), shown_default=True
    )
    params: tuple[str, ...] = _question(
        (), "--param", "A parameter of the repro; its value is read as JSON, else as text.", metavar="NAME=VALUE"
    )
    index: tuple[str, ...] = _question(
        (),
        "--index",
        "Take the package in question, or PROJECT, from this index alone, such as one of nightly builds.",
        metavar="[PROJECT=]URL",
        not_for=(Trait.PYTHONS,),
    )
    nightly: bool = _question(
        False,
        "--nightly",
        "Take the package in question from the index of its nightly builds, if that is known.",
        not_for=(Trait.PYTHONS,),
    )
    from_source: tuple[str, ...] = _question(
        (),
        "--build",
        "Allow this project to be built from source, where it has no wheel.",
        metavar="PROJECT",
        not_for=(Trait.PYTHONS,),
    )
    no_build: bool = _question(
        False,
        "--no-build",
        "Build nothing from source, also not what an end names and what has no wheel.",
        not_for=(
            Trait.RELEASES,
            Trait.COMMITS,
            Trait.PYTHONS,
        ),
    )
    pass_env: tuple[str, ...] = _run(
        (), "--pass-env", "Let the repro see this environment variable (a token, say).", metavar="NAME"
    )
    timeout: float | None = _run(
        None,
        "--timeout",
        "Stop a run that takes longer.",
        metavar="SECONDS",
        shown_default="the repro's own, 600 for a command",
        between=(1, _LONGEST_S),
    )
    capability: str = _run(
        DEFAULT_CAPABILITY, "--capability", "Compute capability that the stand-in for CUDA reports.", shown_default=True
    )
    torch_backend: str | None = _run(
        None,
        "--torch-backend",
        "Which PyTorch builds uv installs: auto, cpu, cu128, ...; none: those of the index, with all GPU libraries.",
        metavar="NAME",
        shown_default="those of the index, on a machine without a GPU without GPU libraries [UV_TORCH_BACKEND]",
    )
    sandbox: str | None = _run(
        None,
        "--sandbox",
        "Run repros in a bubblewrap sandbox: where it works, always, or never [HARNESS_SANDBOX].",
        choices=("auto", "require", "off"),
        shown_default="auto",
    )
    network: bool = _run(False, "--network", "Let repros and builds use the network in the sandbox.")
    max_disk: int | None = _limit(
        None,
        "--max-disk",
        "Limit of the harness's cache (20GiB); the least recently used environments go first [HARNESS_MAX_DISK].",
        metavar="SIZE",
    )
    lanes: int | None = _lane(
        None,
        "--lanes",
        "How many probes run at once.",
        shown_default="2 on the CPU, but 1 for tests without the sandbox and where speed counts; 4 with --on; "
        "all of the scheduler's workers",
        between=(1, 64),
    )
    on: str | None = _lane(
        None,
        "--on",
        "Run probes on other machines by a command for each, such as 'sbatch --wait {script}' or 'ssh gpu1 {script}' "
        "(docs/guides/many-machines.md).",
        metavar="COMMAND",
        not_for=(
            Trait.PYTHONS,
            Trait.MADE,
            Trait.ASK,
        ),
    )
    scheduler: str | None = _lane(
        None,
        "--scheduler",
        "Run probes on those workers of this Dask scheduler that match this machine.",
        metavar="ADDRESS",
        not_for=(
            Trait.PYTHONS,
            Trait.MADE,
            Trait.ASK,
        ),
    )
    results: Path = option_field(  # noqa: RUF009 - an attrs field with a factory
        Factory(lambda: results_folder()),
        "--results",
        "Folder for results; runs that are in it are not repeated.",
        shown_default="HARNESS_RESULTS, else .harness in the project",
        group=OptionGroup.RESULTS,
    )

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that ask the same question again, quoted for a shell; `--param` is listed with the repro."""
        groups = (OptionGroup.QUESTION, OptionGroup.RUNS, OptionGroup.RESULTS)
        return self.words_of_given(lambda option: option.group in groups and option.flag != "--param")

    @staticmethod
    def words_of(typed: Iterable[str], *groups: OptionGroup) -> tuple[str, ...]:
        """The words of `typed` that are options of these groups, or that name the results folder."""
        chosen, words = list[str](), iter(typed)
        options = {setting.metadata["option"].flag: setting for setting in fields(Settings)}
        for word in words:
            setting = options.get(word)
            if setting is None:
                continue
            value = [] if setting.default is False else [next(words, "")]
            if setting.metadata["option"].group in (*groups, OptionGroup.RESULTS):
                chosen += [word, *value]
        return tuple(chosen)

    @property
    def executor(self) -> str | None:
        """The command or the address of what runs probes on other machines, None if they run on this one.

        Raises `UserMistake` for a command without the place of a script, and if there is an address, too.
        """
        if self.on is not None and self.scheduler is not None:
            raise UserMistake("--on and --scheduler contradict each other", hint="leave out one of them")
        if self.on is not None and "{script}" not in self.on:
            hint = "{script} is where the file goes that runs a probe there: --on 'ssh gpu1 {script}'"
            raise UserMistake(f"--on {self.on!r} has no {{script}} in it", hint=hint)
        if self.scheduler is not None and "{script}" in self.scheduler:
            raise UserMistake("--scheduler takes the address of a Dask scheduler", hint="--on takes a command")
        return self.on or self.scheduler

    @property
    def buildable(self) -> tuple[str, ...]:
        """What may be built from source. Raises `UserMistake` if `--no-build` contradicts it."""
        if self.no_build and self.from_source:
            raise UserMistake("--build and --no-build contradict each other", hint="leave out one of them")
        return (NO_SOURCE,) if self.no_build else self.from_source

    def with_index_of(self, subject: str | None) -> Settings:
        """Return the settings with the project of each index: `subject` where none is written.

        Raises `UserMistake` if there is none, or if the runs are made on workers.
        """
        if (self.index or self.nightly) and self.executor:
            option, elsewhere = "--nightly" if self.nightly else "--index", "--on" if self.on else "--scheduler"
            raise UserMistake(
                f"{option} does not apply with {elsewhere}", hint="UV_INDEX on the other machines names it there"
            )
        index = (*self.index, *self._nightly_indexes(subject))
        pairs = [(subject or "", text) if _is_url(text) else tuple(text.split("=", 1)) for text in index]
        for text, (name, *url) in zip(index, pairs, strict=True):
            if not name or not url or not _is_url(url[0]):
                raise UserMistake(f"--index takes PROJECT=URL, not {text!r}", hint="without PROJECT it needs a package")
        return evolve(self, index=tuple(f"{normalized_name(name)}={url}" for name, url in pairs), nightly=False)

    def _nightly_indexes(self, subject: str | None) -> tuple[str, ...]:
        """The index of nightly builds of a project and its companions, if wanted. Raises `UserMistake`."""
        if not self.nightly:
            return ()
        if subject is None:
            raise UserMistake("--nightly needs the package in question", hint="elsewhere --index PROJECT=URL names it")
        url, projects = next(
            ((url, names) for url, names in _NIGHTLY.items() if normalized_name(subject) in names.split()), ("", "")
        )
        if not url:
            known = ", ".join(sorted(name for names in _NIGHTLY.values() for name in names.split()))
            raise UserMistake(f"no index of nightly builds of {subject} is known", hint=f"--index URL; known: {known}")
        if _BACKEND in url:
            backend = self.torch_backend
            if backend in (None, "auto", NO_BACKEND) and self.device == "cuda":
                raise UserMistake(
                    "--nightly needs to know for which CUDA", hint="--torch-backend cu128; the index has others, too"
                )
            url = url.replace(_BACKEND, "cpu" if backend in (None, "auto", NO_BACKEND) else str(backend))
            return tuple(f"{name}={url}" for name in projects.split())  # each requires the others of its own day
        return (f"{subject}={url}",)

    @property
    def own_indexes(self) -> tuple[tuple[str, str], ...]:
        """The projects of `index` with their URLs; see `with_index_of`."""
        return tuple((name, url) for name, _, url in (text.partition("=") for text in self.index) if _is_url(url))

    @property
    def held(self) -> tuple[str, ...]:
        """The requirements in `hold`."""
        return tuple(text for text in self.hold if text != "none")

    @property
    def in_place(self) -> bool:
        """Whether `python` is the path of an environment's interpreter, to run in as it is."""
        return bool(self.python and "/" in self.python)
