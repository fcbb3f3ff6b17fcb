"""Turns the shared options of a command line into one frozen `Settings`; also the options for a repro."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from harness.model.text import parse_size
from harness.settings import Group, Option, Settings, ValueKind

if TYPE_CHECKING:
    from collections.abc import Callable


class _Folder(click.Path):
    """A folder whose name is not empty: click takes an empty text as the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("an empty text is not a folder", param, ctx)
        return super().convert(value, param, ctx)


def settings_options(*groups: Group) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of these groups and `--results` to a command, which gets them as the argument `settings`."""
    wanted = [name for name, option in _options().items() if option.group in (*groups, Group.RESULTS)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(**given: Any) -> Any:
            chosen = {name: given.pop(name) for name in wanted}
            return command(settings=Settings(**chosen), **given)

        decorated: Callable[..., Any] = called
        for name in reversed(wanted):
            decorated = _click_option(name)(decorated)
        return decorated

    return decorate


def grouped(name: str, kind: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Pass the options that are fields of the attrs class `kind` to a command as one argument `name`."""
    wanted = [field.name for field in attrs.fields(kind)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(**given: Any) -> Any:
            return command(**{name: kind(**{one: given.pop(one) for one in wanted if one in given})}, **given)

        return called

    return decorate


def repro_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--repro` and `--run` to a command."""
    which = click.option("--repro", metavar="NAME|PATH", help="Repro to run [default: the one that names the subject].")
    run = click.option(
        "--run",
        metavar="COMMAND",
        help="Command to run instead: exit code 0 is good, 125 skips, anything else is a failure.",
    )
    return which(run(command))


def json_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--json` to a command, for printing only `what` on stdout."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print only {what} on stdout.")


def _options() -> dict[str, Option]:
    return {field.name: field.metadata["option"] for field in attrs.fields(Settings)}


def _click_option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    option = _options()[name]
    default = getattr(attrs.fields(Settings), name).default
    more: dict[str, Any] = {}
    match option.kind:
        case ValueKind.SECONDS:
            more["type"] = click.FloatRange(min=0)
        case ValueKind.LANES:
            more["type"] = click.IntRange(1, 64)
        case ValueKind.FOLDER:
            more["type"] = _Folder(path_type=Path, file_okay=False)
        case ValueKind.FLAG:
            more["is_flag"] = True
        case ValueKind.SIZE:
            more["callback"] = _size
        case ValueKind.TEXT if option.choices:
            more["type"] = click.Choice(option.choices)
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory
    return click.option(
        option.flag,
        name,
        multiple=default == (),
        default=None if default == () else default,
        show_default=option.shown_default,
        metavar=option.metavar,
        help=option.help,
        **more,
    )


def _size(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    size = parse_size(text) if text else None
    if text and not size:
        raise click.BadParameter(f"{text!r} is not a size such as 20GiB")
    return size
