"""The times of a voter: Kafka's properties, options before them, Kafka's defaults."""

from pathlib import Path

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.reference.kraft.command import _parser
from featurewatch.reference.kraft.controller_options import OptionError, quorum_times
from tests.reference.kraft.voter_process import CLUSTER

REQUIRED = ["--node-id", "1", "--cluster-id", CLUSTER, "--voters", "1@h:1", "--directory", "d"]


def _times(*options: str) -> dict[str, int]:
    return quorum_times(_parser().parse_args([*REQUIRED, *options]))


def test_properties_of_the_quorum_count(tmp_path: Path) -> None:
    """As in Kafka's ``QuorumConfig``; the others are not the voter's."""
    config = tmp_path / "server.properties"
    write_private(
        config,
        "controller.quorum.election.timeout.ms=200\ncontroller.quorum.fetch.timeout.ms=400\n"
        "controller.quorum.election.backoff.max.ms=100\ncontroller.quorum.request.timeout.ms=900\n"
        "controller.quorum.retry.backoff.ms=10\nnum.partitions=3\n",
    )
    expected = {
        "election_timeout_ms": 200,
        "fetch_timeout_ms": 400,
        "election_backoff_ms": 100,
        "request_timeout_ms": 900,
        "retry_backoff_ms": 10,
    }
    assert _times("--config", str(config)) == expected
    after = _times("--config", str(config), "--election-timeout", "300")
    assert after == expected | {"election_timeout_ms": 300}
    assert _times() == {}


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "soon", ""])
def test_a_property_that_is_no_time_is_refused(tmp_path: Path, text: str) -> None:
    """One line that names the file and the property."""
    config = tmp_path / "server.properties"
    write_private(config, f"controller.quorum.fetch.timeout.ms={text}\n")
    with pytest.raises(OptionError, match=r"fetch\.timeout\.ms is '.*', which is not a positive"):
        _times("--config", str(config))
