"""The words of a line are those of a POSIX shell, whatever is typed."""

import re
import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from featurewatch.cli.commands.shell.words import (
    MAX_LINE_CHARS,
    arguments_of,
    join_lines,
    split,
)
from featurewatch.cli.errors import UsageError

TYPED = st.text("ab-=,. \t'\"\\#|é\x1b", max_size=30)


@example("a 'b c' \"d\\\"e\" f\\ g ''")
@given(TYPED.filter(lambda text: "#" not in text))
def test_words_are_those_of_shlex(text: str) -> None:
    """Python's own lexer is the oracle; where it finds no end, the line is unfinished."""
    words, is_open, *_ = split(text)
    try:
        expected = shlex.split(text)
    except ValueError:
        assert is_open
    else:
        assert not is_open
        assert [word.text for word in words] == expected


@given(TYPED)
def test_a_word_starts_at_its_position(text: str) -> None:
    """Starts are in order, at no space, and behind a space or the beginning."""
    words, _, is_ended, is_comment = split(text)
    starts = [word.start for word in words]
    assert starts == sorted(set(starts))
    for start in starts:
        assert text[start] not in " \t"
        assert start == 0 or text[start - 1] in " \t"
    if not is_comment:
        assert is_ended == (not words or split(text + "x").words[:-1] == words)


@given(st.lists(st.text(max_size=10).filter(lambda text: "\0" not in text), max_size=5))
def test_quoted_arguments_come_back(arguments: list[str]) -> None:
    """What `shlex.join` writes is read, whatever the arguments hold."""
    line = shlex.join(["featurewatch", "topics", *arguments])
    try:
        assert arguments_of(line) == ["topics", *arguments]
    except UsageError as error:
        assert "has no" in str(error)
        assert {"|", "||", "&", "&&", ";", "<", ">", ">>"} & set(arguments)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("", []),
        ("  # topics list", []),
        ("featurewatch", []),
        ("featurewatch topics list # all", ["topics", "list"]),
        ("topics list --topic 'a|b'", ["topics", "list", "--topic", "a|b"]),
        ("topics list --topic a#b", ["topics", "list", "--topic", "a#b"]),
    ],
)
def test_a_line_has_arguments(line: str, arguments: list[str]) -> None:
    """The program's name may come first, as in a line that was copied."""
    assert arguments_of(line) == arguments


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("topics list | sort", "has no |"),
        ("topics list > file", "has no >"),
        ("topics list --topic 'a", "quotation mark"),
        ("topics list \\", "backslash"),
        ("topics \0", "NUL"),
        ("x" * (MAX_LINE_CHARS + 1), "characters"),
    ],
)
def test_a_line_that_is_no_command_is_one_error(line: str, reason: str) -> None:
    """Nothing is run of it."""
    with pytest.raises(UsageError, match=reason.replace("|", r"\|")):
        arguments_of(line)


@given(st.lists(st.text("ab\\ '", max_size=8), min_size=1, max_size=8))
def test_an_odd_number_of_backslashes_continues_a_line(lines: list[str]) -> None:
    """The oracle is a regular expression over all of the text."""
    text = "".join(line + "\n" for line in lines)
    expected = re.sub(r"(?<!\\)((?:\\\\)*)\\\n", r"\1", text).split("\n")
    if _is_whole(lines[-1]):
        expected.pop()
    assert [line for _, line in join_lines(text.splitlines(keepends=True))] == expected


def _is_whole(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 0


def test_a_backslash_continues_a_line() -> None:
    """As in the examples of the documentation, which may be pasted."""
    lines = ["topics create \\\n", "  --topic a\n", "topics list\n", "# no \\\n", "exit"]
    assert list(join_lines(lines)) == [
        (1, "topics create   --topic a"),
        (3, "topics list"),
        (4, "# no \\"),
        (5, "exit"),
    ]
