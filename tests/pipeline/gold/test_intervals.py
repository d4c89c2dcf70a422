"""Intervals: what each node supported, and which were excluded, from when to when."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.pipeline.fold.messages import FoldOutput, FoldState, fold_message, restore_state
from featurewatch.pipeline.gold.output_rows import TABLES, add_outputs
from featurewatch.pipeline.gold.tables import CAPABILITY_INTERVALS, GOLD, UPGRADES
from featurewatch.pipeline.lake.block_writer import BLOCK_SCHEMA, BlockTarget, write_blocks
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import RowBuilder
from featurewatch.streams.events import Event
from tests.pipeline.filling import rows
from tests.pipeline.gold.fold_outputs import history_row
from tests.pipeline.gold.parity import history, line, placed, tables_of
from tests.plugins.nightly import case_count
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import CLUSTER, MV
from tests.simulation.world import RELEASES

OLD, NEW = RELEASES["3.9"], RELEASES["4.3"]
START = (r.commit(9, r.level(MV, 19), r.register(1, OLD)), r.following(9))


def folded_events(events: Iterable[Event]) -> tuple[FoldState, list[FoldOutput]]:
    """Folds the events of one cluster; returns the state and the rows."""
    messages = [*placed(map(line, events))]
    state, outputs = restore_state(messages[0][0], {}), []
    for _, message in messages:
        state, added = fold_message(state, message)
        outputs += added
    return state, outputs


def intervals(kind: str, *events: Event) -> list[dict[str, Any]]:
    """The rows of a kind that some events yield, in the order of their starts."""
    rows_ = tables_of(folded_events(events)[1])[kind]
    return sorted(rows_, key=lambda row: (row["since_ms"], row["role"], row["node_id"]))


def spans(kind: str, *events: Event) -> list[tuple[Any, ...]]:
    """Node, release or level, start and end of each row."""
    column = "release" if kind == "capability" else "level"
    return [
        (row["node_id"], row[column], row["since_ms"], row["until_ms"])
        for row in intervals(kind, *events)
    ]


def test_an_interval_ends_where_the_next_begins() -> None:
    """Both name the event; a fencing or a restart on the same software is no boundary, and a node
    that leaves ends its own."""
    rows_ = intervals(
        "capability",
        *START,
        *(r.commit(10, r.fence(1)), r.commit(11, r.register(1, OLD, epoch=2))),
        *(r.commit(20, r.register(1, NEW, epoch=3)), r.commit(30, r.unregister(1))),
    )
    assert [(row["release"], row["since_ms"], row["until_ms"]) for row in rows_] == [
        ("3.9", 90, 200),
        ("4.3", 200, 300),
    ]
    causes = [f"{CLUSTER}/kraft/{offsets}" for offsets in ("8-9", "20-20", "30-30")]
    assert [(row["since_cause"], row["until_cause"]) for row in rows_] == [
        (causes[0], causes[1]),
        (causes[1], causes[2]),
    ]
    assert rows_[0]["ranges"] == {name: [*bounds] for name, bounds in OLD.items()}
    assert (rows_[0]["role"], rows_[0]["complete"]) == ("broker", True)


def test_a_snapshot_that_is_read_again_counts_by_its_differences() -> None:
    """A snapshot begins and ends intervals only for nodes that changed."""
    levels = [r.level(MV, 19), r.register(1, OLD), r.register(2, NEW)]
    intervals_ = spans("capability", *START, r.gap(10, 49), r.chunk(50, 0, *levels, last=True))
    assert intervals_ == [(1, "3.9", 90, None), (2, "4.3", 500, None)]


def test_offsets_that_are_used_again_make_other_intervals() -> None:
    """After a log went backwards the same offset may register the same node: it is another row."""
    again = r.commit(20, r.register(2, NEW), epoch=2)
    caught_up = r.following(20, seen_ms=900)
    rows_ = intervals(
        "capability",
        *(*START, r.commit(20, r.register(2, OLD)), r.following(20)),
        *(r.gap(10, 20, reset=True, seen_ms=300), replace(START[0], seen_ms=310)),
        *(r.following(9, seen_ms=320), replace(again, append_ms=800), caught_up),
    )
    assert [(row["node_id"], row["release"], row["until_ms"]) for row in rows_] == [
        (1, "3.9", None),
        (2, "3.9", 320),
        (2, "4.3", None),
    ]
    assert len({row["id"] for row in rows_}) == 3


def test_nothing_ends_before_it_began() -> None:
    """If the clock of another source is behind, an interval has no length."""
    brokers = [z.broker(1, OLD, 1)]
    events: list[Event] = [*z.reading("s", brokers, 10, seen_ms=1000), z.following(1001)]
    assert spans("capability", *events, z.deleted("/brokers/ids/1", 20, seen_ms=7)) == [
        (1, "3.9", 1000, 1000)
    ]


def test_a_level_that_excludes_a_node_is_a_separate_interval() -> None:
    """It begins and ends with the alert; another level is another row, but a fencing, which changes
    the alert too, is not."""
    rows_ = intervals(
        "exclusion",
        *(*START, r.commit(20, r.level(MV, 25)), r.commit(25, r.unfence(1))),
        *(r.commit(30, r.level(MV, 30)), r.commit(40, r.register(1, NEW, epoch=9))),
    )
    assert [(row["level"], row["since_ms"], row["until_ms"]) for row in rows_] == [
        (25, 200, 300),
        (30, 300, 400),
    ]
    assert (rows_[0]["feature"], rows_[0]["range"], rows_[0]["verdict"]) == (MV, [1, 21], "no")
    assert rows_[0]["reason"].startswith("broker 1 supports metadata.version 1-21, and level 25")


def test_histories_leave_no_gap_and_no_overlap() -> None:
    """Whatever happens to a cluster: a node has one interval at a time, and the open ones equal the
    image and the firing alerts."""
    for seed in (*range(case_count(60)), 135):
        state, outputs = folded_events(history(seed, 60))
        tables = tables_of(outputs)
        image = state.monitor.image
        open_ = {
            (row["role"], row["node_id"]): row["ranges"]
            for row in tables["capability"]
            if row["until_ms"] is None
        }
        assert open_ == {
            (key.role, key.node_id): {f: [*b] for f, b in node.capabilities.ranges.items()}
            for key, node in image.nodes.nodes.items()
        }
        assert sum(row["until_ms"] is None for row in tables["capability"]) == len(open_)
        # Not its cause alone: a resync without the node ends its interval, and the record that
        # registered it may be read again.
        ids = {row["id"] for row in tables["capability"]}
        assert len(ids) == len(tables["capability"])
        firing = {
            (subject.key, alert.subject["feature"])
            for subject, alerts in state.monitor.firing.items()
            for alert in alerts
            if alert.rule in ("incompatible-node", "missing-feature")
        }
        excluded = [row for row in tables["exclusion"] if row["until_ms"] is None]
        assert len(excluded) == len(firing)


@pytest.mark.stack
def test_an_interval_that_ended_stays_as_it_is(lake: Lake) -> None:
    """Emitted again as open, or with another end, it does not change; an interval that began and
    ended in one batch is one row; of the rows of a roll the last one counts, in a batch and after
    it."""

    def put(*outputs: FoldOutput) -> None:
        builder = RowBuilder(GOLD)
        add_outputs(builder, outputs)
        blocks = [block.labelled for block in builder.take()]
        targets = [BlockTarget(spec.table, spec.replace_when) for spec in TABLES]
        write_blocks(lake, lake.session.createDataFrame(blocks, BLOCK_SCHEMA), targets)

    put(
        *(
            history_row("capability", "a"),
            history_row("capability", "b", until_ms=5),
            history_row("capability", "b"),
        ),
        *(
            history_row("roll", "r", number=2, state="rolled"),
            history_row("roll", "r", number=1, state="x"),
        ),
    )
    put(
        *(
            history_row("capability", "a", until_ms=7, until_cause="u"),
            history_row("capability", "b"),
        ),
        history_row("roll", "r", number=3, state="finalized", ended_ms=9),
    )
    put(
        history_row("capability", "a"),
        history_row("capability", "b", until_ms=6),
        history_row("capability", "c"),
    )
    stored = lake.read(CAPABILITY_INTERVALS).selectExpr("id", "unix_millis(until)", "until_cause")
    assert sorted(map(tuple, stored.collect())) == [
        ("a", 7, "u"),
        ("b", 5, None),
        ("c", None, None),
    ]
    assert rows(lake, UPGRADES, "id", "state") == [("r", "finalized")]
