"""Outputs of the history fold, written by hand."""

from typing import Any

import orjson

from featurewatch.pipeline.fold.messages import FoldOutput


def history_row(kind: str, id_: str, **fields: Any) -> FoldOutput:
    """A history row as the fold emits it."""
    content = {"role": "broker", "node_id": 1, "since_ms": 1, "until_ms": None, **fields}
    return FoldOutput("c", kind, id_, orjson.dumps(content))
