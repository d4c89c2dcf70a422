"""The observer against a scripted quorum: discovery, watermark, divergence, snapshots, trouble."""

from itertools import product

import pytest

from featurewatch.streams.kraft.observer.observer import Observer
from featurewatch.streams.kraft.observer.requests import FetchRequest, RequestFailure
from featurewatch.streams.kraft.observer.states import (
    TRANSITIONS,
    ObserverOutput,
    ObserverState,
    ObserverTiming,
    ResponseKind,
)
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.streams.kraft.observer.observer_script import CLUSTER, nodes, script, spell_output


def test_the_leader_is_found_from_any_controller_in_two_round_trips() -> None:
    """Any controller fences the unknown epoch and names the leader with its address."""
    script().play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=2@5 at 2=x | behind
        x 0@0 e5 w0   | ok leader=2@5 hw=3 0-1@4 2@5 3-5@5    | commit 0-2, following
        x 6@5 e5 w0   | ok leader=2@5 hw=6                    | commit 3-5, following
        x 6@5 e5 w500 | ok leader=2@5 hw=6                    | following
        x 6@5 e5 w500 | ok leader=2@5 hw=6 6@5                | following
        x 7@5 e5 w0   | ok leader=2@5 hw=7                    | commit 6-6, following
        """
    )


def test_without_addresses_the_bootstrap_controllers_are_tried_in_turn() -> None:
    """Before Fetch 17 answers have no addresses: the one who answers as leader is remembered."""
    script().play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH v=13 leader=3@5    |
        a 0@0 e5 w0   | NOT_LEADER_OR_FOLLOWER v=13 leader=3@5 | trouble controller 3 is named
        b 0@0 e5 w0   | NOT_LEADER_OR_FOLLOWER v=13 leader=3@5 |
        c 0@0 e5 w0   | ok v=13 leader=3@5 hw=1 0@5            | commit 0-0, trouble none
        c 1@5 e5 w500 | gone                                   |
        a 0@5 e5 w0   | NOT_LEADER_OR_FOLLOWER v=13 leader=3@5 |
        b 0@5 e5 w0   | NOT_LEADER_OR_FOLLOWER v=13 leader=3@5 |
        b 0@5 e5 w0   | FENCED_LEADER_EPOCH v=13 leader=1@6    | pause >=50
        b 0@5 e6 w0   | NOT_LEADER_OR_FOLLOWER v=13 leader=1@6 |
        c 0@5 e6 w0   | gone                                   |
        a 0@5 e6 w0   | ok v=13 leader=1@6 hw=1 0@5            | following
        """
    )


def test_learned_addresses_are_tried_where_no_configured_one_leads_to_the_leader() -> None:
    """All controllers moved: those that the cluster named since are tried after the configured
    ones, and earlier leaders too."""
    playing = script(bootstrap="ab")
    playing.play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=x |
        x 0@0 e5 w0   | ok leader=1@5 hw=1 0@5                | commit 0-0, following
        x 1@5 e5 w500 | FENCED_LEADER_EPOCH leader=2@6 at 2=y |
        """
    )
    playing.observer.learn(nodes("zx"))
    playing.play(
        """
        y 1@5 e6 w0   | gone                                  | trouble y:9093 is down
        a 0@5 e6 w0   | gone                                  |
        b 0@5 e6 w0   | gone                                  |
        x 0@5 e6 w0   | gone                                  |
        z 0@5 e6 w0   | FENCED_LEADER_EPOCH leader=3@7 at 3=w |
        w 0@5 e7 w0   | ok leader=3@7 hw=1 0@5                | following, trouble none
        """
    )


def test_an_address_that_cannot_be_reached_is_passed_by() -> None:
    """Where the named address is not reachable from here the bootstrap address serves."""
    script(bootstrap="ab").play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=2@5 at 2=x  |
        x 0@0 e5 w0   | gone                                   | trouble x:9093 is down
        a 0@0 e5 w0   | NOT_LEADER_OR_FOLLOWER leader=2@5 at 2=x | trouble address x:9093: can it
        b 0@0 e5 w0   | ok leader=2@5 hw=0                     | following
        b 0@0 e5 w500 | ok leader=2@5 hw=1 0@5                 | commit 0-0
        """
    )


def test_a_leader_that_dies_is_followed_by_the_next() -> None:
    """While nobody leads the controllers are asked with growing pauses; nothing is lost."""
    script("4@5").play(
        """
        a 4@5 e5 w0   | NOT_LEADER_OR_FOLLOWER leader=2@5 at 2=b |
        b 4@5 e5 w0   | ok leader=2@5 hw=4                       | following
        b 4@5 e5 w500 | gone                                     | behind
        a 4@5 e5 w0   | NOT_LEADER_OR_FOLLOWER leader=2@5        |
        c 4@5 e5 w0   | FENCED_LEADER_EPOCH leader=-1@6          | trouble no leader is elected
        a 4@5 e6 w0   | UNKNOWN_LEADER_EPOCH leader=2@5          | trouble no leader is elected
        b 4@5 e6 w0   | gone                                     |
        c 4@5 e6 w0   | NOT_LEADER_OR_FOLLOWER leader=-1@6       | trouble no leader is elected
        b 4@5 e6 w0   | gone                                     | pause >=50
        c 4@5 e6 w0   | NOT_LEADER_OR_FOLLOWER leader=-1@6       |
        a 4@5 e6 w0   | NOT_LEADER_OR_FOLLOWER leader=-1@6       |
        c 4@5 e6 w0   | NOT_LEADER_OR_FOLLOWER leader=3@6        | pause >=100
        c 4@5 e6 w0   | ok leader=3@6 hw=-1 4@6                  | behind
        c 5@6 e6 w0   | ok leader=3@6 hw=5                       | commit 4-4, following
        """
    )


def test_a_leader_without_a_watermark_keeps_the_last_one() -> None:
    """-1 from a new leader neither releases nor forgets anything."""
    run = script()
    run.play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=a |
        a 0@0 e5 w0   | ok leader=1@5 hw=2 0-3@5              | behind
        a 4@5 e5 w0   | FENCED_LEADER_EPOCH leader=2@6 at 2=b |
        b 4@5 e6 w0   | ok leader=2@6 hw=-1                   | behind
        b 4@5 e6 w0   | ok leader=2@6 hw=-1 4@6               | behind
        b 5@6 e6 w0   | ok leader=2@6 hw=5                    | commit 0-4, following
        """
    )
    assert run.observer.progress.high_watermark == 5


def test_an_older_watermark_takes_nothing_back() -> None:
    """The watermark only grows, whatever an answer says."""
    run = script()
    run.play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=a |
        a 0@0 e5 w0   | ok leader=1@5 hw=2 0-1@5 2@5          | commit 0-1
        a 3@5 e5 w0   | ok leader=1@5 hw=1                    |
        """
    )
    assert run.observer.progress.high_watermark == 2
    assert run.observer.progress.next_position == OffsetAndEpoch(2, 5)


def test_before_4_1_the_watermark_is_looked_for_ever_less_often() -> None:
    """A waiting fetch would be answered with an old watermark: short looks, then longer pauses."""
    run = script(bootstrap="a")
    run.play("a 0@0 e0 w0 | FENCED_LEADER_EPOCH leader=1@5 at 1=a |")
    run.play("a 0@0 e5 w0 | ok leader=1@5 hw=0 0@5 |")
    waits = []
    for _ in range(10):
        run.play("a 1@5 e5 w0 | ok leader=1@5 hw=0 |")
        waits.append(run.waited_ms)
    assert waits == [0, 1, 2, 4, 8, 16, 32, 64, 100, 100]
    run.play("a 1@5 e5 w0 | ok leader=1@5 hw=1 | commit 0-0, pause >=100")
    run.play("a 1@5 e5 w500 | ok leader=1@5 hw=1 1@5 |")
    run.play("a 2@5 e5 w0 | ok leader=1@5 hw=2 | commit 1-1")
    assert run.waited_ms == 0


def test_from_4_1_on_the_leader_pushes_the_watermark() -> None:
    """Fetch 18 carries our watermark: the leader answers when it knows better, so we wait there."""
    run = script(bootstrap="a")
    run.play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH v=18 leader=1@5 at 1=a |
        a 0@0 e5 w0   | ok v=18 leader=1@5 hw=0 0@5                |
        a 1@5 e5 w500 | ok v=18 leader=1@5 hw=1                    | commit 0-0, following
        """
    )
    request = run.next_request()
    assert isinstance(request, FetchRequest)
    assert request.high_watermark == 1
    assert run.waited_ms == 0


def test_a_cut_off_batch_is_fetched_again() -> None:
    """The tail of an answer may be part of a batch: it is left, and fetched whole."""
    script(bootstrap="a").play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=a |
        a 0@0 e5 w0   | ok leader=1@5 hw=9 0-3@5 4-8@5 cut=5  | commit 0-3, behind
        a 4@5 e5 w500 | ok leader=1@5 hw=9 4-8@5              | commit 4-8, following
        """
    )


def test_a_batch_larger_than_the_response_is_fetched_with_more_bytes() -> None:
    """No whole batch in an answer: more bytes are asked for, up to the most; then it is trouble."""
    run = script(bootstrap="a", pace=ObserverTiming(max_bytes=100, max_batch_bytes=5000))
    run.play("a 0@0 e0 w0 | FENCED_LEADER_EPOCH leader=1@5 at 1=a |")
    sizes = []
    for _ in range(3):
        request = run.next_request()
        assert isinstance(request, FetchRequest)
        sizes.append(request.max_bytes)
        run.reply("ok leader=1@5 hw=9 0-3@5 cut=5", request)
    assert sizes == [100, 800, 5000]
    assert run.observer.progress.stall_reason is not None
    assert "no whole batch follows offset 0" in run.observer.progress.stall_reason.message


def test_batches_before_the_place_are_passed_over() -> None:
    """An answer may begin before the offset asked for, with batches that were given out."""
    script("3@5", bootstrap="a").play(
        """
        a 3@5 e5 w0   | ok leader=1@5 hw=6 0-1@5 2@5 3-5@5 | commit 3-5
        """
    )


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("ok leader=1@5 hw=9 4-5@5", "offsets 3 to 3 are missing"),
        ("ok leader=1@5 hw=9 3@4", "has epoch 4 after epoch 5"),
        ("ok leader=1@5 hw=9 3@6", "in the leader's epoch 5"),
        ("ok leader=1@5 hw=9 bytes=99", "a record batch cannot have 12 bytes"),
    ],
)
def test_what_cannot_follow_is_refused(answer: str, line: str) -> None:
    """A hole, an epoch that goes back or comes from nowhere, invalid bytes: asked again."""
    script("3@5", bootstrap="a").play(
        f"""
        a 3@5 e5 w0   | {answer}                    | trouble {line}
        a 3@5 e5 w0   | ok leader=1@5 hw=4 3@5      | commit 3-3, trouble none, pause >=50
        """
    )


def test_an_uncommitted_tail_is_dropped_where_the_leader_diverges() -> None:
    """A new leader lacks what the old one never committed: truncate, fetch again, lose nothing."""
    script().play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=a     |
        a 0@0 e5 w0   | ok leader=1@5 hw=2 0-1@5 2@5 3-4@5 5@5    | commit 0-1
        a 6@5 e5 w0   | FENCED_LEADER_EPOCH leader=2@7 at 2=b     |
        b 6@5 e7 w0   | ok leader=2@7 hw=2 div=3@5                | following
        b 3@5 e7 w0   | ok leader=2@7 hw=4 3@7 4@7                | commit 2-3, following
        b 5@7 e7 w0   | ok leader=2@7 hw=5                        | commit 4-4, following
        """
    )


def test_divergence_by_epoch_drops_whole_epochs() -> None:
    """The leader names the newest epoch that it has in common: what is newer goes."""
    script().play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@6 at 1=a     |
        a 0@0 e6 w0   | ok leader=1@6 hw=1 0@4 1@5 2@6            | commit 0-0
        a 3@6 e6 w0   | FENCED_LEADER_EPOCH leader=2@7 at 2=b     |
        b 3@6 e7 w0   | ok leader=2@7 hw=1 div=9@4                |
        b 1@4 e7 w500 | ok leader=2@7 hw=2 1@7                    | commit 1-1
        """
    )


@pytest.mark.parametrize(
    ("diverging", "lost"),
    [("6@5", "6-9"), ("4@3", "4-9"), ("50@3", "9-9"), ("0@0", "0-9"), ("10@5", "9-9")],
)
def test_a_log_that_went_backwards_is_read_from_the_start(diverging: str, lost: str) -> None:
    """A divergence below what was committed takes back what was said, and all is read again."""
    script("10@5", bootstrap="a").play(
        f"""
        a 10@5 e5 w0  | FENCED_LEADER_EPOCH leader=1@8 at 1=a |
        a 10@5 e8 w0  | ok leader=1@8 hw=6 div={diverging}    | reset {lost}, behind
        a 0@0 e8 w0   | ok leader=1@8 hw=2 0-1@8              | commit 0-1, following
        """
    )


@pytest.mark.parametrize("answer", ["div=5@1", "start=3 snap=20@4"])
def test_a_leader_that_has_committed_nothing_takes_nothing_back(answer: str) -> None:
    """A leader that was cut off before its first commit may lack what others committed since."""
    script("10@5", bootstrap="ab").play(
        f"""
        a 10@5 e5 w0  | FENCED_LEADER_EPOCH leader=1@6 at 1=a | behind
        a 10@5 e6 w0  | ok leader=1@6 hw=-1 {answer}          | trouble committed nothing yet
        b 10@5 e6 w0  | FENCED_LEADER_EPOCH leader=2@7 at 2=b |
        b 10@5 e7 w0  | ok leader=2@7 hw=11 10@7              | commit 10-10, following
        """
    )


def test_a_rebuilt_cluster_is_recognised_when_all_controllers_are_behind() -> None:
    """Every controller at an older epoch for ten seconds: the log is another one, and is read."""
    run = script("10@5", bootstrap="ab")
    outputs: list[ObserverOutput] = []
    while not outputs and run.now_ms < 60_000:
        outputs = run.reply("UNKNOWN_LEADER_EPOCH leader=1@2", run.next_request())
    assert 11_000 <= run.now_ms < 13_000
    assert [spell_output(output) for output in outputs] == ["reset 0-9"]
    run.play("a 0@0 e0 w0 | FENCED_LEADER_EPOCH leader=1@2 at 1=a |")


def test_one_controller_at_an_older_epoch_is_no_recreated_cluster() -> None:
    """While another controller cannot be asked, an older epoch is not believed, however long."""
    run = script("10@5", bootstrap="ab")
    while run.now_ms < 100_000:
        request = run.next_request()
        answer = "UNKNOWN_LEADER_EPOCH leader=1@2" if request.to.host == "a" else "gone"
        assert run.reply(answer, request) == []
    assert run.observer.progress.next_position == OffsetAndEpoch(10, 5)


def test_a_cluster_that_moved_and_was_rebuilt_is_recognised() -> None:
    """Nobody listens at the configured address any more: the learned ones decide, and are kept."""
    run = script("10@5", bootstrap="a")
    outputs: list[ObserverOutput] = []
    while not outputs and run.now_ms < 60_000:
        run.observer.learn(nodes("bc"))
        request = run.next_request()
        answer = "gone" if request.to.host == "a" else "UNKNOWN_LEADER_EPOCH leader=1@2"
        outputs = run.reply(answer, request)
    assert [spell_output(output) for output in outputs] == ["reset 0-9"]
    run.observer.learn(())  # what the lost log named
    assert run.reply("gone", run.next_request()) == []
    run.play("b 0@0 e0 w0 | FENCED_LEADER_EPOCH leader=1@2 at 1=b |")


def test_controllers_that_do_not_respond_may_know_the_epoch() -> None:
    """One configured controller was cut off from two that the log named: nothing is rebuilt."""
    run = script("10@5", bootstrap="a")
    while run.now_ms < 100_000:
        run.observer.learn(nodes("bc"))
        request = run.next_request()
        answer = "UNKNOWN_LEADER_EPOCH leader=1@2" if request.to.host == "a" else "gone"
        assert run.reply(answer, request) == []


def test_a_snapshot_takes_the_place_of_what_the_log_no_longer_has() -> None:
    """The leader names its snapshot: it is fetched by parts, and the log continues after it."""
    script("4@2", bootstrap="a").play(
        """
        a 4@2 e2 w0         | FENCED_LEADER_EPOCH leader=1@5 at 1=a    |
        a 4@2 e5 w0         | ok leader=1@5 hw=30 start=20 snap=20@4   | behind
        a snap 20@4+0 e5    | ok leader=1@5 part=0+100/250 of 20@4     | bytes 20@4+0, behind
        a snap 20@4+100 e5  | ok leader=1@5 part=100+100/250 of 20@4   | bytes 20@4+100
        a snap 20@4+200 e5  | ok leader=1@5 part=200+50/250 of 20@4    | lost 4-19, whole 20@4
        a 20@4 e5 w0        | ok leader=1@5 hw=30 20-29@5              | commit 20-29, following
        """
    )


def test_from_nothing_a_snapshot_is_no_loss() -> None:
    """An observer that begins with a snapshot has missed nothing."""
    script(bootstrap="a").play(
        """
        a 0@0 e0 w0         | FENCED_LEADER_EPOCH leader=1@5 at 1=a    |
        a 0@0 e5 w0         | ok leader=1@5 hw=30 snap=20@4            |
        a snap 20@4+0 e5    | ok leader=1@5 part=0+100/100 of 20@4     | whole 20@4
        a 20@4 e5 w0        | ok leader=1@5 hw=20                      | following
        """
    )


@pytest.mark.parametrize(
    "error", ["UNKNOWN_SERVER_ERROR", "SNAPSHOT_NOT_FOUND", "POSITION_OUT_OF_RANGE"]
)
def test_a_snapshot_that_vanished_sends_back_to_fetch(error: str) -> None:
    """A snapshot can be deleted while it is read; released controllers answer -1 then."""
    script("4@2", bootstrap="a").play(
        f"""
        a 4@2 e2 w0         | FENCED_LEADER_EPOCH leader=1@5 at 1=a    |
        a 4@2 e5 w0         | ok leader=1@5 hw=30 start=20 snap=20@4   |
        a snap 20@4+0 e5    | ok leader=1@5 part=0+100/250 of 20@4     | bytes 20@4+0
        a snap 20@4+100 e5  | {error}                                  | trouble no longer has
        a 4@2 e5 w0         | ok leader=1@5 hw=50 start=40 snap=40@5   | pause >=50
        a snap 40@5+0 e5    | ok leader=1@5 part=0+9/9 of 40@5         | lost 4-39, whole 40@5
        """
    )


def test_a_leader_that_changes_during_a_snapshot_restarts_it() -> None:
    """Another controller's snapshot of the same name may differ in bytes: from the beginning."""
    script("4@2", bootstrap="ab").play(
        """
        a 4@2 e2 w0         | FENCED_LEADER_EPOCH leader=1@5 at 1=a              |
        a 4@2 e5 w0         | ok leader=1@5 hw=30 start=20 snap=20@4             |
        a snap 20@4+0 e5    | ok leader=1@5 part=0+100/250 of 20@4               | bytes 20@4+0
        a snap 20@4+100 e5  | NOT_LEADER_OR_FOLLOWER leader=2@6 at 2=b           |
        b 4@2 e6 w0         | ok leader=2@6 hw=30 start=20 snap=20@4             |
        b snap 20@4+0 e6    | ok leader=2@6 part=0+100/100 of 20@4 | lost 4-19, whole 20@4
        """
    )


@pytest.mark.parametrize(
    "part",
    [
        "part=0+10/20 of 20@4",
        "part=10+0/20 of 20@4",
        "part=10+11/20 of 20@4",
        "part=10+5/20 of 21@4",
    ],
)
def test_parts_that_do_not_fit_are_refused(part: str) -> None:
    """Another position, no progress, more than the size, another snapshot: begun again."""
    script("4@2", bootstrap="a").play(
        f"""
        a 4@2 e2 w0         | ok leader=1@2 hw=30 start=20 snap=20@4   |
        a snap 20@4+0 e2    | ok leader=1@2 part=0+10/20 of 20@4       | bytes 20@4+0
        a snap 20@4+10 e2   | ok leader=1@2 {part}                     | trouble a
        a 4@2 e2 w0         | ok leader=1@2 hw=30 start=20 snap=20@4   | pause >=50
        a snap 20@4+0 e2    | ok leader=1@2 part=0+20/20 of 20@4       | lost 4-19, whole 20@4
        """
    )


@pytest.mark.parametrize("answer", ["start=3 snap=20@4", "start=10 snap=20@4", "snap=8@4"])
def test_a_snapshot_that_contradicts_what_was_committed_is_a_reset(answer: str) -> None:
    """Our place is within the leader's range and not in its log: the log went backwards."""
    script("10@5", bootstrap="a").play(
        f"""
        a 10@5 e5 w0        | ok leader=1@5 hw=30 {answer}             | reset 0-9
        a 0@0 e5 w0         | ok leader=1@5 hw=30 snap=20@4            |
        """
    )


def test_a_snapshot_for_an_uncommitted_tail_is_fetched_again() -> None:
    """A snapshot may answer a tail that never existed: ask again from what is committed."""
    script(bootstrap="ab").play(
        """
        a 0@0 e0 w0         | FENCED_LEADER_EPOCH leader=1@5 at 1=a    |
        a 0@0 e5 w0         | ok leader=1@5 hw=2 0-1@5 2-3@5           | commit 0-1
        a 4@5 e5 w0         | FENCED_LEADER_EPOCH leader=2@6 at 2=b    |
        b 4@5 e6 w0         | ok leader=2@6 hw=9 start=3 snap=9@6      |
        b 2@5 e6 w0         | ok leader=2@6 hw=9 start=3 snap=9@6      |
        b snap 9@6+0 e6     | ok leader=2@6 part=0+20/20 of 9@6        | lost 2-8, whole 9@6
        """
    )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("INCONSISTENT_CLUSTER_ID", f"belongs to another cluster than {CLUSTER}"),
        ("CLUSTER_AUTHORIZATION_FAILED", "grant CLUSTER_ACTION"),
        ("UNKNOWN_TOPIC_ID", "broker's listener: give the address of a controller"),
        ("UNKNOWN_TOPIC_OR_PARTITION", "broker's listener: give the address of a controller"),
        ("UNSUPPORTED_VERSION", "older than Kafka 3.3"),
        ("INVALID_REQUEST", "rejects our request"),
    ],
)
def test_a_permanent_error_is_a_stall_reason_and_is_retried(error: str, line: str) -> None:
    """Each such error is one line with the address and what to do, and the next is asked."""
    run = script(bootstrap="ab")
    run.play(
        f"""
        a 0@0 e0 w0   | {error}                               | trouble a:9093 , trouble {line}
        b 0@0 e0 w0   | {error}                               | trouble a:9093
        b 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5 at 1=b | pause >=50
        b 0@0 e5 w0   | ok leader=1@5 hw=0                    | following, trouble none
        """
    )


def test_a_stall_reason_keeps_its_start() -> None:
    """How long nothing could be read counts from the first failure, whatever came after."""
    run = script(bootstrap="ab")
    first_ms = run.now_ms
    for _ in range(20):
        run.observer.on_failure(
            RequestFailure("nobody listens"), run.now_ms if run.next_request() else 0
        )
    assert run.observer.progress.stall_reason is not None
    assert run.observer.progress.stall_reason.since_ms == first_ms
    assert run.now_ms - first_ms > 5000


def test_a_response_outranks_a_lost_connection_as_stall_reason() -> None:
    """The line stays the same in every round, whoever is asked last and however epochs rise."""
    script().play(
        """
        a 0@0 e0 w0   | gone                                | trouble a:9093 is down
        b 0@0 e0 w0   | UNKNOWN_LEADER_EPOCH leader=-1@0    | trouble b:9093 is behind
        c 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=-1@4     | trouble no leader is elected: are
        a 0@0 e4 w0   | gone                                | trouble no leader is elected: are
        b 0@0 e4 w0   | UNKNOWN_LEADER_EPOCH leader=-1@3    | trouble no leader is elected: are
        c 0@0 e4 w0   | NOT_LEADER_OR_FOLLOWER leader=-1@4  | trouble no leader is elected: are
        b 0@0 e4 w0   | gone                                | trouble no leader is elected: are
        c 0@0 e4 w0   | FENCED_LEADER_EPOCH leader=-1@5     | trouble no leader is elected: are
        b 0@0 e5 w0   | gone                                | trouble no leader is elected: are
        c 0@0 e5 w0   | gone                                | trouble c:9093 is down
        a 0@0 e5 w0   | gone                                | trouble c:9093 is down
        c 0@0 e5 w0   | gone                                | trouble c:9093 is down
        a 0@0 e5 w0   | hopeless                            | trouble a:9093 is down
        b 0@0 e5 w0   | NOT_LEADER_OR_FOLLOWER leader=-1@5  | trouble a:9093 is down
        """
    )


def test_two_leaders_of_one_epoch_are_a_stall_reason() -> None:
    """An epoch has one leader: another that answers for it belongs to another cluster."""
    script(bootstrap="ab").play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH leader=1@5         |
        a 0@0 e5 w0   | ok leader=2@5 hw=1 0@5                 | trouble two clusters
        b 0@0 e5 w0   | ok leader=1@5 hw=1 0@5                 | commit 0-0
        """
    )


def test_records_that_are_never_committed_are_not_held_for_ever() -> None:
    """Above a limit nothing more is held: the place is asked for again, with pauses."""
    run = script(bootstrap="a", pace=ObserverTiming(tail_bytes=100))
    run.play(
        """
        a 0@0 e0 w0   | FENCED_LEADER_EPOCH v=18 leader=1@5 at 1=a |
        a 0@0 e5 w0   | ok v=18 leader=1@5 hw=0 0@5 1@5            |
        a 2@5 e5 w0   | ok v=18 leader=1@5 hw=0 2@5                |
        a 2@5 e5 w0   | ok v=18 leader=1@5 hw=0 2@5                | pause >=1
        a 2@5 e5 w0   | ok v=18 leader=1@5 hw=2 2@5                | commit 0-1
        a 2@5 e5 w500 | ok v=18 leader=1@5 hw=3 2@5                | commit 2-2
        """
    )


def test_the_transitions_have_every_possible_response() -> None:
    """The table has each pair but those in which the answer fits no question of the phase."""
    parts = {
        ResponseKind.SNAPSHOT_PART,
        ResponseKind.SNAPSHOT_WHOLE,
        ResponseKind.SNAPSHOT_NOT_FOUND,
    }
    contents = {ResponseKind.RECORDS, ResponseKind.DIVERGED, ResponseKind.SNAPSHOT_NAMED}
    for phase, response_kind in product(ObserverState, ResponseKind):
        impossible = response_kind in (contents if phase is ObserverState.SNAPSHOT else parts)
        assert ((phase, response_kind) in TRANSITIONS) != impossible


def test_a_response_without_a_request_is_an_error_of_the_shell() -> None:
    """Answers come one for each question."""
    observer = Observer(nodes("a"), LOG_START, CLUSTER, lambda: 1.0)
    with pytest.raises(RuntimeError, match="nothing was asked"):
        observer.on_failure(RequestFailure("gone"), 0)
