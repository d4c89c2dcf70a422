"""``featurewatch upgrade`` on a running cluster of 3.9.1: the plan, its status, a restart."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from tests.cli.commands import featurewatch
from tests.conftest import MakeCluster
from tests.waiting import eventually

pytestmark = pytest.mark.stack


def test_a_plan_is_made_and_followed(quorum_391: Cluster, tmp_path: Path) -> None:
    """Nothing is in the way; the first node is a controller that is not active; the gate opens.

    A node that does not exist is refused at once, and a plan edited by hand is noticed.
    """
    at = (
        *("--bootstrap-controller", quorum_391.controllers),
        *("--bootstrap-server", quorum_391.bootstrap_servers),
    )
    made = featurewatch(tmp_path, "upgrade", "plan", "--target", "4.4", "--out", "plan.yaml", *at)
    assert (made.returncode, made.stderr) == (0, "")
    assert "POINT OF NO RETURN" in made.stdout
    plan = yaml.safe_load((tmp_path / "plan.yaml").read_text())
    assert (plan["cluster"], plan["releases"]) == (quorum_391.cluster_id, ["3.9"])
    ids = [node.id for node in quorum_391.spec.nodes]
    assert (sorted(plan["controllers"]), plan["brokers"]) == (ids, [])

    told = featurewatch(tmp_path, "upgrade", "status", "--plan", "plan.yaml", "--json", *at)
    assert (told.returncode, told.stderr) == (0, "")
    status = json.loads(told.stdout)
    assert (status["current"], status["next_node"]) == ("roll-controllers", plan["controllers"][0])
    assert status["changed"] == []

    # Other tests of the shared cluster move partitions, and have some of a single replica.
    names = ("unreplicated", "min-isr", "reassignments")
    shared = [word for name in names for word in ("--accept", name)]
    check = ("upgrade", "check", "restart", "--node", str(status["next_node"]), "--json", *shared)
    reports: list[dict[str, Any]] = []

    def may_restart() -> bool:
        done = featurewatch(tmp_path, *check, *at)
        reports.append(json.loads(done.stdout))
        return done.returncode == 0

    assert eventually(may_restart)
    quorum = next(one for one in reports[-1]["checks"] if one["name"] == "quorum")
    assert quorum["text"] == "2 of 3 voters stay, 2 are needed"

    wrong = featurewatch(tmp_path, "upgrade", "check", "restart", "--node", "99", "--wait", *at)
    assert wrong.returncode == 3
    assert "there is no node 99" in wrong.stdout

    text = (tmp_path / "plan.yaml").read_text().replace("soak_hours: 24.0", "soak_hours: 0.0")
    (tmp_path / "plan.yaml").write_text(text)
    edited = featurewatch(tmp_path, "upgrade", "status", "--plan", "plan.yaml", *at)
    assert "the plan was edited after featurewatch wrote it" in edited.stdout

    early = featurewatch(
        tmp_path, "upgrade", "finalize", "--plan", "plan.yaml", "--dry-run", "--accept", "plan", *at
    )
    assert early.returncode == 3
    assert "not known to run Kafka 4.4" in early.stdout
    assert "Nothing was sent, nothing is changed." in early.stdout


@pytest.mark.nightly
def test_a_cluster_is_led_from_3_9_to_4_3(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """By the exit codes and documents alone: the plan, the next node, the last level, complete.

    The only voter cannot be restarted without the loss of the quorum, which a person accepts.
    """
    cluster = make_cluster(combined(["3.9.1"]))
    at = (
        *("--bootstrap-controller", cluster.controllers),
        *("--bootstrap-server", cluster.bootstrap_servers),
    )

    def upgrade(*arguments: str) -> subprocess.CompletedProcess[str]:
        return featurewatch(tmp_path, "upgrade", *arguments, *at)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            upgrade("status", "--plan", "plan.yaml", "--json").stdout
        )
        return found

    made = upgrade("plan", "-t", "4.3", "--soak-hours", "0", "--out", "plan.yaml")
    assert (made.returncode, made.stderr) == (0, "")
    early = upgrade("finalize", "--plan", "plan.yaml", "--yes")
    assert (early.returncode, "nothing is changed" in early.stdout) == (3, True)
    node = status()["next_node"]
    assert node == 1
    check = ("check", "restart", "--node", str(node))
    assert "needs 1" in upgrade(*check).stdout
    assert upgrade(*check, "--accept", "quorum", "--wait", "--timeout", "60").returncode == 0
    cluster.roll("4.3.0", [node])
    assert eventually(lambda: status()["current"] == "finalize")
    assert eventually(
        lambda: upgrade("finalize", "--plan", "plan.yaml", "--dry-run").returncode == 0
    )
    done = upgrade("finalize", "--plan", "plan.yaml", "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["outcome"] == "finalized"
    assert {level["state"] for level in report["levels"]} == {"finalized"}
    found = status()
    assert (found["complete"], found["changed"]) == (True, [])
    again = upgrade("finalize", "--plan", "plan.yaml", "--yes")
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
