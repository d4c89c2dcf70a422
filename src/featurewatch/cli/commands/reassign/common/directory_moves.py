"""Moves replicas between the directories of their brokers, as ``execute`` and ``cancel`` do."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.cli.kafka_tools.errors import KafkaToolError, failure
from featurewatch.cli.kafka_tools.reassign import joined, plural
from featurewatch.cli.kafka_tools.target import AdminTarget

_PAUSE_S: Final = 0.1
_NOT_THERE_YET: Final = 9
"""The replica has not arrived on its broker."""


async def move_replicas(
    admin: ReassignmentAdmin,
    directories: Mapping[BrokerReplica, str],
    brokers: Mapping[int, BrokerNode],
    target: AdminTarget,
    *,
    timeout_s: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Requests the moves until all have begun; raises `KafkaToolError` when the time is up.

    A replica that is still copied to its broker can move only when it is there.
    """
    pending = dict(directories)
    deadline = monotonic() + timeout_s
    while True:
        results = await admin.move_directories(pending, brokers)
        for replica in sorted(results, key=lambda one: (one.broker_id, one.partition)):
            error = results[replica]
            if error is None:
                target.line(
                    f"Successfully started moving log directory to {pending.pop(replica)} for "
                    f"replica {replica.partition} with broker {replica.broker_id} "
                )
            elif error.code != _NOT_THERE_YET:
                advice = "" if error.right else error.text
                raise failure(f"Failed to alter dir for {replica}", advice, right=error.right)
        if not pending:
            return
        if monotonic() >= deadline:
            waiting = sorted(pending, key=lambda one: (one.broker_id, one.partition))
            raise KafkaToolError(
                f"Timed out before log directory move{plural(len(waiting))} could be started for: "
                f"{joined(waiting)}"
            )
        await asyncio.sleep(_PAUSE_S)
