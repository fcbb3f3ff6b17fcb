"""The options of a command line: the shared ones as one frozen `Settings`, and their sections in `--help`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import attrs
import click
from click.shell_completion import CompletionItem

from harness.arguments import Option, OptionGroup
from harness.model.text import parse_size
from harness.question.parsing import read_duration
from harness.settings import Settings

# The sections of `--help`, in the order in which they are shown.
_ORDER = ("Options", "Question", "Ends", "Project", "Search", "Environment", "Execution", "Output")
_SECTIONS = {
    OptionGroup.QUESTION: "Environment",
    OptionGroup.RUNS: "Execution",
    OptionGroup.LIMITS: "Execution",
    OptionGroup.LANES: "Execution",
    OptionGroup.RESULTS: "Output",
    OptionGroup.SEARCH: "Search",
    OptionGroup.PROJECT: "Project",
}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_ELSEWHERE = {
    **dict.fromkeys(("--param", "--find-fix", "--made"), "Question"),
    "--git": "Ends",
    "--device": "Execution",
    "--torch-backend": "Environment",
}


class SectionOption(click.Option):
    """An option that `--help` of a `SectionCommand` lists below the heading `section`."""

    def __init__(self, *arguments: Any, section: str = _ORDER[0], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.section = section


def option(section: str, *names: str, **settings: Any) -> Decorator:
    """Add an option below the heading `section` of `--help`; otherwise like `click.option`."""
    return click.option(*names, cls=SectionOption, section=section, **settings)


class SectionCommand(click.Command):
    """A command whose `--help` lists its options in sections; its context's `meta` has the words that were `typed`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command."""
        ctx.meta["typed"] = tuple(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, below their headings."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = getattr(param, "section", _ORDER[-1] if record[0].endswith("--help") else _ORDER[0])
                sections.setdefault(section, []).append(record)
        for section, records in sorted(sections.items(), key=lambda row: _ORDER.index(row[0])):
            with formatter.section(section):
                formatter.write_dl(records)


class _Folder(click.Path):
    """A folder with a name that can exist: click takes an empty text as the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty text is not a folder", param, ctx)
        try:
            Path(value).exists()
        except OSError as error:
            self.fail(f"{str(value)[:40]}... can't be a folder: {error.strerror}", param, ctx)
        return super().convert(value, param, ctx)


def _size(text: str) -> int:
    """The bytes of a size such as 20GiB."""
    if size := parse_size(text):
        return size
    raise click.BadParameter(f"{text!r} is not a size such as 20GiB")


def _duration(text: str) -> float:
    """The seconds of a duration such as 90s."""
    return read_duration(text, "--time")


_NUMBERS: dict[str, Callable[..., Any]] = {"int": click.IntRange, "float": click.FloatRange}
# The types of fields whose values are typed otherwise than they are printed.
_TYPES: dict[str, Any] = {
    "max_disk": _size,
    "results": _Folder(path_type=Path, file_okay=False),
    "time_s": _duration,
    "folder": click.Path(path_type=Path),
}
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


def settings_options(*groups: OptionGroup) -> Decorator:
    """Add the options of these groups and `--results` to a command, which gets them as the argument `settings`."""
    shown = (*groups, OptionGroup.RESULTS)
    wanted = [part.name for part in attrs.fields(Settings) if part.metadata["option"].group in shown]
    return grouped("settings", Settings, wanted, options_of(Settings, *wanted))


def made_of(kind: type[attrs.AttrsInstance]) -> list[str]:
    """Return the names of the fields of an attrs class that have an option."""
    return [part.name for part in attrs.fields(kind) if "option" in part.metadata]


def options_of(kind: type[attrs.AttrsInstance], *names: str) -> list[Decorator]:
    """Return the options of these fields of an attrs class; of all without names."""
    return [_click_option(part) for part in attrs.fields(kind) if part.name in (names or made_of(kind))]


def grouped(
    name: str, kind: type[attrs.AttrsInstance], fields: Collection[str], options: Iterable[Decorator]
) -> Decorator:
    """Add options to a command; those that are these fields of an attrs class it gets as one argument `name`."""
    added = list(options)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(**given: Any) -> Any:
            return command(**{name: kind(**{part: given.pop(part) for part in fields if part in given})}, **given)

        decorated: Callable[..., Any] = called
        for add in reversed(added):
            decorated = add(decorated)
        return decorated

    return decorate


def complete_repros(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a repro or of a script in the working directory; else a path."""
    from harness.question.repros import list_repros

    names = {repro.name: repro.summary for repro in list_repros()}
    names |= {path.name: "" for path in sorted(Path().glob("*.py"))}
    items = [CompletionItem(name, help=line) for name, line in names.items() if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]


def complete_subjects(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a package that a repro names."""
    from harness.question.repros import list_repros

    names = sorted({subject for repro in list_repros() for subject in repro.subjects})
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_answers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the ID of an answer in the results, the newest first."""
    from harness.report.archive import Archive
    from harness.store import Store

    folder = ctx.params.get("results") or Settings().results
    stored = Archive(Store.opened(folder)).all() if Path(folder).is_dir() else ()
    return [
        CompletionItem(row.id, help=row.answer.sentence) for row in reversed(stored) if row.id.startswith(incomplete)
    ]


def repro_argument(*, required: bool = True) -> Decorator:
    """Add the argument REPRO."""
    return click.argument("repro", required=required, shell_complete=complete_repros)


def subject_argument(*, required: bool = True) -> Decorator:
    """Add the argument SUBJECT."""
    return click.argument("subject", required=required, shell_complete=complete_subjects)


def repro_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--repro` and `--run` to a command."""
    which = option(
        "Question",
        "--repro",
        metavar="NAME|PATH",
        shell_complete=complete_repros,
        help="Repro to run [default: the one that names the subject].",
    )
    run = option(
        "Question",
        "--run",
        metavar="COMMAND",
        help="Command to run instead: exit code 0 is good, 125 skips, anything else is a failure.",
    )
    return which(run(command))


def end_option(*names: str, metavar: str, help: str) -> Decorator:  # noqa: A002
    """Add an end of the search to a command."""
    return option("Ends", *names, metavar=metavar, help=help)


def output_option(words: str) -> Decorator:
    """Add `--output FILE` to a command, which gets it as `file`, with these words as its help."""
    return click.option("-o", "--output", "file", type=FILE, metavar="FILE", help=words)


def json_option(what: str) -> Decorator:
    """Add `--json` to a command, for printing only `what` on stdout."""
    return option("Output", "--json", "as_json", is_flag=True, help=f"Print only {what} on stdout.")


def _type_of(part: attrs.Attribute[Any]) -> Any:
    described: Option = part.metadata["option"]
    if described.choices:
        return click.Choice(described.choices)
    number = _NUMBERS.get(str(part.type).partition(" ")[0])
    return _TYPES.get(part.name) or (number(*described.between or ()) if number is not None else None)


def _click_option(part: attrs.Attribute[Any]) -> Decorator:
    described: Option = part.metadata["option"]
    default = part.default
    return option(
        _ELSEWHERE.get(described.flag, _SECTIONS[described.group]),
        described.flag,
        part.name,
        type=_type_of(part),
        is_flag=isinstance(default, bool),
        multiple=default == (),
        default=getattr(default, "factory", default) if default != () else None,
        show_default=described.shown_default,
        metavar=described.metavar,
        help=described.help,
    )
