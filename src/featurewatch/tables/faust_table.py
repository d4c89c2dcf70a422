"""The Faust table that holds the rows of all images: one table, and so one changelog.

Broker capabilities, finalized features and firing alerts are rows of one table and not tables of
their own, because Kafka preserves the order within one changelog only: a crash then leaves a prefix
of the written rows, and `tables.rows` makes every prefix a valid image.
"""

from typing import Any

import faust

from featurewatch.tables.rows import TABLE


class RowTable(faust.Table):  # type: ignore[misc]  # faust is not typed
    """A table whose rows the agent sends to the changelog itself, in order, by the idempotent
    producer of the outputs.

    Faust's own table sends each row from a background task: a row that the bus refuses is logged
    and lost while the offset of its event is committed.
    """

    def on_key_set(self, key: bytes, value: bytes) -> None:
        """Does nothing: see the class."""

    def on_key_del(self, key: bytes) -> None:
        """Does nothing: see the class."""


def image_table(app: Any, partitions: int) -> Any:
    """Defines the table of an app, with as many partitions as the input topics have.

    Keys and values are bytes, as `tables.rows` gives them.
    """
    return app.Table(
        TABLE,
        partitions=partitions,
        key_type=bytes,
        value_type=bytes,
        help="images of clusters, as rows",
    )
