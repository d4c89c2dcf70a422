"""Completions of a line that is being typed; pure, except that it lists files for paths.

A candidate replaces the word before the cursor, from its first character on.
"""

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from featurewatch.cli.commands.shell.catalogue import OptionShape, shape_of
from featurewatch.cli.commands.shell.cluster_names import ClusterNames
from featurewatch.cli.commands.shell.option_values import Value, values_of
from featurewatch.cli.commands.shell.place import Place, Shapes, option_of, place_behind
from featurewatch.cli.commands.shell.target import CONNECTION_OPTIONS
from featurewatch.cli.commands.shell.words import MAX_LINE_CHARS, PROGRAM, split
from featurewatch.common.text import plain

MAX_CANDIDATES: Final = 200
"""More candidates are no help; the next letter reduces them."""

MAX_FILES: Final = 10_000
"""The number of files of one directory that are looked at."""

MAX_NOTE_CHARS: Final = 60


class Candidate(NamedTuple):
    """``text`` replaces the line from ``start`` to the cursor; a person is shown the others."""

    text: str
    start: int
    display: str
    note: str = ""


def complete(line: str, names: ClusterNames, shapes: Shapes = shape_of) -> list[Candidate]:
    """The candidates for a line up to the cursor, at most `MAX_CANDIDATES`; may be empty."""
    if len(line) > MAX_LINE_CHARS:
        return []
    words, _, is_ended, is_comment = split(line)
    if is_comment:
        return []
    typed, start = ("", len(line)) if is_ended else words.pop()
    texts = [word.text for word in words]
    if texts[:1] == [PROGRAM]:
        texts = texts[1:]
    is_help = texts[:1] == ["help"]
    place = place_behind(texts[1:] if is_help else texts, shapes)
    if place is None:
        return []
    values = _children(place, typed) if is_help else _values(place, typed, names)
    return [
        Candidate(
            text=_quoted(value.kept) + _quoted(value.text),
            start=start,
            display=plain(value.text),
            note=plain(value.note)[:MAX_NOTE_CHARS],
        )
        for value in islice(values, MAX_CANDIDATES)
    ]


def _values(place: Place, typed: str, names: ClusterNames) -> Iterator[Value]:
    if place.pending is not None:
        return _option_values(place.path, place.pending, typed, names)
    if typed.startswith("-"):
        name, is_valued, text = typed.partition("=")
        if not is_valued:
            return _options(place, typed)
        option = option_of(place.shape, name)
        if option is None or not option.takes_value:
            return iter(())
        values = _option_values(place.path, option, text, names)
        return (value._replace(kept=f"{name}={value.kept}") for value in values)
    if place.shape.children:
        return _children(place, typed)
    return _options(place, typed)


def _children(place: Place, typed: str) -> Iterator[Value]:
    return (
        Value(name, summary)
        for name, summary in place.shape.children.items()
        if name.startswith(typed)
    )


def _options(place: Place, typed: str) -> Iterator[Value]:
    """Options that may still be given; those of the connection are the shell's own."""
    for option in place.shape.options:
        is_used = not option.is_multiple and not place.used.isdisjoint(option.names)
        if is_used or option.names[0] in CONNECTION_OPTIONS:
            continue
        for name in option.names:
            if name.startswith(typed) and (name.startswith("--") or typed == name):
                yield Value(name, option.help)


def _option_values(
    path: tuple[str, ...], option: OptionShape, typed: str, names: ClusterNames
) -> Iterator[Value]:
    return _files(typed) if option.is_path else values_of(path, option, typed, names)


def _files(typed: str) -> Iterator[Value]:
    """Files and directories whose path begins so."""
    directory, slash, prefix = typed.rpartition("/")
    try:
        with os.scandir(f"{directory}{slash}" or ".") as entries:
            found = [
                (entry.name, entry.is_dir())
                for entry in islice(entries, MAX_FILES)
                if entry.name.startswith(prefix) and entry.name.isprintable()
            ]
    except (OSError, ValueError):
        return
    for name, is_directory in sorted(found):
        if prefix or not name.startswith("."):
            yield Value(f"{name}/" if is_directory else name, kept=f"{directory}{slash}")


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""
