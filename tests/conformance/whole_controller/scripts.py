"""The scripts of operations that both controllers perform.

Each uses its own topics, and leaves all brokers alive. The requests that Kafka's clients and
tools send are sent here as well; the znodes are those that Kafka's older tools write, or that a
controller leaves behind when it dies.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tests.conformance.whole_controller.actions import (
    UNCLEAN,
    Step,
    add_partitions,
    bounce_brokers,
    change_isr,
    create_topic,
    create_znode,
    delete_topic,
    elect,
    end_brokers,
    fail_over,
    fail_responses,
    list_reassignments,
    reassign,
    shut_down,
    start_brokers,
)
from tests.conformance.whole_controller.cluster import DrivenCluster

STORAGE_ERROR: Final = 56
Content = Callable[[DrivenCluster], Mapping[str, Any]]


def moving(topic: str, replicas: list[int], adding: list[int], removing: list[int]) -> Content:
    """The assignment of partition 0 in the middle of a reassignment, or at its end."""

    def content(cluster: DrivenCluster) -> Mapping[str, Any]:
        path = f"/brokers/topics/{topic}"
        znode = json.loads(cluster.zookeeper.get(path)[0])
        changed = {
            "partitions": {"0": replicas},
            "adding_replicas": {"0": adding} if adding else {},
            "removing_replicas": {"0": removing} if removing else {},
        }
        return {path: znode | changed}

    return content


def led(topic: str, leader: int, epoch: int, isr: list[int], controller_epoch: int = 1) -> Content:
    """The state of partition 0."""
    state = {
        "version": 1,
        "controller_epoch": controller_epoch,
        "leader": leader,
        "leader_epoch": epoch,
        "isr": isr,
    }
    return lambda _: {f"/brokers/topics/{topic}/partitions/0/state": state}


def znode(path: str, content: Any) -> Content:
    """Any znode."""
    return lambda _: {path: content}


def moves(topic: str, replicas: list[int]) -> Any:
    """The content of ``/admin/reassign_partitions`` for partition 0."""
    return {
        "version": 1,
        "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}],
    }


def preferred(topic: str, *numbers: int) -> Any:
    """The content of ``/admin/preferred_replica_election``."""
    return {
        "version": 1,
        "partitions": [{"topic": topic, "partition": number} for number in numbers],
    }


MOVED = [104, 102, 103]
FULL = [104, 102, 103, 101]

SCRIPTS: Final[Mapping[str, Sequence[Step]]] = {
    "a broker dies and starts": (
        Step("create", create_topic("dies", [101, 102, 103], [102, 103, 101], [103, 101, 102])),
        Step("create with one replica", create_topic("alone", [101], [102])),
        Step("a leader dies", end_brokers(101)),
        Step("the preferred leader is dead", elect("dies", 0), is_idle=True),
        Step("it starts", start_brokers(101)),
        Step("it is in sync", change_isr("dies", 0, 102, 103, 101)),
        Step("elect the preferred leader", elect("dies", 0, 1)),
        Step("the preferred leader leads", elect("dies", 0), is_idle=True),
    ),
    "partitions are added": (
        Step("create", create_topic("grows", [101, 102])),
        Step("add two", add_partitions("grows", 3, [102, 103], [103, 101])),
        Step("fewer", add_partitions("grows", 2, [102, 103]), is_idle=True),
    ),
    "a broker bounces": (
        Step("create", create_topic("bounces", [101, 102, 103], [102, 103, 101])),
        Step("a leader bounces", bounce_brokers(101)),
        Step("two bounce", bounce_brokers(102, 103)),
    ),
    "a partition is reassigned": (
        Step("create", create_topic("moves", [101, 102, 103])),
        Step("start", reassign("moves", {0: MOVED})),
        Step("list", list_reassignments(), is_idle=True),
        Step("the target is in sync", change_isr("moves", 0, 101, 102, 103, 104)),
        Step("to the same list", reassign("moves", {0: MOVED})),
        Step("to another order", reassign("moves", {0: [102, 103, 104]})),
        Step("to fewer", reassign("moves", {0: [102]})),
    ),
    "a reassignment is canceled and replaced": (
        Step("create", create_topic("replaces", [101, 102, 103])),
        Step("start", reassign("replaces", {0: MOVED})),
        Step("cancel", reassign("replaces", {0: None})),
        Step("nothing to cancel", reassign("replaces", {0: None}), is_idle=True),
        Step("start again", reassign("replaces", {0: [104, 101]})),
        Step("replace", reassign("replaces", {0: [101, 102]})),
    ),
    "a reassignment waits for a broker": (
        Step("create", create_topic("waits", [101, 102])),
        Step("start", reassign("waits", {0: [103, 104]})),
        Step("a target dies", end_brokers(104)),
        Step("the leader dies", end_brokers(101)),
        Step("the target starts", start_brokers(104)),
        Step("the target is in sync", change_isr("waits", 0, 102, 103, 104)),
        Step("the old leader starts", start_brokers(101)),
    ),
    "tasks are written as znodes": (
        Step("create", create_topic("tasks", [101, 102], [102, 101])),
        Step("reassign", create_znode("/admin/reassign_partitions", moves("tasks", [102, 103]))),
        Step("the target is in sync", change_isr("tasks", 0, 101, 102, 103)),
        Step("another leads", end_brokers(102)),
        Step("it starts", start_brokers(102)),
        Step("it is in sync", change_isr("tasks", 0, 103, 102)),
        Step(
            "elect",
            create_znode("/admin/preferred_replica_election", preferred("tasks", 0, 1)),
        ),
        Step(
            "an unknown partition",
            create_znode("/admin/reassign_partitions", moves("nothing", [101])),
        ),
    ),
    "a broker shuts down": (
        Step("create", create_topic("stops", [101, 102, 103], [102, 101, 103])),
        Step("create with one replica", create_topic("single", [101])),
        Step("shut down", shut_down(101)),
        Step("once more", shut_down(101)),
        Step("it ends", end_brokers(101)),
        Step("it starts", start_brokers(101)),
    ),
    "no replica is alive": (
        Step("create", create_topic("dark", [101, 102])),
        Step("one dies", end_brokers(102)),
        Step("all are dead", end_brokers(101)),
        Step("one that was not in sync starts", start_brokers(102)),
        Step("elect the preferred leader", elect("dark", 0), is_idle=True),
        Step("elect unclean", elect("dark", 0, kind=UNCLEAN)),
        Step("the other one starts", start_brokers(101)),
        Step("another dies", end_brokers(103)),
        Step(
            "create where nobody lives",
            create_znode("/brokers/topics/nobody", {"version": 1, "partitions": {"0": [103]}}),
        ),
        Step("it starts", start_brokers(103)),
    ),
    "a topic is deleted": (
        Step("create", create_topic("goes", [101, 102], [102, 103])),
        Step("delete", delete_topic("goes")),
        Step("create again", create_topic("goes", [103, 101])),
        Step("delete again", delete_topic("goes")),
    ),
    "a topic is deleted while a broker is dead": (
        Step("create", create_topic("stays", [101, 102], [102, 103])),
        Step("a broker dies", end_brokers(102)),
        Step("delete", delete_topic("stays")),
        Step("create again", create_topic("stays", [101]), is_idle=True),
        Step("it starts", start_brokers(102)),
    ),
    "a broker refuses to delete a topic": (
        Step("create", create_topic("fails", [101, 102])),
        Step("the directory fails", fail_responses(102, STORAGE_ERROR), is_idle=True),
        Step("delete", delete_topic("fails")),
        Step("the directory works", fail_responses(102, 0), is_idle=True),
        Step("it bounces", bounce_brokers(102)),
    ),
    "a topic is deleted while it is reassigned": (
        Step("create", create_topic("both", [101, 102])),
        Step("reassign", reassign("both", {0: [102, 103]})),
        *fail_over("delete, with a new controller", znode("/admin/delete_topics/both", None)),
        Step("the target is in sync", change_isr("both", 0, 101, 102, 103)),
    ),
    "a log directory fails": (
        Step("create", create_topic("disk", [101, 102, 103])),
        Step("the directory fails", fail_responses(101, STORAGE_ERROR), is_idle=True),
        Step(
            "it is announced",
            create_znode(
                "/log_dir_event_notification/log_dir_event_0000000007",
                {"version": 1, "broker": 101, "event": 1},
            ),
        ),
        Step("it works again", fail_responses(101, 0), is_idle=True),
        Step("the broker bounces", bounce_brokers(101)),
    ),
    "a controller dies": (
        Step("create", create_topic("over", [101, 102, 103], [102, 103, 101])),
        *fail_over("with nothing to do"),
        Step("a broker dies", end_brokers(103)),
        *fail_over("with a dead broker"),
        Step("it starts", start_brokers(103)),
    ),
    "a controller dies in a reassignment": (
        Step("create a", create_topic("a", [101, 102, 103])),
        Step("create b", create_topic("b", [101, 102, 103])),
        Step("create c", create_topic("c", [101, 102, 103])),
        Step("create d", create_topic("d", [101, 102, 103])),
        Step("create e", create_topic("e", [101, 102, 103])),
        Step("it is running", reassign("a", {0: MOVED})),
        *fail_over("while it waits"),
        Step("the target is in sync", change_isr("a", 0, 101, 102, 103, 104)),
        *fail_over("after the assignment (1)", moving("b", FULL, [104], [101])),
        *fail_over(
            "with the target in sync (5, 6)",
            moving("e", FULL, [104], [101]),
            led("e", 101, 8, [101, 102, 103, 104]),
        ),
        *fail_over(
            "after the leader (7)",
            moving("b", FULL, [104], [101]),
            led("b", 104, 8, [101, 102, 103, 104]),
        ),
        *fail_over(
            "after the ISR (8)", moving("c", FULL, [104], [101]), led("c", 104, 8, [102, 103, 104])
        ),
        *fail_over(
            "after the end (10)",
            moving("d", MOVED, [], []),
            led("d", 104, 8, [102, 103, 104]),
            znode("/admin/reassign_partitions", moves("d", MOVED)),
        ),
    ),
    "a controller dies in other operations": (
        Step("create", create_topic("rest", [101, 102])),
        Step("create what is deleted", create_topic("marked", [101, 102])),
        *fail_over(
            "after the topic",
            znode("/brokers/topics/born", {"version": 1, "partitions": {"0": [102, 101]}}),
        ),
        *fail_over(
            "after the configuration", znode("/config/topics/unborn", {"version": 1, "config": {}})
        ),
        *fail_over(
            "before an election",
            led("rest", 102, 3, [102, 101]),
            znode("/admin/preferred_replica_election", preferred("rest", 0)),
        ),
        *fail_over("before a deletion", znode("/admin/delete_topics/marked", None)),
        *fail_over(
            "before a reassignment", znode("/admin/reassign_partitions", moves("rest", [103, 102]))
        ),
    ),
    "a later controller has written": (
        Step("create", create_topic("foreign", [101, 102])),
        *fail_over("it wrote", led("foreign", 102, 9, [102, 101], controller_epoch=99)),
        Step("the leader dies", end_brokers(102)),
        Step("it starts", start_brokers(102)),
    ),
}
