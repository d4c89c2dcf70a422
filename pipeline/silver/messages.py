"""The messages of bronze that silver and gold are made from."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.controller.input_messages import INPUT_TOPICS


def short_topic() -> Column:
    """Returns a column with a topic's short name: the part after the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def input_messages(messages: DataFrame) -> DataFrame:
    """Returns the messages of the input topics."""
    return messages.where(short_topic().isin([*INPUT_TOPICS]))
