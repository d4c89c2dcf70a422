"""A replica's disk: the metadata log in Kafka's own format, flushed where Raft needs it.

Segments ``<offset>.log``, snapshots ``<offset>-<epoch>.checkpoint`` (``KafkaMetadataLog``,
``FileRawSnapshotWriter``), and the files of `formats`. A reference, not for production: the log is
read into memory as a whole.
"""

from featurewatch.reference.kraft.storage.disk import Durable, Storage
from featurewatch.reference.kraft.storage.identity import Identity, format_directory
from featurewatch.reference.kraft.storage.opening import open_storage

__all__ = ["Durable", "Identity", "Storage", "format_directory", "open_storage"]
