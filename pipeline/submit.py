"""Whether spark-submit runs this process, and so has started the JVM with all that it needs."""

import os
from collections.abc import Mapping


def is_submitted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether there is a JVM to speak with, as spark-submit says it to the Python that it starts.

    Its class path stands then, and what the executors run on has been said.
    """
    env = os.environ if environment is None else environment
    return "PYSPARK_GATEWAY_PORT" in env
