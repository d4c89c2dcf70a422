"""Lines of a log as JSON: the same fields in all of them, whatever was logged."""

import asyncio
import json
import logging
import sys
from typing import Any

from featurewatch.common.json_log import FIELDS, MAX_EVENT_CHARS, MAX_TRACE_CHARS, JsonFormatter
from featurewatch.common.log_subject import log_subject
from tests.paths import ROOT


def line_of(message: str, *arguments: Any, name: str = "featurewatch.watch", **more: Any) -> Any:
    """The document that a formatter makes of one record."""
    extra = more.pop("extra", None)
    log = logging.getLogger(name)
    record = log.makeRecord(
        name, logging.WARNING, __file__, 1, message, arguments, extra=extra, **more
    )
    record.created = 1_700_000_000.123
    text = JsonFormatter().format(record)
    assert "\n" not in text
    return json.loads(text)


def test_a_line_has_all_fields() -> None:
    """Those that do not apply are null."""
    assert line_of("%s: %d left", "topic", 3, exc_info=None) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "WARNING",
        "component": "watch",
        "cluster": None,
        "source": None,
        "event": "topic: 3 left",
        "error": None,
        "trace": None,
    }
    assert tuple(line_of("x", exc_info=None)) == tuple(FIELDS)


def test_an_exception_is_one_field() -> None:
    """Its class and text, and the traceback, without what a terminal would obey."""

    class OddError(Exception):
        def __str__(self) -> str:
            return "bad \x1b[31mnews"

    try:
        raise OddError
    except OddError:
        line = line_of("it failed", exc_info=sys.exc_info())
    assert line["error"] == "OddError: bad \N{REPLACEMENT CHARACTER}[31mnews"
    assert line["trace"].startswith("Traceback (most recent call last):\n")
    assert line["trace"].endswith(line["error"])
    assert "\x1b" not in line["trace"]


def test_texts_of_peers_are_bounded_and_plain() -> None:
    """Also lone surrogates, which UTF-8 does not have."""
    line = line_of("%s", "a\nb\udcff" + "x" * 100_000, exc_info=None)
    assert line["event"].startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}x")
    assert len(line["event"]) == MAX_EVENT_CHARS
    deep = ValueError("y" * 200_000)
    line = line_of("deep", exc_info=(ValueError, deep, None))
    assert len(line["trace"]) < MAX_TRACE_CHARS + 100
    assert line["trace"].endswith("yyy")


async def test_the_subject_of_a_task_is_that_of_its_lines() -> None:
    """Its tasks and threads have it too, and other tasks do not."""
    known = ["a name"]

    async def work() -> list[Any]:
        with log_subject(lambda: known[0], "kraft"):
            first = line_of("x", exc_info=None)
            known[0] = "an id"
            return [first, await asyncio.to_thread(line_of, "x", exc_info=None)]

    lines, other = await asyncio.gather(work(), asyncio.to_thread(line_of, "x", exc_info=None))
    assert [(line["cluster"], line["source"]) for line in lines] == [
        ("a name", "kraft"),
        ("an id", "kraft"),
    ]
    assert (other["cluster"], other["source"]) == (None, None)
    named = line_of("x", extra={"cluster": "c", "source": "zookeeper"}, exc_info=None)
    assert (named["cluster"], named["source"]) == ("c", "zookeeper")


def test_the_fields_are_documented() -> None:
    """Each with the text of the code."""
    text = " ".join((ROOT / "docs/reference/logs.md").read_text().split())
    for name, about in FIELDS.items():
        assert f"| `{name}` | {about} |" in text
