"""`JumpLog`: which offsets the fetcher passed over."""

from hypothesis import given
from hypothesis import strategies as st

from featurewatch.agents.consumer_thread import JumpLog


def test_a_hole_between_records_is_a_jump_from_what_was_due() -> None:
    """Within what was fetched at once, and between two fetches."""
    log = JumpLog()
    log.positioned("p", 5)
    log.fetched("p", [5, 6, 8])
    log.positioned("p", 9)
    log.fetched("p", [11])
    assert [log.take("p", offset) for offset in (5, 6, 8, 11)] == [None, None, 7, 9]


def test_a_jump_is_taken_once() -> None:
    """So that a topic with many transactions takes no more and more memory."""
    log = JumpLog()
    log.fetched("p", range(0, 2000, 2))
    assert log.start("p", 4) == 3
    assert [log.take("p", 4), log.take("p", 4)] == [3, None]
    assert sum(log.take("p", offset) is not None for offset in range(0, 2000, 2)) == 998


def test_after_a_seek_any_offset_may_come() -> None:
    """And what was known of the partition before is forgotten; other partitions keep theirs."""
    log = JumpLog()
    for partition in "pq":
        log.fetched(partition, [1, 3])
    log.sought("p")
    log.fetched("p", [7])
    assert [log.take("p", 3), log.take("p", 7), log.take("q", 3)] == [None, None, 2]


def test_a_log_that_went_back_is_a_jump_to_a_lower_offset() -> None:
    """As after a topic was recreated."""
    log = JumpLog()
    log.fetched("p", [500])
    log.fetched("p", [0])
    assert log.take("p", 0) == 501


@given(st.lists(st.integers(0, 3), max_size=40), st.lists(st.integers(1, 5), max_size=10))
def test_records_and_holes_cover_the_log(steps: list[int], cuts: list[int]) -> None:
    """However the records are fetched, what they and the jumps cover has no gap."""
    offsets = []
    offset = 0
    for step in steps:
        offset += step
        offsets.append(offset)
        offset += 1
    log = JumpLog()
    log.positioned("p", 0)
    rest = list(offsets)
    for cut in [*cuts, len(offsets)]:
        log.fetched("p", rest[:cut])
        rest = rest[cut:]
    due = 0
    for offset in offsets:
        start = log.take("p", offset)
        assert (offset if start is None else start) == due
        due = offset + 1
