"""The work of ``execute``: checks, plan, throttles, request, and with --wait the rest."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from featurewatch.admin.cluster.values import BrokerReplica, ClusterTopics
from featurewatch.admin.errors import AdminError, UnreachableError
from featurewatch.admin.reassignments import throttles
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.admin.reassignments.types import ReassignmentProgress
from featurewatch.cli.commands.reassign.common import lookups
from featurewatch.cli.commands.reassign.common.assignment_file import (
    RequestedAssignment,
    assignment_json,
)
from featurewatch.cli.commands.reassign.common.directory_moves import move_replicas
from featurewatch.cli.commands.reassign.common.plan import (
    endless,
    plan_document,
    plan_lines,
    plan_reassignment,
)
from featurewatch.cli.commands.reassign.common.throttling import (
    change_configs,
    clear_leftovers,
    remove_throttles,
)
from featurewatch.cli.commands.reassign.common.verification import verify_assignment
from featurewatch.cli.kafka_tools import reassign as texts
from featurewatch.cli.kafka_tools.errors import KafkaToolError, refusals
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.progress import shown_progress
from featurewatch.cli.output.terminal import print_error
from featurewatch.common.progress import Progress
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.release_rules import NEWEST
from featurewatch.controller.software import release_name_of_ranges

_FOR_EVER_S: Final = 10 * 365 * 86_400.0

Running = dict[TopicPartition, ReplicaAssignment]


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The options of ``execute``: throttles in bytes each second, -1 for none."""

    additional: bool
    throttle: int
    directory_throttle: int
    timeout_s: float
    keeps_factor: bool
    waits: bool
    max_wait_s: float | None
    preserve_throttles: bool
    dry_run: bool
    force: bool
    yes: bool


class Execution:
    """One reassignment, from its file to its end."""

    def __init__(
        self,
        admin: ReassignmentAdmin,
        requested: RequestedAssignment,
        options: ExecutionOptions,
        target: AdminTarget,
    ) -> None:
        self._admin = admin
        self._requested = requested
        self._targets = requested.targets
        self._options = options
        self._cluster = target

    async def run(self) -> None:
        """Starts it, and with ``waits`` returns at its end; raises `KafkaToolError`."""
        running = await self._admin.reassignments()
        if running and not self._options.additional:
            named = ", ".join(map(str, sorted(running)[:5]))
            raise KafkaToolError(texts.ANOTHER_RUNS, advice=f"being reassigned: {named}")
        present = await self._look_up()
        await self._refuse_endless(running)
        if self._options.dry_run or must_confirm(self._options.yes):
            await self._show_plan(running, present)
        if self._options.dry_run:
            return
        if not running:
            await clear_leftovers(self._admin)
        await self._print_rollback(present)
        if not self._options.waits:
            try:
                await self._start(running, present)
            except (AdminError, KafkaToolError):
                if self._has_throttles:
                    print_error("the throttles stay: run featurewatch reassign verify")
                raise
            return
        try:
            await self._start(running, present)
            await self._follow()
        finally:
            if not self._options.preserve_throttles:
                await self._end_throttles(running)
        await verify_assignment(
            self._admin,
            self._requested,
            self._cluster,
            preserve_throttles=self._options.preserve_throttles,
        )

    async def _look_up(self) -> ClusterTopics:
        topics = self._requested.topics
        present = await self._admin.topics(topics)
        lookups.check_brokers((one for ids in self._targets.values() for one in ids), present)
        lookups.check_topics(topics, present)
        lookups.check_partitions(self._targets, present)
        return present

    async def _refuse_endless(self, running: Running) -> None:
        """Raises `KafkaToolError` for a replacement that the cluster's release may not complete."""
        if self._options.force or not running:
            return
        ranges = await self._admin.supported_features()
        if "metadata.version" not in ranges:
            return  # a cluster in ZooKeeper mode completes them all
        name = release_name_of_ranges(ranges)
        release = _release(name) if name else NEWEST
        stuck = list(endless(self._targets, running, release))
        if stuck:
            partition, why = stuck[0]
            more = f" (and {len(stuck) - 1} more partitions)" if len(stuck) > 1 else ""
            raise KafkaToolError(
                "",
                advice=f"{partition}: {why}{more}: Kafka {name or 'of this release'} does not "
                "complete that as asked. Cancel what runs first (featurewatch reassign cancel), or "
                "pass --force",
            )

    async def _show_plan(self, running: Running, present: ClusterTopics) -> None:
        replicas = [
            BrokerReplica(partition, broker_id)
            for partition, replicas in self._targets.items()
            for broker_id in {present.partitions[partition].leader, *replicas}
            if broker_id is not None and broker_id in present.brokers
        ]
        try:
            sizes = await self._admin.directories(replicas, present.brokers)
        except UnreachableError as error:
            print_error(f"sizes are not known: {error}")
            sizes = {}
        plan = plan_reassignment(self._targets, running, present, sizes)
        if self._options.dry_run:
            self._cluster.lines(plan_lines(plan))
            self._cluster.document(lambda: plan_document(plan))
        else:
            confirm(plan_lines(plan))

    async def _print_rollback(self, present: ClusterTopics) -> None:
        current = {one: present.partitions[one].replicas for one in self._targets}
        directories = await lookups.current_directories(
            self._admin, current, present, self._cluster.compat
        )
        self._cluster.lines(texts.rollback_lines(assignment_json(current, directories)))

    async def _start(self, running: Running, present: ClusterTopics) -> None:
        await self._set_throttles(running, present)
        results = await self._admin.start(
            self._targets, allow_factor_change=not self._options.keeps_factor
        )
        if (failure := refusals("Error reassigning partition(s):", results)) is not None:
            raise failure
        self._cluster.line(texts.started_line(self._targets))
        if not self._options.waits:
            self._cluster.document(self._started_document)
        if self._requested.directories:
            await move_replicas(
                self._admin,
                self._requested.directories,
                present.brokers,
                self._cluster,
                timeout_s=self._options.timeout_s,
            )

    def _started_document(self) -> dict[str, object]:
        return {"started": [str(partition) for partition in sorted(self._targets)]}

    async def _set_throttles(self, running: Running, present: ClusterTopics) -> None:
        rate, directory_rate = self._options.throttle, self._options.directory_throttle
        if rate < 0 and directory_rate < 0:
            return
        self._cluster.line(texts.MUST_VERIFY)
        if rate >= 0:
            moves = throttles.moves_of(running, self._targets, present.partitions)
            await change_configs(self._admin, throttles.topic_throttles(moves), present.brokers)
            rates = throttles.broker_throttles(moves, rate)
            await change_configs(self._admin, rates, present.brokers)
            self._cluster.line(f"The inter-broker throttle limit was set to {rate} B/s")
        if directory_rate >= 0:
            moving = {replica.broker_id for replica in self._requested.directories}
            rates = throttles.move_throttles(moving, directory_rate)
            await change_configs(self._admin, rates, present.brokers)
            self._cluster.line(
                f"The replica-alter-dir throttle limit was set to {directory_rate} B/s"
            )

    async def _follow(self) -> None:
        """Waits for the end, and prints the progress."""
        limit = self._options.max_wait_s
        with shown_progress() as bar:
            await self._admin.wait(
                self._targets,
                max_wait_s=_FOR_EVER_S if limit is None else limit,
                report=_reported_to(bar),
            )
            bar.end()

    async def _end_throttles(self, running: Running) -> None:
        """Removes the throttles, whatever ended the wait; they would slow replication permanently.

        While other reassignments run, theirs stay until the next ``verify``, which removes them.
        """
        if not self._has_throttles:
            return
        if {*running} - {*self._targets}:
            print_error("other reassignments ran before: verify removes the throttles")
            return
        try:
            others = await remove_throttles(self._admin, self._targets, time.monotonic)
        except (AdminError, KafkaToolError) as error:
            print_error(
                f"the throttles could not be removed: {error}: run featurewatch reassign verify"
            )
            return
        if others:
            named = ", ".join(map(str, sorted(others)[:5]))
            print_error(
                f"other reassignments run, and the throttles of brokers are theirs too ({named}): "
                "run featurewatch reassign verify once they have ended"
            )
        elif await self._still_moves():
            print_error("the throttles were removed; the reassignment continues without them")

    @property
    def _has_throttles(self) -> bool:
        return self._options.throttle >= 0 or self._options.directory_throttle >= 0

    async def _still_moves(self) -> bool:
        try:
            return bool(await self._admin.reassignments(self._targets))
        except AdminError:
            return False


def _reported_to(bar: Progress) -> Callable[[ReassignmentProgress], None]:
    """Reports bytes of those that were left at first; what brokers do not report is left out."""
    total: int | None = None

    def report(progress: ReassignmentProgress) -> None:
        nonlocal total
        if progress.bytes_left is None:
            return
        if total is None:
            total = progress.bytes_left
            bar.begin("reassignment", total, "bytes")
        bar.advance(total - min(progress.bytes_left, total))

    return report


def _release(name: str) -> tuple[int, int]:
    major, minor = name.split(".")[:2]
    return int(major), int(minor)
