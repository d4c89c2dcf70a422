"""Logging of the commands to stderr, as text or as JSON."""

import logging
import sys
from enum import StrEnum
from typing import Any, Final

from featurewatch.cli.output import terminal
from featurewatch.common.text import plain

LIBRDKAFKA_FORMAT: Final = "%s [%s] %s"
"""How confluent-kafka hands librdkafka's own lines to a logger of ours."""

# These log each shutdown, each rebalance and each retry of a bus at high levels; our own loggers
# report what matters.
_INNER: Final = (
    "faust",
    "aiokafka",
    "mode",
    "featurewatch.tables",
    "featurewatch.agents",
    "asyncio",
)

FORMAT_VARIABLE: Final = "FEATUREWATCH_LOG_FORMAT"
"""The variable with the form of lines, for processes that take no options too."""


class LogFormat(StrEnum):
    """The form of lines on stderr."""

    TEXT = "text"
    JSON = "json"


class PlainFormatter(logging.Formatter):
    """Writes what peers sent as it can be printed; line breaks only in tracebacks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line of a record."""
        record.message = plain(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """The lines of a traceback."""
        return "\n".join(map(plain, super().formatException(ei).split("\n")))


def set_up(*, verbose: bool, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Logs to stderr; ``verbose``: the libraries' own lines too.

    As JSON, whatever else a command writes to stderr becomes a line of the log too.
    """
    handler = logging.StreamHandler(sys.stderr)
    if log_format is LogFormat.JSON:
        handler.setFormatter(_json_formatter())
        _log_everything()
    else:
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    if not verbose:
        handler.addFilter(is_ours)
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING)
    logging.getLogger("featurewatch").setLevel(logging.INFO)
    for name in _INNER:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL)


def is_ours(record: logging.LogRecord) -> bool:
    """Whether a line is featurewatch's own; librdkafka logs to our loggers too."""
    return record.msg != LIBRDKAFKA_FORMAT


def _json_formatter() -> logging.Formatter:
    from featurewatch.common.json_log import JsonFormatter  # here: text needs no orjson

    return JsonFormatter()


def _log_everything() -> None:
    """Sends to the log what else comes to stderr: notes, uncaught errors, warnings of Python."""
    import threading

    log = logging.getLogger("featurewatch.cli")

    def note(text: str, *, is_error: bool) -> None:
        log.log(logging.ERROR if is_error else logging.INFO, "%s", text)

    def uncaught(kind: Any, error: Any, trace: Any) -> None:
        log.critical("the process ended by an error", exc_info=(kind, error, trace))

    def uncaught_in_thread(failed: threading.ExceptHookArgs) -> None:
        name = failed.thread.name if failed.thread else "a thread"
        error = failed.exc_value
        log.error("%s ended by an error", name, exc_info=error)

    def ignored(failed: Any) -> None:
        text = failed.err_msg or "an exception was ignored"
        log.error("%s: %r", text, failed.object, exc_info=failed.exc_value)

    terminal.notes.redirect(note)
    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    sys.unraisablehook = ignored
    logging.captureWarnings(True)
