"""Reads what featurewatch publishes, for services that depend on the levels of Kafka clusters.

``` python
from featurewatch.client import BusSettings, FeatureGate, changes, wait_until

async for change in changes("kafka-1:9092"):
    print(change.cluster, change.feature, change.before, change.after)

await wait_until("kafka-1:9092", "5L6g3nShT-eMCtK--X86sw", "metadata.version", 25)

gate = FeatureGate(BusSettings("kafka-1:9092", prefix="featurewatch"))
if gate.at_least("5L6g3nShT-eMCtK--X86sw", "transaction.version", 2):
    ...
```

`featurewatch.client.sync` has the readers and ``wait_until`` without asyncio.
"""

from featurewatch.client.asynchronous import (
    alerts,
    changes,
    epochs,
    operations,
    states,
    wait_until,
)
from featurewatch.client.errors import (
    ClientError,
    ClusterRetiredError,
    HoleError,
    LaterVersionError,
    MessagesLostError,
    NotReadyError,
    OnProblem,
    RevisionBackError,
    RevisionsLostError,
    TopicRecreatedError,
    UnknownClusterError,
    UnreadableError,
    WaitTimeoutError,
    WrongPrefixError,
)
from featurewatch.client.gate import FeatureGate
from featurewatch.client.gate_state import ClusterLevels
from featurewatch.client.offsets import FileOffsets, MemoryOffsets, OffsetStore, Positions
from featurewatch.client.since import Since
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import Alert, FeatureChange, Operation, Snapshot

__all__ = [
    "Alert",
    "BusError",
    "BusSettings",
    "BusUnavailableError",
    "ClientError",
    "ClusterLevels",
    "ClusterRetiredError",
    "FeatureChange",
    "FeatureGate",
    "FileOffsets",
    "HoleError",
    "LaterVersionError",
    "MemoryOffsets",
    "MessagesLostError",
    "NotReadyError",
    "OffsetStore",
    "OnProblem",
    "Operation",
    "Positions",
    "RevisionBackError",
    "RevisionsLostError",
    "Since",
    "Snapshot",
    "TopicRecreatedError",
    "UnknownClusterError",
    "UnreadableError",
    "WaitTimeoutError",
    "WrongPrefixError",
    "alerts",
    "changes",
    "epochs",
    "operations",
    "states",
    "wait_until",
]
