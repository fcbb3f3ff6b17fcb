"""The options of a command line: the shared ones as one frozen `Settings`, and their sections in `--help`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import attrs
import click

from harness.model.text import parse_size
from harness.settings import Option, OptionGroup, Settings

# The sections of `--help`, in the order in which they are shown.
_ORDER = ("Options", "Question", "Ends", "Project", "Search", "Environment", "Execution", "Output")
_SECTIONS = {
    OptionGroup.QUESTION: "Environment",
    OptionGroup.RUNS: "Execution",
    OptionGroup.LIMITS: "Execution",
    OptionGroup.LANES: "Execution",
    OptionGroup.RESULTS: "Output",
}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_ELSEWHERE = {"--param": "Question", "--device": "Execution", "--torch-backend": "Environment"}


class SectionOption(click.Option):
    """An option that `--help` of a `SectionCommand` lists below the heading `section`."""

    def __init__(self, *arguments: Any, section: str = _ORDER[0], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.section = section


def option(section: str, *names: str, **more: Any) -> Decorator:
    """Add an option below the heading `section` of `--help`; otherwise like `click.option`."""
    return click.option(*names, cls=SectionOption, section=section, **more)


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


class Choice(click.Choice[str]):
    """A choice that suggests a value for a misspelled one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value. Fails if it is none of the choices."""
        if value not in self.choices and (close := difflib.get_close_matches(str(value), self.choices, n=1)):
            self.fail(f"{value!r} is not one of {', '.join(self.choices)}; did you mean {close[0]!r}?", param, ctx)
        return super().convert(value, param, ctx)


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


# The types of settings that are neither a text nor a flag.
_TYPES: dict[str, Any] = {
    "timeout": click.FloatRange(min=0),
    "lanes": click.IntRange(1, 64),
    "max_disk": _size,
    "results": _Folder(path_type=Path, file_okay=False),
}
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


def settings_options(*groups: OptionGroup) -> Decorator:
    """Add the options of these groups and `--results` to a command, which gets them as the argument `settings`."""
    shown = (*groups, OptionGroup.RESULTS)
    wanted = [setting for setting in attrs.fields(Settings) if setting.metadata["option"].group in shown]
    return grouped("settings", Settings, [setting.name for setting in wanted], map(_click_option, wanted))


def grouped(
    name: str, kind: type[attrs.AttrsInstance], fields: Collection[str], options: Iterable[Decorator]
) -> Decorator:
    """Add options to a command; those that are these fields of an attrs class it gets as one argument `name`."""
    added = list(options)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(**given: Any) -> Any:
            return command(**{name: kind(**{one: given.pop(one) for one in fields if one in given})}, **given)

        decorated: Callable[..., Any] = called
        for add in reversed(added):
            decorated = add(decorated)
        return decorated

    return decorate


def subject_argument(*, required: bool = True) -> Decorator:
    """Add the argument SUBJECT, which a shell completes."""
    return click.argument("subject", required=required, shell_complete=completed("subjects"))


def completed(what: str) -> Callable[..., Any]:
    """Return what click calls to complete a word, by the name of a function in `harness.cli.completion`."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Any:
        from harness.cli import completion

        try:
            return getattr(completion, what)(ctx, incomplete)
        except Exception:  # noqa: BLE001 - an error message would end up in the user's command line
            return []

    return complete


def repro_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--repro` and `--run` to a command."""
    which = option(
        "Question",
        "--repro",
        metavar="NAME|PATH",
        shell_complete=completed("repros"),
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
    """Add an end of the search to a command; a shell completes the releases of the subject."""
    return option("Ends", *names, metavar=metavar, shell_complete=completed("releases"), help=help)


def output_option(words: str) -> Decorator:
    """Add `--output FILE` to a command, with these words as its help."""
    return click.option("-o", "--output", type=FILE, metavar="FILE", help=words)


def json_option(what: str) -> Decorator:
    """Add `--json` to a command, for printing only `what` on stdout."""
    return option("Output", "--json", "as_json", is_flag=True, help=f"Print only {what} on stdout.")


def _click_option(setting: attrs.Attribute[Any]) -> Decorator:
    told: Option = setting.metadata["option"]
    default = setting.default
    return option(
        _ELSEWHERE.get(told.flag, _SECTIONS[told.group]),
        told.flag,
        setting.name,
        type=Choice(told.choices) if told.choices else _TYPES.get(setting.name),
        is_flag=default is False,
        multiple=default == (),
        default=getattr(default, "factory", default) if default != () else None,
        show_default=told.shown_default,
        metavar=told.metavar,
        help=told.help,
    )
