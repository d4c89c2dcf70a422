"""YAML files: plain values, each key once, and one line for what is wrong."""

import datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.common.yaml_file import YamlError, parse, read


def test_scalars_stay_as_they_are_written_unless_types_are_wanted() -> None:
    """4.10 is a release in one file, and a number in another."""
    text = "{a: 4.10, b: [yes, 1], c: 2026-11-20, d: null}"
    assert parse(text, "f") == {"a": "4.10", "b": ["yes", "1"], "c": "2026-11-20", "d": "null"}
    typed = {"a": 4.1, "b": [True, 1], "c": datetime.date(2026, 11, 20), "d": None}
    assert parse(text, "f", typed=True) == typed


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "in line 5: the key c .* already set in line 3"),
        ("{a: 1, 'a': 1}", "in line 1: the key a is already set in line 1"),
        ("{? [1, 2] : 3}", "in line 1: found unhashable key"),
        ("a: [", "in line 1: "),
        ("a: \0", "special characters are not allowed"),
    ],
)
def test_what_is_wrong_names_the_line(text: str, says: str, typed: bool) -> None:
    """Whatever yaml itself would say of it, or not say."""
    with pytest.raises(YamlError, match=f"^levels.yaml is not YAML.*{says}") as raised:
        parse(text, "levels.yaml", typed=typed)
    assert "\n" not in str(raised.value)


def test_no_text_ends_in_another_error() -> None:
    """Nested without end, and a time that there is not."""
    with pytest.raises(YamlError, match=r"^f is nested too deep$"):
        parse("[" * 5000, "f")
    with pytest.raises(YamlError, match=r"^f is not YAML: month must be in"):
        parse("a: 2026-13-20", "f", typed=True)


def test_a_merged_key_may_be_there_already() -> None:
    """A mapping's own key goes before one that is merged in, also where another merges it."""
    text = "base: &b {x: 1, y: 1}\nin: {own: &o {<<: *b, x: 2}}\nout: {<<: *o, y: 3}\n"
    content = parse(text, "f", typed=True)
    assert (content["in"]["own"], content["out"]) == ({"x": 2, "y": 1}, {"x": 2, "y": 3})


def test_an_unreadable_file_is_in_the_error(tmp_path: Path) -> None:
    """It is not there, or holds no text."""
    file = tmp_path / "levels.yaml"
    with pytest.raises(YamlError, match=r"levels.yaml cannot be read: No such file"):
        read(file)
    file.write_bytes(b"a: \xff")
    with pytest.raises(YamlError, match=r"levels.yaml is not YAML: it is not text"):
        read(file)
    file.write_text("a: 1")
    assert read(file, typed=True) == {"a": 1}


TOKENS = (
    *(
        "- ",
        "? ",
        ": ",
        "&a ",
        "*a",
        "<<: ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\n",
        "\n  ",
        "#",
        "|",
        ">",
        "'",
    ),
    *(
        "!!int ",
        "!!float ",
        "!!bool ",
        "!!timestamp ",
        "!!binary ",
        "!!set ",
        "!!omap ",
        "!!pairs ",
    ),
    *(
        "!!python/name:os.system ",
        "!!merge ",
        "%YAML 9.9\n",
        "---",
        "...",
        "\t",
        '"\\x',
        "2026-02-30",
    ),
    *("a", "0x", "0b", "1:2", "1:", ".inf", "~", "yes", "9" * 5_000, "2026-01-01T00:00:00+99:99"),
)


@pytest.mark.fuzz
@settings(max_examples=300)
@example("!!int ")
@example("!!float ")
@example(f"!!float a{'9' * 5_000}")
@example("!!bool a")
@example("!!timestamp a")
@given(st.lists(st.sampled_from(TOKENS) | st.text(max_size=5), max_size=12).map("".join))
def test_any_text_is_plain_values_or_one_line(text: str) -> None:
    """Whatever a person writes: the values, or `YamlError`."""
    for typed in (False, True):
        try:
            parse(text, "f", typed=typed)
        except YamlError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 1_000
