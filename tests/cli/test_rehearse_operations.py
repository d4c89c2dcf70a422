"""Operations in ``featurewatch rehearse``, as they are called and shown, without a cluster."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.commands.rehearse import run as rehearse
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_image import LogReading
from featurewatch.controller.kraft import release_of
from featurewatch.streams.events import Event
from featurewatch.streams.types import NodeId
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.log import Quorum
from tests.controller.rehearsal.partitions.log_records import partition, setting, topic
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all

AT = ("--bootstrap-controller", "kafka:9093")
NEW = release_of("4.3").ranges()
COUNT = 10_000
EVENTS = (
    r.commit(9, r.level(MV, 30), *(r.register(node, NEW, fenced=False) for node in (1, 2, 3))),
    r.commit(19, r.register_controller(1, NEW)),
    r.commit(29, topic(), *(partition(number, (1, 2)) for number in range(COUNT))),
    r.commit(39, topic("lone", "id-lone")),
    r.commit(49, {**(lone := partition(0, (1,))), "data": {**lone["data"], "topicId": "id-lone"}}),
    r.commit(59, setting(2, "t", "min.insync.replicas", "2")),
)


@pytest.fixture
def run_rehearse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command on these events; ``sections`` gets the cluster that would be read."""

    def run(
        *arguments: str,
        events: tuple[Event, ...] = EVENTS,
        authority: Authority = Authority.LOG,
        sections: list[ClusterSection] | None = None,
    ) -> Result:
        def read(section: ClusterSection, *, reading: LogReading | None = None) -> ClusterImage:
            if sections is not None:
                sections.append(section)
            if reading is not None:
                for event in events:
                    reading.observe(event)
            image = fold_all(events)
            log = replace(image.log, quorum=Quorum(NodeId(1), 4, (NodeId(1),)))
            return replace(image, log=log, authority=authority)

        monkeypatch.setattr(rehearse, "read_image", read)
        return CliRunner().invoke(app, ["rehearse", *AT, *arguments])

    return run


def reassignment(path: Path, *partitions: Any) -> str:
    """A step with a file of these partitions: topic, number, replicas."""
    entries = [{"topic": t, "partition": n, "replicas": replicas} for t, n, replicas in partitions]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return f"reassign:{path}"


def test_ten_thousand_partitions_are_a_few_lines(run_rehearse: Callable[..., Result]) -> None:
    """Counts by broker and topic and the first names; each state follows from the one before."""
    result = run_rehearse("-s", "lose:1", "-s", "start:1", "-s", "elect-preferred")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[3:] == [
        " 1 lose:1  accepted",
        "   fences broker 1 when its session ends",
        "   led by another: 10,000 partitions, broker 1 -> 2 (10,000): t-0, t-1, t-2, t-3, t-4 and "
        "9,995 more",
        "   unavailable, no leader: 1 partition: lone-0",
        "   below min ISR, writes with acks=all are refused: 10,000 partitions: "
        "t-0, t-1, t-2, t-3, t-4 and 9,995 more",
        "   ISR shrinks: 10,000 partitions",
        "   until its session ends (broker.session.timeout.ms), clients wait for the 10,001 "
        "partitions that it led",
        " 2 start:1  accepted",
        "   registers broker 1 (RegisterBrokerRecord 4): metadata.version 7-30",
        "   unfences it when it has caught up",
        "   led again: 1 partition: lone-0",
        "   min ISR restored: 10,000 partitions: t-0, t-1, t-2, t-3, t-4 and 9,995 more",
        "   ISR grows: 10,000 partitions",
        " 3 elect-preferred  accepted",
        "   led by another: 10,000 partitions, broker 2 -> 1 (10,000): t-0, t-1, t-2, t-3, t-4 and "
        "9,995 more",
    ]


def test_json_has_every_partition(run_rehearse: Callable[..., Result]) -> None:
    """With its state before and after, and the counts."""
    document = json.loads(run_rehearse("-s", "shutdown:broker-1", "--json").output)
    (step,) = document["steps"]
    partitions = step["partitions"]
    assert (step["step"], step["verdict"]) == ("shutdown:1", "accepted")
    assert len(partitions["changes"]) == COUNT + 1
    assert (partitions["total"], partitions["leaderless"]) == (COUNT + 1, 1)
    assert partitions["counts"]["led-by-another"] == COUNT
    assert partitions["changes"][1] == {
        "topic": "t",
        "partition": 0,
        "effects": ["led-by-another", "isr", "under-min-isr"],
        "before": {
            "leader": 1,
            "replicas": [1, 2],
            "isr": [1, 2],
            "adding": [],
            "removing": [],
            "elr": [],
            "recovering": False,
        },
        "after": {
            "leader": 2,
            "replicas": [1, 2],
            "isr": [2],
            "adding": [],
            "removing": [],
            "elr": [],
            "recovering": False,
        },
        "reason": None,
    }


def test_steps_about_levels_read_no_partitions(run_rehearse: Callable[..., Result]) -> None:
    """Their output is as before."""
    document = json.loads(run_rehearse("-s", "stop:broker-1", "--json").output)
    assert document["steps"][0]["partitions"] is None


def test_levels_and_partitions_are_one_rehearsal(run_rehearse: Callable[..., Result]) -> None:
    """A broker that is stopped for its levels leads nothing afterwards, and a controller's new
    release decides by its own rules."""
    document = json.loads(
        run_rehearse(
            "-s",
            "stop:broker-1",
            "-s",
            "elect-preferred",
            "-s",
            "add-broker:9@4.3",
            "-s",
            "create-topic:new,4,4",
            "--json",
        ).output
    )
    stop, elect, _, create = document["steps"]
    assert stop["partitions"]["counts"]["led-by-another"] == COUNT
    assert elect["verdict"] == "refused"
    assert {refusal["error"] for refusal in elect["partitions"]["refused"]} == {
        "PREFERRED_LEADER_NOT_AVAILABLE"
    }
    assert elect["messages"] == [
        "The preferred leader was not available. (lone-0, t-0, t-1, t-2, t-3 and 9,996 more)"
    ]
    assert create["partitions"]["counts"]["created"] == 4


def test_a_reassignment_of_a_file(run_rehearse: Callable[..., Result], tmp_path: Path) -> None:
    """What moves where; the tool's own refusal is a refused step."""
    step = reassignment(tmp_path / "moves.json", ("t", 0, [3, 2]), ("t", 1, [3, 1]))
    result = run_rehearse("-s", step)
    assert result.exit_code == 0
    assert result.output.splitlines()[4:] == [
        "   led by another: 1 partition, broker 1 -> 3 (1): t-0",
        "   other replicas: 2 partitions: t-0, t-1",
        "   replicas copied to broker 3 (2)",
        "   replicas removed from broker 1 (1), 2 (1)",
    ]
    unknown = run_rehearse("-s", reassignment(tmp_path / "wrong.json", ("t", 0, [9])))
    assert unknown.exit_code == 3
    assert "kafka-reassign-partitions: Unknown broker id 9" in unknown.output


WRONG = (
    (("-s", "reassign:missing.json"), "missing.json: it cannot be read: No such file or directory"),
    (("-s", "reassign:."), ".: it cannot be read: Is a directory"),
    (("-s", "reassign:"), "write what to do and with what"),
    (("-s", "lose:controller-1"), "is for brokers: write stop:controller-1 for a controller"),
    (("-s", "lose:x"), "'x' is no node"),
    (("-s", "create-topic:a,b"), "write create-topic:a,12,3"),
    (("-s", "create-topic:a,999999,1"), "at most 200000 partitions are rehearsed"),
    (("-s", "elect-preferred:a,,b"), "a topic has no name"),
    (("-s", "elect-prefered"), "write what to do and with what"),
    (("-s", "loose:1"), "did you mean lose?"),
    (("-s", "lose:1", "--on-real-controller", "4.3"), "not partitions"),
)


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_usage_is_one_line(
    run_rehearse: Callable[..., Result], arguments: tuple[str, ...], text: str
) -> None:
    """What is wrong and what to write."""
    result = run_rehearse(*arguments)
    assert isinstance(result.exception, UsageError)
    assert text in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_file_of_200_megabytes_is_one_line(
    run_rehearse: Callable[..., Result], tmp_path: Path
) -> None:
    """No more than its limit is read."""
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(200 << 20)
    result = run_rehearse("-s", f"reassign:{large}")
    assert str(result.exception) == f"{large}: it is larger than 64 MiB: split the reassignment"


def test_partitions_need_the_metadata_log(run_rehearse: Callable[..., Result]) -> None:
    """The nodes' responses alone have none."""
    result = run_rehearse("-s", "lose:1", authority=Authority.ANSWERS)
    assert isinstance(result.exception, UsageError)
    assert "partitions are in the metadata log" in str(result.exception)


def test_records_that_cannot_be_read_make_the_answer_unknown(
    run_rehearse: Callable[..., Result],
) -> None:
    """A partition may be missing."""
    result = run_rehearse("-s", "lose:1", events=(*EVENTS, r.commit(69, r.unreadable())))
    assert result.exit_code == 4
    assert "1 records could not be read: partitions may be missing" in result.output


def test_min_isr_of_the_brokers_is_given_by_a_flag(run_rehearse: Callable[..., Result]) -> None:
    """It is in their configuration files, which no log has; a topic's own setting is stronger."""
    events = (*EVENTS, r.commit(69, setting(2, "t", "min.insync.replicas", None)))
    for arguments, count in (((), 0), (("--min-isr", "2"), COUNT)):
        result = run_rehearse("-s", "lose:1", "--json", *arguments, events=events)
        assert json.loads(result.output)["steps"][0]["partitions"]["under_min_isr"] == count


def test_controllers_may_have_their_own_login(
    run_rehearse: Callable[..., Result], tmp_path: Path
) -> None:
    """--controllers-config beside --command-config, as in watch."""
    files = [tmp_path / name for name in ("nodes", "controllers")]
    sections: list[ClusterSection] = []
    options = ("--command-config", str(files[0]), "--controllers-config", str(files[1]))
    result = run_rehearse("-s", "stop:broker-1", *options, sections=sections)
    assert result.exit_code == 0, result.output
    assert [sections[0].command_config, sections[0].controllers_config] == files
