"""Man pages and completion of the command line, from its declarations. Pure."""

from datetime import UTC, datetime
from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from featurewatch.cli.app import app
from scripts.releasing.archives import Member

_PROGRAM: Final = "featurewatch"
_VARIABLE: Final = "_FEATUREWATCH_COMPLETE"
_COMPLETIONS: Final = {
    "share/bash-completion/completions/featurewatch": BashComplete,
    "share/zsh/site-functions/_featurewatch": ZshComplete,
    "share/fish/vendor_completions.d/featurewatch.fish": FishComplete,
}


def shell_files(version: str, epoch_s: int) -> dict[str, Member]:
    """Returns the files for ``/usr/local``, by path; ``epoch_s`` is the date of the pages."""
    date = datetime.fromtimestamp(epoch_s, UTC).date().isoformat()
    files = {f"share/man/man1/{name}.1": page for name, page in man_pages(version, date).items()}
    for path, shell in _COMPLETIONS.items():
        # `source` would start bash to learn its version.
        completion = shell(app, {}, _PROGRAM, _VARIABLE)
        files[path] = completion.source_template % completion.source_vars()
    return {path: Member(text.encode()) for path, text in files.items()}


def man_pages(version: str, date: str) -> dict[str, str]:
    """Returns a page for the program and for each of its commands, by name."""
    context = _context(app, _PROGRAM, None)
    commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    pages = {_PROGRAM: _program_page(context, version, date)}
    for name, command in commands.items():
        if command is not None:
            inner = _context(command, name, context)
            pages[f"{_PROGRAM}-{name}"] = _command_page(inner, app.summaries[name], version, date)
    return pages


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """A context with the command's settings; Click keeps the first help option that it makes."""
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _program_page(context: click.Context, version: str, date: str) -> str:
    summary = (app.help or "").rstrip(".")
    lines = [*_heading(_PROGRAM, summary, version, date), *_usage(context), ".SH COMMANDS"]
    for name, about in app.summaries.items():
        lines += [".TP", f".BR {_word(f'{_PROGRAM}-{name}')} (1)", _text(about)]
    lines += [".SH OPTIONS", *_options(context)]
    return _page(lines)


def _command_page(context: click.Context, summary: str, version: str, date: str) -> str:
    name = context.command_path.replace(" ", "-")
    lines = [*_heading(name, summary.rstrip("."), version, date), *_usage(context)]
    lines += [".SH DESCRIPTION", *_paragraphs(context.command.help or summary)]
    lines += [".SH OPTIONS", *_options(context), *_subcommands(context)]
    lines += [".SH SEE ALSO", f".BR {_word(_PROGRAM)} (1)"]
    return _page(lines)


def _subcommands(context: click.Context) -> list[str]:
    """A section for each command below a group, at any depth."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    lines = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        inner = _context(command, name, context)
        lines += [f".SH {_word(inner.command_path.removeprefix(f'{_PROGRAM} ').upper())}"]
        lines += [*_usage(inner, ".PP"), *_paragraphs(command.help or ""), *_options(inner)]
        lines += _subcommands(inner)
    return lines


def _heading(name: str, summary: str, version: str, date: str) -> list[str]:
    title = f'.TH "{_text(name.upper())}" "1" "{date}" "featurewatch {version}"'
    return [title, ".SH NAME", f"{_word(name)} \\- {_text(summary)}"]


def _usage(context: click.Context, heading: str = ".SH SYNOPSIS") -> list[str]:
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return [heading, f"\\fB{_word(context.command_path)}\\fR {_text(pieces)}"]


def _options(context: click.Context) -> list[str]:
    lines = []
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None and isinstance(parameter, click.Argument):
            record = parameter.make_metavar(context), getattr(parameter, "help", "")
        if record is not None:
            lines += [".TP", f"\\fB{_text(record[0])}\\fR", _text(record[1])]
    return lines


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        if words := " ".join(paragraph.split()):
            lines += [".PP", _text(words)]
    return lines


def _word(text: str) -> str:
    return f'"{_text(text)}"' if " " in text and text.isupper() else _text(text)


def _text(text: str) -> str:
    """Text that roff prints as it is: hyphens as they are typed, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    escaped = escaped.replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped


def _page(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
