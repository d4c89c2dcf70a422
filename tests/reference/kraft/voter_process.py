"""One voter of the reference as a process."""

import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, Queue

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import DescribeQuorumRequestV2, DescribeQuorumResponseV2
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.kraft.machines.requests import METADATA_TOPIC

CLUSTER = "k3nkSGPhQsiT8EDDBw8qVg"
DEADLINE_S = 60.0


class VoterProcess:
    """One voter's process, whose lines are read as they come."""

    def __init__(
        self,
        node_id: int,
        voters: list[str],
        directory: Path,
        *options: str,
        cluster_id: str = CLUSTER,
        orders: bool = True,
    ) -> None:
        self.node_id = node_id
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "featurewatch.reference.kraft"),
                *(["--orders"] if orders else []),
                *("--node-id", str(node_id), "--cluster-id", cluster_id),
                *("--directory", str(directory), "--voters", *voters),
                *options,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: Queue[str] = Queue()
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.put(line.strip())

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors.extend(self._process.stderr)

    def expect(self, start: str) -> str:
        """The next line that begins like this; what is before it is dropped."""
        while True:
            try:
                line = self.lines.get(timeout=DEADLINE_S)
            except Empty:
                raise AssertionError(f"no {start!r} of {self.node_id}: {self.errors}") from None
            if line.startswith(start):
                return line

    def order(self, line: str) -> None:
        """Writes a line to its stdin."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def append(self, count: int) -> int:
        """Appends records as the leader, and waits until they are committed; the last offset."""
        self.order(f"append {count}")
        last = int(self.expect("appended").split()[1])
        while int(self.expect("committed").split()[1]) <= last:
            pass
        return last

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def stop(self) -> int:
        """Ends it by SIGTERM; its exit code."""
        self._process.terminate()
        return self._process.wait(DEADLINE_S)


async def described(port: int) -> DescribeQuorumResponseV2.PartitionData | None:
    """The quorum as the controller at a port describes it; None unless that one leads."""
    partitions = (DescribeQuorumRequestV2.PartitionData(partition_index=0),)
    topic = DescribeQuorumRequestV2.TopicData(topic_name=METADATA_TOPIC, partitions=partitions)
    try:
        connection = await open_connection(Address("127.0.0.1", port), timeout_s=1)
        try:
            response = await connection.request(DescribeQuorumRequestV2(topics=(topic,)), 1)
        finally:
            await connection.close()
    except NodeError:
        return None
    partition = response.topics[0].partitions[0]
    return None if partition.error_code or partition.high_watermark < 0 else partition
