"""The checkpoints of a lake, on any file system."""

from collections.abc import Mapping
from typing import Any

from featurewatch.pipeline.lake.hadoop_files import HadoopFiles
from featurewatch.pipeline.spark.checkpoints import batch_end, with_place


def follow_move(files: HadoopFiles, checkpoint: str) -> None:
    """Corrects the paths in a checkpoint whose lake was moved or copied."""
    place, state = files.place(checkpoint), "state/0/_metadata"
    versions = files.names(f"{checkpoint}/{state}")
    for folder in ("sources/1", *(f"{state}/{version}" for version in versions)):
        for name in files.names(f"{checkpoint}/{folder}"):
            if name.startswith("."):
                continue
            file = f"{checkpoint}/{folder}/{name}"
            content = files.text(file)
            if (moved := with_place(content, place)) != content:
                files.write(file, moved)


def newest_end(files: HadoopFiles, checkpoint: str) -> Mapping[str, Any] | None:
    """Returns where the newest completed batch of a query ended, as `batch_end` (None: there is
    none)."""
    batches = [int(name) for name in files.names(f"{checkpoint}/commits") if name.isdigit()]
    return batch_end(files.text(f"{checkpoint}/offsets/{max(batches)}")) if batches else None
