"""The fold of the quorum: voters of the log, and descriptions by the active controller."""

from dataclasses import replace

import orjson
import pytest

from featurewatch.streams.events import SourceState
from featurewatch.streams.types import NodeId
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import NOTHING, ClusterImage
from featurewatch.tables.image.limits import MAX_VOTERS
from featurewatch.tables.image.log import Quorum, Voter
from featurewatch.tables.rows import cluster_of, image_of_rows, rows_of_change
from tests.simulation import records as r
from tests.simulation.records import replica
from tests.tables.images import fold_all

THREE = {1: "A", 2: "B", 3: "C"}
HEALTHY = r.quorum([replica(n, directory) for n, directory in THREE.items()], seen_ms=5)
DYNAMIC = (r.commit(1, r.kraft_version(1), r.voters(THREE), r.leader_change(2, THREE)),)


def rows_of(image: ClusterImage) -> dict[str, bytes]:
    """The rows of an image, by name."""
    rows = rows_of_change(ClusterImage(r.CLUSTER), image, NOTHING)
    return {cluster_of(key)[1]: value or b"" for key, value in rows}


def restored(image: ClusterImage) -> ClusterImage:
    """The image from its rows."""
    return image_of_rows(r.CLUSTER, rows_of(image))


def members(image: ClusterImage) -> dict[int, str]:
    """The directory ids of the voters that the log names."""
    return {voter.node_id: voter.directory_id for voter in image.log.quorum.members}


def test_voters_of_the_log_have_directories_and_listeners() -> None:
    """They are restored as they were."""
    image = fold_all(DYNAMIC)
    quorum = image.log.quorum
    assert (quorum.leader_id, quorum.voters) == (2, (1, 2, 3))
    assert quorum.members[0] == Voter(NodeId(1), "A", ("CONTROLLER://c1:9093",))
    assert restored(image).log.quorum == quorum


def test_voters_come_and_go() -> None:
    """Each record replaces the ones before; an election with the same voters keeps them."""
    image = fold_all([*DYNAMIC, r.commit(5, r.voters({1: "A", 3: "D"}))])
    assert members(image) == {1: "A", 3: "D"}
    elected = fold_all([r.commit(6, r.leader_change(3, (1, 3)), epoch=2)], image)
    assert members(elected) == {1: "A", 3: "D"}
    assert elected.log.quorum.leader_id == 3


def test_static_voters_have_ids_alone() -> None:
    """As those of an election without a record of voters, or with others than the record has."""
    assert members(fold_all([r.commit(1, r.leader_change(1, (1, 2, 3)))])) == {}
    other = fold_all([*DYNAMIC, r.commit(6, r.leader_change(4, (1, 2, 4)), epoch=2)])
    assert (other.log.quorum.voters, members(other)) == ((1, 2, 4), {})


def test_a_snapshot_has_the_voters() -> None:
    """They replace those of the log before it."""
    records = (r.kraft_version(1), r.voters({1: "A", 4: "E"}))
    image = fold_all([*DYNAMIC, r.chunk(9, 0, *records, last=True)])
    assert members(image) == {1: "A", 4: "E"}


@pytest.mark.parametrize(
    "broken",
    [
        {"voters": [{"voterId": 1, "endpoints": []}]},
        {"voters": [{"voterId": "1", "voterDirectoryId": "A", "endpoints": []}]},
        {"voters": [{"voterId": 1, "voterDirectoryId": "A" * 300, "endpoints": []}]},
        {"voters": [{"voterId": 1, "voterDirectoryId": "A", "endpoints": [{}] * 17}]},
        {"voters": [{"voterId": 1, "voterDirectoryId": "A", "endpoints": []}] * 1001},
    ],
)
def test_a_broken_record_of_voters_changes_nothing(broken: dict[str, object]) -> None:
    """It is counted as unreadable."""
    image = fold_all([*DYNAMIC, r.commit(5, r.record("KRAFT_VOTERS", broken))])
    assert members(image) == THREE
    assert [*image.sources.unreadable] == ["KRAFT_VOTERS"]


def test_a_description_is_kept_and_restored() -> None:
    """The newest one counts; the same one again changes nothing."""
    image = fold_all([*DYNAMIC, HEALTHY])
    assert image.answers.quorum == HEALTHY
    assert restored(image).answers.quorum == HEALTHY
    assert fold(image, HEALTHY)[1].skipped
    silent = r.quorum([replica(1, "A"), replica(2, "B", "silent")], seen_ms=6)
    assert fold_all([silent], image).answers.quorum == silent
    withdrawn = fold_all([r.quorum((), detail="another cluster", seen_ms=7)], image)
    assert withdrawn.answers.quorum is None


def test_a_resync_drops_a_description_that_is_not_published_again() -> None:
    """A source that started again may not describe the quorum any more."""
    resync = r.resync("api-versions")
    finished = r.resync("api-versions", finished=True)
    image = fold_all([*DYNAMIC, HEALTHY, resync])
    assert restored(image).answers == image.answers
    assert fold_all([finished], image).answers.quorum is None
    again = replace(HEALTHY, seen_ms=9)
    assert fold_all([again, finished], image).answers.quorum == again


def test_a_retired_source_leaves_nothing() -> None:
    """The log is followed without it."""
    following = r.status(SourceState.FOLLOWING, 1, source="api-versions")
    retired = r.status(SourceState.RETIRED, 1, source="api-versions")
    image = fold_all([*DYNAMIC, r.following(1), following, HEALTHY, retired])
    assert image.answers.quorum is None
    assert members(image) == THREE


def test_too_many_replicas_are_unreadable() -> None:
    """Nothing of such a description counts."""
    flood = r.quorum([replica(1)] * (MAX_VOTERS + 1))
    image = fold_all([HEALTHY, flood])
    assert image.answers.quorum == HEALTHY
    assert "ANSWER" in image.sources.unreadable


def test_rows_of_older_versions_are_read() -> None:
    """They have neither directories nor a description."""
    image = fold_all([*DYNAMIC, HEALTHY])
    rows = rows_of(image)
    cluster = orjson.loads(rows["cluster"])
    del cluster["log"]["quorum"]["members"], cluster["answers"]["quorum"]
    older = image_of_rows(r.CLUSTER, {**rows, "cluster": orjson.dumps(cluster)})
    assert older.log.quorum == Quorum(NodeId(2), 1, image.log.quorum.voters)
    assert older.answers.quorum is None
