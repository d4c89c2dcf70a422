"""The checkpoint of a lake that is somewhere else than where its query began."""

from featurewatch.pipeline.lake.hadoop_files import HadoopFiles
from featurewatch.pipeline.spark.checkpoints import with_place


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
