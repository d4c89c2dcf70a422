"""Voters of the reference as processes: one, or a quorum of three."""

import asyncio
import subprocess
import threading
from pathlib import Path
from queue import Empty, Queue

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import DescribeQuorumRequestV2, DescribeQuorumResponseV2
from featurewatch.kafka.node_errors import NodeError
from featurewatch.reference.kraft.machines.requests import METADATA_TOPIC
from featurewatch.stack.process.ports import Ports
from tests.owned import owned

CLUSTER = "k3nkSGPhQsiT8EDDBw8qVg"
DEADLINE_S = 60.0


class VoterProcess:
    """One voter's process, whose lines are read as they come; it ends when this process does."""

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
                *owned("featurewatch.reference.kraft"),
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

    def wait(self) -> int:
        """Waits until it has ended, and all its lines are read; its exit code."""
        code = self._process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        return code

    def stop(self) -> int:
        """Ends it by SIGTERM; its exit code."""
        self._process.terminate()
        return self._process.wait(DEADLINE_S)


Described = DescribeQuorumResponseV2.PartitionData


async def described(port: int) -> Described | None:
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


SHORT = ("--election-timeout", "500", "--fetch-timeout", "1000")


class Quorum:
    """Three voters, each in its own directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reserved = Ports()
        self.ports = {one: self.reserved.reserve() for one in (1, 2, 3)}
        self.voters = [f"{one}@127.0.0.1:{port}" for one, port in self.ports.items()]
        self.running: dict[int, VoterProcess] = {}
        for node_id in self.ports:
            self.start(node_id)

    def start(self, node_id: int) -> None:
        """Starts a voter from its directory."""
        process = VoterProcess(node_id, self.voters, self.root / str(node_id), *SHORT)
        self.running[node_id] = process
        process.expect("listening")

    def leader(self) -> VoterProcess:
        """The voter that says that it leads, as the quorum describes itself."""
        node_id = asyncio.run(asyncio.wait_for(self._leader_id(), DEADLINE_S))
        return self.running[node_id]

    async def _leader_id(self) -> int:
        while True:
            for node_id in self.running:
                if (quorum := await described(self.ports[node_id])) is not None:
                    assert len(quorum.current_voters) == 3
                    return quorum.leader_id
            await asyncio.sleep(0.05)

    def kill(self, node_id: int) -> None:
        """Kills a voter."""
        self.running.pop(node_id).kill()

    def stop(self) -> None:
        """Ends all voters."""
        for process in self.running.values():
            process.kill()
        self.reserved.release()
