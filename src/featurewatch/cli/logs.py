"""Logging of the commands to stderr."""

import logging
import sys
from typing import Any, Final

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


class PlainFormatter(logging.Formatter):
    """Writes what peers sent as it can be printed; line breaks only in tracebacks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line of a record."""
        record.message = plain(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """The lines of a traceback."""
        return "\n".join(map(plain, super().formatException(ei).split("\n")))


def set_up(*, verbose: bool) -> None:
    """Logs to stderr; ``verbose``: the libraries' own lines too."""
    handler = logging.StreamHandler(sys.stderr)
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
