"""Commands from functions and groups from names, on Click.

    @command()
    def state(config: ConfigFile = None, follow: Follow = False) -> None:
        \"\"\"Show each cluster.\"\"\"

A parameter's annotation, ``Annotated[type, Option(...)]``, defines how it is given, and its help;
its default is the function's. Typer has such annotations too, but its conversions load pydantic,
which takes longer than most commands.

A group knows its commands' names and summaries and imports a command when it runs or shows its
help, so a module of a command imports at its top only what the declaration needs.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import click
from click.exceptions import Exit

from featurewatch.common.text import closest

__all__ = [
    "Argument",
    "Command",
    "Exit",
    "LazyGroup",
    "Option",
    "command",
    "is_alone",
    "parameters",
    "run_command",
]

_METAVARS: Final = {str: "TEXT", int: "INTEGER", float: "NUMBER", Path: "PATH"}
_SETTINGS: Final = {"max_content_width": 100}
Check = Callable[[Any], Any]
"""Returns the checked value, or raises `click.BadParameter`."""


class Argument:
    """A positional parameter."""

    def __init__(self, *, help: str, metavar: str) -> None:  # noqa: A002 - Click's name
        self.help = help
        self.metavar = metavar


class Option:
    """A named parameter; without ``names`` its name is the parameter's.

    ``default`` is the text of a default that is not the function's; ``min`` and ``max`` bound a
    number; ``envvar`` is read where the option is not given.
    """

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002 - Click's name
        metavar: str | None = None,
        default: str | None = None,
        min: float | None = None,  # noqa: A002 - Click's name
        max: float | None = None,  # noqa: A002 - Click's name
        envvar: str | None = None,
        check: Check | None = None,
        is_eager: bool = False,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.default = default
        self.min = min
        self.max = max
        self.envvar = envvar
        self.check = check
        self.is_eager = is_eager


def command(
    name: str | None = None,
    *,
    cls: "type[Command] | None" = None,
    epilog: str | None = None,
    context_settings: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., None]], click.Command]:
    """Makes a command of a function; its docstring is the help."""

    def decorate(function: Callable[..., None]) -> click.Command:
        params, callback = parameters(function)
        return (cls or Command)(
            name or function.__name__.replace("_", "-"),
            params=params,
            callback=callback,
            help=inspect.getdoc(function),
            epilog=epilog,
            context_settings={**_SETTINGS, **(context_settings or {})},
        )

    return decorate


def parameters(
    function: Callable[..., None],
) -> tuple[list[click.Parameter], Callable[..., None]]:
    """Click's parameters for a function's own, and the callback that takes them."""
    declared = inspect.signature(function, eval_str=True).parameters.values()
    lists = {item.name: item.default for item in declared if _is_list(item.annotation)}

    @wraps(function)
    def callback(**values: Any) -> None:
        for name, default in lists.items():
            values[name] = list(values[name]) or default
        function(**values)

    return [_parameter(item) for item in declared], callback


def _parameter(declared: inspect.Parameter) -> click.Parameter:
    annotated, info = get_args(declared.annotation)[:2]
    kind = _bare(annotated)
    is_required = declared.default is inspect.Parameter.empty
    is_list = get_origin(kind) is list
    if is_list:
        kind = get_args(kind)[0]
    if isinstance(info, Argument):
        return _Argument(
            [declared.name],
            type=_type(kind, None, None),
            required=is_required,
            default=None if is_required else declared.default,
            nargs=-1 if is_list else 1,
            metavar=info.metavar,
            help=info.help
            if declared.default in (inspect.Parameter.empty, None, "")
            else f"{info.help}  [default: {declared.default}]",
        )
    names = info.names or (_flag(declared.name, kind),)
    return _Option(
        [declared.name, *names],
        type=None if kind is bool else _type(kind, info.min, info.max),
        is_flag=kind is bool,
        required=is_required,
        default=None if is_required else declared.default,
        multiple=is_list,
        help=info.help,
        metavar=info.metavar or _METAVARS.get(kind),
        envvar=info.envvar,
        show_envvar=info.envvar is not None,
        show_default=info.default or (not is_required and _shows_default(names, declared.default)),
        callback=_callback(kind, info.check),
        is_eager=info.is_eager,
    )


def _shows_default(names: tuple[str, ...], default: Any) -> bool:
    """Whether the default says anything: that of a flag does where its opposite can be given."""
    return default not in (None, "", False) or (default is False and "/" in names[0])


def _bare(annotated: Any) -> Any:
    """A type without its ``| None``."""
    if get_origin(annotated) in (Union, UnionType):
        (annotated,) = [part for part in get_args(annotated) if part is not type(None)]
    return annotated


def _is_list(annotation: Any) -> bool:
    return (
        get_origin(annotation) is Annotated and get_origin(_bare(get_args(annotation)[0])) is list
    )


def _flag(name: str, kind: type) -> str:
    flag = name.strip("_").replace("_", "-")
    return f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}"


def _type(kind: type, low: float | None, high: float | None) -> click.ParamType:
    if issubclass(kind, StrEnum):
        return click.Choice([str(member) for member in kind])
    if kind is Path:
        return click.Path(path_type=Path)
    if kind in (int, float):
        if low is None and high is None:
            return click.INT if kind is int else click.FLOAT
        return (click.IntRange if kind is int else click.FloatRange)(low, high)
    return click.STRING


def _callback(kind: type, check: Check | None) -> Callable[..., Any] | None:
    if issubclass(kind, StrEnum):
        check = lambda value: None if value is None else kind(value)  # noqa: E731
    if check is None:
        return None

    def callback(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        return check(value)

    return callback


class _Option(click.Option):
    """An option whose help has the whole default, without parentheses."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


class _Argument(click.Argument):
    """An argument with its own help text."""

    def __init__(self, *args: Any, help: str, **attributes: Any) -> None:  # noqa: A002 - as above
        super().__init__(*args, **attributes)
        self.help = help


class _Formatter(click.HelpFormatter):
    """A formatter that breaks no line inside ``--an-option``: `textwrap` would, at hyphens."""

    _HYPHEN = "\N{NON-BREAKING HYPHEN}"

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", self._HYPHEN))

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        unbroken = [(term, text.replace("-", self._HYPHEN)) for term, text in rows]
        super().write_dl(unbroken, col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(self._HYPHEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A command whose help lists its arguments, then its options."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the two lists."""
        arguments = [param for param in self.params if isinstance(param, _Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(param.make_metavar(ctx), param.help) for param in arguments])
        super().format_options(ctx, formatter)


class LazyGroup(click.Group):
    """A group of commands, by name with their summaries.

    ``module`` names the module of each: ``{}`` stands for the command's name, or for that in
    ``shared`` where a module has several. One of its attributes is the command, or a group. The
    help lists commands by ``sections``: names of commands by title. With
    ``invoke_without_command`` the callback runs, and `is_alone` tells it whether no command was
    named.
    """

    context_class = _Context

    def __init__(
        self,
        name: str,
        summaries: Mapping[str, str],
        module: str,
        *,
        shared: Mapping[str, str] = MappingProxyType({}),
        sections: Mapping[str, Sequence[str]] = MappingProxyType({}),
        **others: Any,
    ) -> None:
        settings = {**_SETTINGS, **others.pop("context_settings", {})}
        shows_help = not others.get("invoke_without_command")
        super().__init__(name, no_args_is_help=shows_help, context_settings=settings, **others)
        self.summaries = summaries
        self._module = module
        self._shared = shared
        self._sections = sections

    def list_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click calls it so
    ) -> list[str]:
        """The names, in the order of the help."""
        return list(self.summaries)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses as Click does; the error names an option that precedes its sub-command."""
        before = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.possibilities and any(name in before for name in self.summaries):
                raise click.UsageError(
                    f"No such option here: {error.option_name}. The options of a command follow "
                    f"its name, as in `{ctx.command_path} COMMAND {error.option_name} ...`.",
                    ctx,
                ) from None
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the arguments; a misspelt one is an error that names the intended one."""
        name = args[0]
        if name not in self.summaries and (close := closest(name, self.summaries, 0.6)):
            raise click.UsageError(f"No such command '{name}'. Did you mean '{close}'?", ctx)
        return super().resolve_command(ctx, args)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click calls it so
        cmd_name: str,
    ) -> click.Command | None:
        """Imports the command of a name; returns None for an unknown name."""
        if cmd_name not in self.summaries:
            return None
        name = self._shared.get(cmd_name, cmd_name.replace("-", "_"))
        module = import_module(self._module.format(name))
        offered = (item for item in vars(module).values() if isinstance(item, click.Command))
        return next(item for item in offered if item.name == cmd_name)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - Click calls it so
        formatter: click.HelpFormatter,
    ) -> None:
        """Writes each section's names and whole summaries; commands in no section come last."""
        sectioned = {name for names in self._sections.values() for name in names}
        others = [name for name in self.summaries if name not in sectioned]
        for title, names in {**self._sections, "Commands": others}.items():
            rows = [(name, self.summaries[name]) for name in names if name in self.summaries]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def is_alone() -> bool:
    """Whether the group whose callback runs was called without one of its commands."""
    return click.get_current_context().invoked_subcommand is None


def run_command(
    command: click.Command,
    arguments: Sequence[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    show: Callable[[click.ClickException], None] = click.ClickException.show,
) -> int:
    """Runs a command, by default with the process's arguments; returns its exit code.

    ``defaults`` are values of parameters that are not given, by name, and of sub-commands' by
    their names. ``show`` prints an error of usage. What Click does in its standalone mode, but for
    Ctrl-C, which is raised.
    """
    given = None if arguments is None else list(arguments)
    try:
        code = command.main(
            given, prog_name=command.name, standalone_mode=False, default_map=defaults
        )
    except click.ClickException as error:
        show(error)
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code or 0
