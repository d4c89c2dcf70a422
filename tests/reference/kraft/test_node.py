"""Three voters as processes on loopback: election, kill -9 of leaders, restarts from disk."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.reference.kraft.storage import open_storage
from featurewatch.stack.process.ports import Ports
from tests.paths import ROOT
from tests.processes import is_alive, popen
from tests.reference.kraft.voter_process import CLUSTER, DEADLINE_S, Quorum, VoterProcess
from tests.waiting import eventually


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    """A quorum whose processes end with the test."""
    quorum = Quorum(tmp_path)
    try:
        yield quorum
    finally:
        quorum.stop()


def test_leaders_are_killed(quorum: Quorum) -> None:
    """Records survive the kill of each leader and the restart of all; the logs are equal then."""
    leader = quorum.leader()
    last = leader.append(3)
    others = [one for one in quorum.running if one != leader.node_id]
    quorum.running[others[0]].order("append 1")
    quorum.running[others[0]].expect("not leader")
    quorum.kill(leader.node_id)
    second = quorum.leader()
    assert second.node_id != leader.node_id
    then = second.append(2)
    assert then > last
    quorum.start(leader.node_id)
    quorum.kill(second.node_id)
    third = quorum.leader()
    after = third.append(2)
    for node_id in [*quorum.running]:
        quorum.kill(node_id)
    for node_id in quorum.ports:
        quorum.start(node_id)
    fourth = quorum.leader()
    end = fourth.append(1)
    assert end > after
    for process in quorum.running.values():
        while process is not fourth and int(process.expect("committed").split()[1]) <= end:
            pass
    codes = [process.stop() for process in quorum.running.values()]
    assert codes == [0, 0, 0]
    quorum.running.clear()
    logs = []
    for node_id in quorum.ports:
        storage = open_storage(quorum.root / str(node_id), VoterSet(()))
        logs.append([batch.data for batch in storage.log.batches if batch.last <= end])
        storage.close()
    assert logs[0] == logs[1] == logs[2]
    assert sum(len(part) for part in logs[0]) > 0


def test_a_leader_that_stops_hands_over(quorum: Quorum) -> None:
    """It resigns, so that another leads sooner than a fetch timeout would tell."""
    leader = quorum.leader()
    quorum.running.pop(leader.node_id)
    assert leader.stop() == 0
    assert any("resigned" in line for line in leader.errors)
    assert any("Never run production on it" in line for line in leader.errors)
    assert quorum.leader().append(1) > 0


OWNER = """
import sys, time
from pathlib import Path
from tests.reference.kraft.voter_process import VoterProcess
voter = VoterProcess(1, [sys.argv[1]], Path(sys.argv[2]))
voter.expect("listening")
print(voter.pid, flush=True)
time.sleep(600)
"""


def test_a_voter_ends_with_its_test(tmp_path: Path) -> None:
    """It does not outlive the process that started it, however that ends."""
    reserved = Ports()
    command = [sys.executable, "-c", OWNER, f"1@127.0.0.1:{reserved.reserve()}", str(tmp_path)]
    with popen(command, stdout=subprocess.PIPE, cwd=ROOT) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_alive(pid)
    assert eventually(lambda: not is_alive(pid))
    reserved.release()


def test_a_directory_of_another_cluster(tmp_path: Path) -> None:
    """One line on stderr, and exit code 1."""
    reserved = Ports()
    voters = [f"1@127.0.0.1:{reserved.reserve()}"]
    process = VoterProcess(1, voters, tmp_path / "1")
    process.expect("leader")
    process.kill()
    command = [sys.executable, "-m", "featurewatch.reference.kraft", "--node-id", "1"]
    command += ["--cluster-id", "other", "--directory", str(tmp_path / "1"), "--voters", *voters]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 1
    assert f"{tmp_path / '1'} is of cluster {CLUSTER}, not other" in done.stderr
    assert "Traceback" not in done.stderr
    reserved.release()
