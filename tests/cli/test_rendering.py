"""How things are shown to people and to programs."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from featurewatch.cli.output import rendering
from featurewatch.cli.output.cluster_states import STALE_AFTER_MS, staleness
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    IncompatibleNode,
    Migration,
    Severity,
    Snapshot,
    ZookeeperController,
)
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)

EVIL = "\x1b[2Jfeature\r\n[red]x[/nothing]\u202e"


def _class(
    ids: Sequence[int], bounds: tuple[int, int], feature: str = "metadata.version"
) -> CapabilityClass:
    nodes = tuple(map(NodeId, ids))
    return CapabilityClass(
        Role.BROKER, {FeatureName(feature): SupportedRange(*bounds)}, True, nodes, (), ()
    )


def _snapshot(
    classes: Sequence[CapabilityClass], bad: Sequence[int] = (), cluster: str = "c"
) -> Snapshot:
    feature, level = FeatureName("metadata.version"), FeatureLevel(30)
    incompatible = tuple(
        IncompatibleNode(Role.BROKER, NodeId(node), feature, level, SupportedRange(1, 19), "no")
        for node in bad
    )
    return Snapshot(
        cluster=ClusterId(cluster),
        epoch=7,
        revision=2,
        provenance={},
        ready=True,
        leader_id=1,
        leader_epoch=1,
        finalized={feature: level},
        classes=tuple(classes),
        incompatible=incompatible,
        sources={"kraft": "following"},
        digest="d" * 64,
        at_ms=1_000,
    )


def _alert(number: int, summary: str = "Broker must go") -> Alert:
    return Alert(
        id=f"c/rule/{number}",
        cluster=ClusterId("c"),
        rule="incompatible-node",
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        subject={},
        summary=summary,
        evidence={},
        since_ms=1,
        at_ms=1,
        cause="c/kraft/1-1",
    )


def _text(*parts: object) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    for part in parts:
        console.print(part)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def test_ten_thousand_nodes_fit_a_screen() -> None:
    """Many classes, many nodes and many alerts are some lines, that say how much is left out."""
    classes = [_class(range(number, 10_000, 40), (7, 30 + number)) for number in range(40)]
    alerts = [_alert(number) for number in range(5_000)]
    text = _text(*rendering.state_view(_snapshot(classes, bad=[39]), alerts))
    assert len(text.splitlines()) < 60
    assert "and 34 more classes with 8,500 nodes" in text
    assert "and 4,980 more alerts" in text
    assert "7-69 ✗" in text, "the class with an incompatible node must be shown"


def test_control_characters_and_markup_of_a_cluster_are_escaped() -> None:
    """Control characters become a mark, and markup is shown unchanged."""
    evil = FeatureName(EVIL)
    change = FeatureChange(
        cluster=ClusterId(EVIL),
        feature=evil,
        before=FeatureLevel(0),
        after=FeatureLevel(1),
        kind=ChangeKind.FINALIZED,
        epoch=1,
        revision=1,
        provenance={},
        from_snapshot=False,
        append_ms=1,
        seen_ms=1,
    )
    snapshot = _snapshot([_class([1], (0, 1), EVIL)], cluster=EVIL)
    alert = _alert(1, summary=EVIL)
    text = _text(
        rendering.change_line(change),
        rendering.alert_line(alert),
        rendering.snapshot_line(snapshot),
        *rendering.state_view(snapshot, [alert]),
    )
    assert "[red]x[/nothing]" in text
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert "\x1b" not in text


def test_output_without_a_terminal_has_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    """What a file or a pipe gets is plain text in unbroken lines."""
    rendering.console().print(rendering.alert_line(_alert(1, "x" * 300)), soft_wrap=True)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count("\n") == 1


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A document is a line, whatever it contains."""
    rendering.print_json(_alert(1, EVIL))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert json.loads(out)["summary"] == EVIL


def test_times_are_utc_to_the_millisecond() -> None:
    """A time that is not known is a dash."""
    assert rendering.clock(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert rendering.clock(-1) == "-"


def test_an_old_snapshot_is_doubted() -> None:
    """What was not heard of for a minute, or has not caught up, is not known to be so now."""
    snapshot = _snapshot([])
    assert staleness(snapshot, snapshot.at_ms + STALE_AFTER_MS) is None
    reason = staleness(snapshot, snapshot.at_ms + STALE_AFTER_MS + 1)
    assert "does a worker run?" in (reason or "")
    text = _text(*rendering.state_view(snapshot, [], reason))
    assert "does a worker run?" in text
    assert "no alert fires" not in text


def test_the_controller_of_zookeeper_is_shown_beside_the_quorums_leader() -> None:
    """Both are shown while both are watched; neither is, where nobody tells of one."""
    snapshot = _snapshot([_class([1], (7, 30))])
    assert "leader 1 " in _text(*rendering.state_view(snapshot, []))
    assert "ZooKeeper" not in _text(*rendering.state_view(snapshot, []))
    both = replace(snapshot, controller=ZookeeperController(3001, 4, 2))
    assert "leader 1, ZooKeeper's controller 3001 " in _text(*rendering.state_view(both, []))
    alone = replace(both, leader_id=-1)
    text = _text(*rendering.state_view(alone, []))
    assert "revision 2, ZooKeeper's controller 3001 " in text
    vacant = replace(alone, controller=ZookeeperController(epoch=4))
    assert "ZooKeeper" not in _text(*rendering.state_view(vacant, []))


@pytest.mark.parametrize(
    ("migration", "line"),
    [
        (
            Migration("pre-migration", True, -1, 3, (NodeId(1), NodeId(2), NodeId(3))),
            "migration to KRaft: pre-migration; 3 brokers in ZooKeeper, not registered with the "
            "KRaft controllers: 1-3",
        ),
        (
            Migration("migration", True, 3001, 1),
            "migration to KRaft: migration; 1 broker in ZooKeeper",
        ),
        (
            Migration("unknown", True, 3001, 0),
            "migration to KRaft: unknown; 0 brokers in ZooKeeper",
        ),
    ],
)
def test_a_migration_is_one_line(migration: Migration, line: str) -> None:
    """How far it is, how many brokers are left, and which of them are missing; and the line goes
    with the migration."""
    snapshot = replace(_snapshot([_class([1], (7, 30))]), migration=migration)
    assert line in [row.strip() for row in _text(*rendering.state_view(snapshot, [])).splitlines()]
    over = replace(snapshot, migration=replace(migration, in_progress=False))
    assert "migration" not in _text(*rendering.state_view(over, []))


def test_ten_thousand_missing_brokers_fit_a_line() -> None:
    """Ids are drawn together, and what is left out is counted."""
    missing = tuple(NodeId(number) for number in range(1, 20_000, 2))
    migration = Migration("pre-migration", True, -1, 10_000, missing)
    snapshot = replace(_snapshot([]), migration=migration)
    text = _text(*rendering.state_view(snapshot, []))
    assert "1, 3, 5, 7, 9, 11, 13, 15 and 9,992 more" in text


def test_the_controller_that_a_migration_left_behind_is_not_shown() -> None:
    """Its znode stays for ever and says nothing of the cluster any more."""
    over = Migration("post-migration", False, 3001, 0)
    snapshot = replace(
        _snapshot([_class([1], (7, 30))]),
        controller=ZookeeperController(3001, 4, 2),
        migration=over,
    )
    text = _text(*rendering.state_view(snapshot, []))
    assert "ZooKeeper" not in text
    assert "leader 1 " in text
