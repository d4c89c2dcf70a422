"""The stack file that the options of ``stack up`` describe."""

import re
from dataclasses import dataclass, replace
from typing import Final

from featurewatch.cli.errors import UsageError
from featurewatch.kafka.operations_form import OperationsForm
from featurewatch.stack.controllers import CONTROLLED_PROPERTIES
from featurewatch.stack.errors import StackError
from featurewatch.stack.kafka.specs import (
    KAFKA_WITH_ZOOKEEPER,
    NEWEST_TESTED,
    combined,
    under_reference,
    zookeeper_mode,
)
from featurewatch.stack.reference_nodes import MAX_PROCESSES
from featurewatch.stack.stack_file import ReferenceFile, StackFile, ZookeeperFile
from featurewatch.stack.zookeeper.specs import EnsembleSpec

CHROOT: Final = "/kafka"
"""The znode below which the cluster of a stack with ZooKeeper is."""

EXAMPLE_FEATURES: Final = (
    "group_coordinator=1-2,transaction_coordinator=1-5,consumer_offsets_topic_schema=1-1"
)
"""The features that brokers support in the examples of KIP-584."""


@dataclass(frozen=True)
class StackOptions:
    """The options of ``stack up`` that describe a new stack; none of them resumes an old one."""

    nodes: int | None = None
    release: str | None = None
    releases: str | None = None
    metadata_version: str | None = None
    light_brokers: int | None = None
    zookeeper: int | None = None
    zookeeper_kafka: int | None = None
    reference_brokers: int | None = None
    reference_features: str | None = None
    reference_topics: bool = False
    controlled_brokers: int | None = None
    operations_dialect: OperationsForm | None = None
    reference_controllers: int | None = None
    mixed_controllers: str | None = None
    dynamic_voters: bool = False

    def described(self) -> StackFile:
        """The stack.

        Raises:
            UsageError: if the options contradict each other.
        """
        if self.operations_dialect and not (self.controlled_brokers or self.reference_topics):
            raise UsageError(
                "--operations-dialect is of --controlled-brokers or --reference-topics: give one"
            )
        try:
            brokers = (self.zookeeper_kafka, self.controlled_brokers)
            if (self.zookeeper, *brokers, self._reference()) != (None, None, None, None):
                return self._zookeeper_mode()
            return self._kraft()
        except StackError as error:
            raise UsageError(str(error)) from error

    def _zookeeper_mode(self) -> StackFile:
        kraft = (
            *(self.nodes, self.releases, self.metadata_version, self.light_brokers),
            *(self.reference_controllers, self.mixed_controllers),
        )
        if any(value is not None for value in kraft) or self.dynamic_voters:
            raise UsageError(
                "a stack with ZooKeeper takes --zookeeper-kafka or --controlled-brokers with "
                "--release, and --reference-brokers; "
                "for KRaft nodes start another one in its own --directory"
            )
        if self.zookeeper_kafka is not None and self.controlled_brokers is not None:
            raise UsageError(
                "--zookeeper-kafka brokers have their own controller, --controlled-brokers have "
                "ours: give only one of them"
            )
        brokers = self.zookeeper_kafka or self.controlled_brokers
        if self.release is not None and brokers is None:
            raise UsageError("--release needs Kafka brokers: add them with --zookeeper-kafka 3")
        is_controlled = self.controlled_brokers is not None
        servers = EnsembleSpec(self.zookeeper or 1).servers
        spec = brokers and zookeeper_mode(
            brokers,
            CHROOT,
            self.release or KAFKA_WITH_ZOOKEEPER,
            CONTROLLED_PROPERTIES if is_controlled else None,
        )
        return StackFile(
            spec or None,
            ZookeeperFile(servers),
            self._reference(),
            controlled=is_controlled,
            operations_dialect=self.operations_dialect if is_controlled else None,
        )

    def _reference(self) -> ReferenceFile | None:
        if self.reference_brokers is None:
            if self.reference_features is not None:
                raise UsageError("--reference-features are of --reference-brokers: give both")
            if self.reference_topics:
                raise UsageError("--reference-topics are on --reference-brokers: give both")
            return None
        features = (self.reference_features or EXAMPLE_FEATURES).split(",")
        options = ("--features", *map(str.strip, features))
        if self.reference_topics:
            options = (*options, *self._control())
        return ReferenceFile(self.reference_brokers, options)

    def _control(self) -> tuple[str, ...]:
        """The first brokers are controllers; those that are left host the topics."""
        if (self.reference_brokers or 0) <= MAX_PROCESSES:
            raise UsageError(
                f"--reference-topics needs more than {MAX_PROCESSES} --reference-brokers: the first"
                f" {MAX_PROCESSES} control the topics, and the others host them"
            )
        controllers = range(1, MAX_PROCESSES + 1)
        options = ("--control-topics", "--controller-ids", *map(str, controllers))
        form = self.operations_dialect
        return options if form is None else (*options, "--operations-dialect", form)

    def _kraft(self) -> StackFile:
        if self.releases is not None and (self.nodes is not None or self.release is not None):
            raise UsageError("--releases names every node; leave out --nodes and --release")
        if self.releases is not None:
            releases = [release.strip() for release in self.releases.split(",")]
        else:
            count = 3 if self.nodes is None else self.nodes
            releases = [self.release or NEWEST_TESTED] * count
        light = self.light_brokers or 0
        # Heartbeats of light brokers go out at about 2,000 a second: more need longer sessions.
        session_ms = max(6_000, 10 * light)
        properties = {"broker.session.timeout.ms": str(session_ms)} if light else {}
        ours, kafkas = self._controllers()
        if ours:
            version = self.metadata_version
            newest = self.release or NEWEST_TESTED
            spec = under_reference(
                releases, ours, kafkas, version, properties, without_brokers=newest
            )
        elif not releases:
            raise UsageError("--nodes 0 leaves out brokers: add --reference-controllers 3")
        else:
            spec = combined(releases, self.metadata_version, properties)
        spec = replace(spec, dynamic_voters=self.dynamic_voters)
        return StackFile(spec, light_brokers=light)

    def _controllers(self) -> tuple[int, int]:
        """How many controllers of the reference and of Kafka there are; none: nodes have both."""
        if self.mixed_controllers is None:
            return self.reference_controllers or 0, 0
        if self.reference_controllers is not None:
            raise UsageError("give --reference-controllers or --mixed-controllers, not both")
        match = re.fullmatch(r"([1-9]):([1-9])", self.mixed_controllers)
        if match is None:
            raise UsageError(
                "--mixed-controllers is the number of ours and of Kafka's, from 1 to 9 each, as in "
                f"1:2, not {self.mixed_controllers!r}"
            )
        return int(match[1]), int(match[2])
