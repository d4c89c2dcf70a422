"""A stack with the pipeline beside it, judged by what the lake has."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from deltalake import DeltaTable

from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.spark.session import BRIEF_JVM
from tests.faults.servers import Servers
from tests.faults.stack import Stack
from tests.faults.verdict import Outputs, Value, firing

_POLL_S: Final = 0.5
_ALERT: Final = ("alert_id", "rule", "severity", "state", "summary", "evidence", "cause", "at")


class LakeOutputs:
    """Reads gold as `OutputReader` reads the topics, with Delta's own reader and no JVM."""

    def __init__(self, lake: Path, cluster: str) -> None:
        self._lake = lake
        self._cluster = cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open between two reads."""

    def read_again(self) -> None:
        """Each read is from the beginning."""

    @property
    def outputs(self) -> Outputs:
        """The current content of the tables."""
        changes = self._rows(FEATURE_CHANGES, *("feature", "before", "after", "epoch", "revision"))
        epochs = [
            {**row, "finalized": dict(row["finalized"])}
            for row in self._rows(EPOCHS, "revision", "epoch", "finalized")
        ]
        alerts = sorted(self._rows(ALERTS, *_ALERT), key=lambda row: row["at"])
        state = max(epochs, key=lambda row: row["revision"], default=None)
        named = [
            {**row, "id": row["alert_id"], "at_ms": row["at"].timestamp() * 1000} for row in alerts
        ]
        return Outputs(changes, epochs, named, state)

    @property
    def firing(self) -> list[str]:
        """The rules that fire now."""
        return sorted(firing(self.outputs.alerts))

    def alerts_of(self, cluster: str) -> list[Value]:
        """None: the rows of the lake are about one cluster."""
        return []

    def wait(self, reached: Callable[[Outputs], object], timeout_s: float) -> bool:
        """Whether the outputs come to it in time."""
        deadline = time.monotonic() + timeout_s
        while not reached(self.outputs):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _rows(self, table: Table, *columns: str) -> list[Value]:
        path = self._lake / table.path
        if not any(path.glob("_delta_log/*.json")):
            return []
        rows: list[dict[str, Any]] = (
            DeltaTable(str(path)).to_pyarrow_table(columns=["cluster", *columns]).to_pylist()
        )
        return [row for row in rows if row["cluster"] == self._cluster]


class PipelineStack(Stack):
    """Source, worker and pipeline; the lake is in the directory ``lake``."""

    def __init__(self, servers: Servers, directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(servers, directory, environment)
        self.lake = self.directory / "lake"
        self.lake.mkdir()
        self.environment["JDK_JAVA_OPTIONS"] = BRIEF_JVM
        command = ["pipeline", "run", "--lake", str(self.lake), "--every", "0.5"]
        self.pipeline = self.add("pipeline", "worker", command)
        self.reader = LakeOutputs(self.lake, self.cluster_id)
