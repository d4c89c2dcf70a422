"""The files of a checkpoint, as Spark writes them."""

import json

import pytest

from featurewatch.pipeline.spark.checkpoints import with_place

SOURCE = '{"path":"%s/checkpoints/fold/start/part-0.parquet","timestamp":1,"batchId":0}'
STATE = '{"stateSchemaFilePaths":["%s/checkpoints/fold/state/0/_stateSchema/default/0_7"]}'


@pytest.mark.parametrize(
    ("content", "before", "after"),
    [
        (SOURCE, "file:///old", "file:///new%20place"),
        (STATE, "file:/old", "file:/new place"),
        (STATE, "file:/a/checkpoints/fold/b", "file:/new place"),
    ],
)
def test_a_lake_that_was_moved_is_read_at_its_place(content: str, before: str, after: str) -> None:
    """URIs stay URIs, and what follows the checkpoint stays; nothing changes at the same place."""
    text, place = content % before, "file:/new place/checkpoints/fold"
    moved = with_place(text, place)
    assert json.loads(moved) == json.loads(content % after)
    assert with_place(moved, place) == moved


def test_a_lake_in_a_bucket() -> None:
    """Its paths have the bucket, in every file."""
    for content in (SOURCE, STATE):
        moved = with_place(content % "s3a://old/lake", "s3a://new/lake/checkpoints/fold")
        assert moved == content % "s3a://new/lake"


def test_other_paths_stay() -> None:
    """Those of another checkpoint, and text without a path."""
    for text in ("v1", '{"a":"file:/old/checkpoints/bronze/x"}'):
        assert with_place(text, "file:/new/checkpoints/fold") == text
