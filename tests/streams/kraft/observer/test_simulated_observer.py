"""The observer against a simulated quorum under random events: nothing false, nothing missing."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.streams.kraft.observer.tail import UncommittedLog
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import LOG_START
from tests.streams.kraft.log_bytes import log
from tests.streams.kraft.observer.simulated_observer import play


@settings(max_examples=300)
@given(st.integers(0, 10**9))
@example(10_000_726)  # a leader that was cut off, heard first after a restart
@example(10_002_486)
def test_whatever_happens_each_committed_record_is_given_out_once(seed: int) -> None:
    """Elections, lost and cut answers, snapshots, crashes: the truth, in order, once, whole."""
    play(seed)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.lists(st.integers(0, 2000), max_size=12),
    st.integers(0, 50),
)
def test_every_split_of_the_log_gives_the_same_batches(
    counts: list[int], cuts: list[int], watermark: int
) -> None:
    """However answers are cut, the tail holds the same batches and releases the same ones."""
    spans, first = [], 0
    for count in counts:
        spans.append((first, first + count - 1))
        first += count
    pieces = [log(f"{a}-{b}@1") for a, b in spans]
    tail = UncommittedLog(LOG_START)
    for cut in [*cuts, 10**6]:
        rest = b"".join(
            p for (_, last), p in zip(spans, pieces, strict=True) if last >= tail.end.offset
        )
        tail.append(scan_batches(rest[:cut]), 1)
    released = [(batch.base_offset, batch.last_offset) for batch in tail.release(watermark)]
    assert released == [span for span in spans if span[1] < watermark]
    assert tail.end.offset == first
