"""Logging of the commands: what a person has to know, to stderr."""

import logging
import sys
from typing import Final

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


def set_up(*, verbose: bool) -> None:
    """Logs to stderr; ``verbose``: the libraries' own lines too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    if not verbose:
        handler.addFilter(is_ours)
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING)
    logging.getLogger("featurewatch").setLevel(logging.INFO)
    for name in _INNER:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.CRITICAL)


def is_ours(record: logging.LogRecord) -> bool:
    """Whether a line is featurewatch's own; librdkafka logs to our loggers too."""
    return record.msg != LIBRDKAFKA_FORMAT
