"""Lines of a log as JSON objects, one line each, which all have the fields `FIELDS`."""

import logging
import traceback
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import orjson

from featurewatch.common.log_subject import current_subject
from featurewatch.common.text import plain, shortened

FIELDS: Final = MappingProxyType(
    {
        "time": "when it was written: RFC 3339, UTC, with milliseconds",
        "level": "`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`",
        "component": "the part that wrote it, such as `watch`, `worker`, `web` or `notify`; "
        "of a library, its logger",
        "cluster": "the id of the cluster that it is about, or its name while the id is unknown; "
        "else null",
        "source": "the source of that cluster: `kraft`, `api-versions` or `zookeeper`; else null",
        "event": "what happened, as the text form of the line has it",
        "error": "the class and the text of an exception; else null",
        "trace": "the traceback of that exception, as one string with line breaks; else null",
    }
)
"""The fields of a line, in their order, and what each contains. All are strings or null."""

OWN: Final = "featurewatch"
"""The logger above all of featurewatch's own."""

MAX_EVENT_CHARS: Final = 16_000
MAX_TRACE_CHARS: Final = 64_000


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; never raises for what peers sent."""
        return orjson.dumps(fields_of(record)).decode()


def fields_of(record: logging.LogRecord) -> dict[str, str | None]:
    """Returns the values of a line's fields.

    ``cluster`` and ``source`` are attributes of the record (a logger's ``extra``), or those of the
    subject in whose context the line is written.
    """
    subject = current_subject()
    cluster = getattr(record, "cluster", None) or (subject and subject.cluster())
    source = getattr(record, "source", None) or (subject and subject.source)
    kind, error, trace = _exception(record.exc_info)
    return {
        "time": _time(record.created),
        "level": record.levelname,
        "component": record.name.removeprefix(f"{OWN}."),
        "cluster": _text(cluster),
        "source": _text(source),
        "event": shortened(plain(record.getMessage()), MAX_EVENT_CHARS),
        "error": _text(kind and f"{kind.__name__}: {error}".strip(": ")),
        "trace": trace,
    }


def _time(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _text(value: object) -> str | None:
    return shortened(plain(value)) if value else None


def _exception(info: Any) -> tuple[type[BaseException] | None, object, str | None]:
    """The class, the exception and the trace of a record's ``exc_info``."""
    if not info or info[0] is None:
        return None, None, None
    lines = "".join(traceback.format_exception(*info)).rstrip("\n").split("\n")
    return info[0], info[1], _newest("\n".join(map(plain, lines)))


def _newest(trace: str) -> str:
    """The end of a trace that is too long: it names the error and the innermost calls."""
    left_out = len(trace) - MAX_TRACE_CHARS
    return trace if left_out <= 0 else f"({left_out} characters left out)\n{trace[left_out:]}"
