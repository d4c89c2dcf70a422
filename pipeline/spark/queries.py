"""Waits for streaming queries and reports their failures."""

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from featurewatch.pipeline.errors import RunError, reason_in


def wait_for_end(query: StreamingQuery) -> None:
    """Waits until a query has ended.

    Raises:
        RunError: The query failed.
    """
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise RunError(f"the query {query.name} failed: {reason_in(str(error))}") from error
